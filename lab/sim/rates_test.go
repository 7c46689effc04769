package sim_test

import (
	"testing"

	"github.com/samya-db/samya/internal/race"
	"github.com/samya-db/samya/lab/sim"
)

// TestRates: runs with rate quotas reach all that they are to judge.
func TestRates(t *testing.T) {
	race.OneGoroutine(t)
	var all sim.Report
	for n := range uint64(32) {
		o := sim.Options{Seed: 9900 + n, Sites: 3 + int(n%3), Protocol: sim.Modes()[n/2%4], Faults: sim.AllFaults, Rates: true}
		if n%2 == 1 {
			// Under all faults hardly a drain hands over leases.
			o.Leaves, o.Faults = true, fewFaults
		}
		all.Add(run(t, o))
	}
	for what, n := range map[string]int{
		"windows begun": all.Windows, "tokens from later windows": all.Late, "grants of buckets and sliding windows": all.Flows,
		"grants below rate quotas": all.DrawsBelow, "releases through rate quotas": all.DrawsGiven,
		"grants of volatile rate quotas": all.Draws, "grants of keys": all.Keys, "resets": all.Resets, "tokens that resets gave back": all.ResetTokens,
		"leases of share": all.Shares, "leases of share renewed": all.SharesRenewed, "leases of share inherited": all.SharesInherited,
		"leases of share ended": all.SharesEnded, "grants of holders of shares": all.SharesGranted,
		"tokens reserved": all.Reserved, "ends of reservations": all.ReservedEnded, "tokens that came back from leases": all.ReservedBack,
	} {
		if t.Logf("%s: %d", what, n); n == 0 {
			t.Errorf("never happened: %s", what)
		}
	}
}
