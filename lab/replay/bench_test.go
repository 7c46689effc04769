package replay

import (
	"testing"

	"github.com/samya-db/samya/lab/replay/sites"
)

func BenchmarkHour(b *testing.B) {
	d, err := Draw("fit", 1, MaxBins)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Run(Options{Demand: d}, sites.New(nil)); err != nil {
			b.Fatal(err)
		}
	}
}
