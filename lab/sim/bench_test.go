package sim_test

import (
	"testing"

	"github.com/samya-db/samya/lab/sim"
)

// BenchmarkLong runs long seeds. It reports simulated time against real time.
func BenchmarkLong(b *testing.B) {
	for _, mode := range []string{"majority", "star", "auto"} {
		b.Run(mode, func(b *testing.B) {
			b.ReportAllocs()
			var all sim.Report
			for b.Loop() {
				r, err := sim.Run(sim.Options{Seed: uint64(all.Creates), Sites: 5, Protocol: mode, Long: true})
				if err != nil {
					b.Fatal(err)
				}
				all.Add(r)
			}
			b.ReportMetric(all.Simulated().Seconds()/b.Elapsed().Seconds(), "simulated/real")
		})
	}
}
