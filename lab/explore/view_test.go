package explore

import "testing"

// TestViewChangesClose: a site joins the voters, and a site leaves them.
func TestViewChangesClose(t *testing.T) {
	for _, test := range []struct {
		bound  string
		states int
	}{{JoinView, 2000}, {LeaveView, 3000}} {
		t.Run(test.bound, func(t *testing.T) {
			b := bounds(t, test.bound)
			b.Ballots, b.Crashes = 1, 0
			r := run(t, NewMajority(b), Options{Bounds: b, HealEvery: 20, HealMost: 5000})
			if r.Violations != 0 || !r.Closed {
				t.Fatalf("not closed without violation:\n%v", r)
			}
			if r.States < test.states || r.Healed < 100 {
				t.Errorf("the search became trivial: %d states, %d healed", r.States, r.Healed)
			}
		})
	}
}
