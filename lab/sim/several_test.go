package sim_test

import (
	"testing"

	"github.com/samya-db/samya/internal/race"
	"github.com/samya-db/samya/lab/sim"
)

// TestSeveralNodes runs clusters with sites of several nodes: nodes take over from each
// other, and the nodes that were active try to go on.
func TestSeveralNodes(t *testing.T) {
	race.OneGoroutine(t)
	var all sim.Report
	for n := range uint64(30) {
		faults := sim.AllFaults
		if n%2 == 1 {
			faults |= sim.DoubleFaults
		}
		all.Add(run(t, sim.Options{Seed: 9700 + n, Sites: 5, Protocol: sim.Modes()[n%4], Faults: faults, Nodes: "always", Upgrades: true}))
	}
	t.Logf("%v", &all)
	for what, n := range map[string]int{
		"sites": all.Several, "batches": all.NodeCommits, "unknown": all.UnknownCommits, "take-overs": all.TakeOvers, "fenced": all.Fenced, "copies": all.NodeCopies,
	} {
		if n == 0 {
			t.Errorf("never happened: %s", what)
		}
	}
}
