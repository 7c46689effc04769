package sim_test

import (
	"testing"

	"github.com/samya-db/samya/lab/sim"
)

// TestReadsOfAllSites: exact reads find consistent cuts while everything fails, some have
// to ask again, and watches are told states. The runs check the numbers told.
func TestReadsOfAllSites(t *testing.T) {
	var sum sim.Report
	for _, mode := range sim.Modes() {
		for seed := uint64(9000); seed < 9003; seed++ {
			r, err := sim.Run(sim.Options{Seed: seed, Sites: 5, Protocol: mode})
			if err != nil {
				t.Fatal(err)
			}
			sum.Add(r)
		}
	}
	if sum.ExactReads < 20 || sum.AskedAgain < 10 || sum.WatchStates < 200 {
		t.Errorf("%d exact reads, asked again %d times, %d states watched", sum.ExactReads, sum.AskedAgain, sum.WatchStates)
	}
	t.Logf("%d exact reads, asked again %d times, %d states watched", sum.ExactReads, sum.AskedAgain, sum.WatchStates)
}
