package rls

import (
	"bytes"
	"strings"
	"testing"

	"github.com/samya-db/samya/lab/compare"
)

// TestJudge: ratios are within rounds.
func TestJudge(t *testing.T) {
	rates := func(all ...float64) (samples []compare.Sample) {
		for _, r := range all {
			samples = append(samples, compare.Sample{Rate: r, P50: 100, P99: 200})
		}
		return samples
	}
	r := &Report{Rows: []Row{
		{System: Site, Samples: rates(80, 40, 90)},
		{System: Samya, Samples: rates(1, 1, 1)},
		{System: Echo, Samples: rates(100, 50, 100)},
		{System: Peer, Samples: rates(80, 20, 90)},
	}}
	r.judge()
	if r.Rows[0].Rate != 80 || r.Goals[0].Got != .8 || r.Goals[1].Got != 1 || len(r.Goals) != 2 || r.Met() {
		t.Errorf("%+v", r)
	}
	var b bytes.Buffer
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); strings.Count(text, "MISSED") != 1 || strings.Count(text, " met ") != 1 {
		t.Error(text)
	}
}
