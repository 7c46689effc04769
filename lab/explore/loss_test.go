package explore

import (
	"slices"
	"testing"

	"github.com/samya-db/samya/avantan/transfer"
	"github.com/samya-db/samya/internal/race"
)

// TestLossCloses: any site is written off, at any time, and the others end what waits for
// it. Under the majority they go on with a view of their own.
func TestLossCloses(t *testing.T) {
	for _, test := range []struct {
		variant string
		states  int
	}{{"star", 30_000}, {"transfer", 1500}} {
		t.Run(test.variant, func(t *testing.T) {
			b := bounds(t, "loss")
			v, err := New(test.variant, b)
			if err != nil {
				t.Fatal(err)
			}
			r := run(t, v, Options{Bounds: b, HealEvery: 20, HealMost: 5000})
			if r.Violations != 0 || !r.Closed {
				t.Fatalf("not closed without violation:\n%v", r)
			}
			if r.States < test.states || r.Healed < 100 {
				t.Errorf("the search became trivial: %d states, %d healed", r.States, r.Healed)
			}
		})
	}
}

// TestMajorityLossCloses is TestLossCloses for the majority, within smaller bounds.
func TestMajorityLossCloses(t *testing.T) {
	race.OneGoroutine(t)
	b := bounds(t, "loss")
	b.Crashes, b.Acquires, b.Releases = 0, 0, 0
	r := run(t, NewMajority(b), Options{Bounds: b, HealEvery: 20, HealMost: 5000})
	if r.Violations != 0 || !r.Closed {
		t.Fatalf("not closed without violation:\n%v", r)
	}
	if r.States < 30_000 || r.Healed < 1000 {
		t.Errorf("the search became trivial: %d states, %d healed", r.States, r.Healed)
	}
}

// TestLossRules leaves out a rule of docs/protocol.md, section 23, at a time. Conservation
// is not checked: the search goes on to a state in which too much is granted.
func TestLossRules(t *testing.T) {
	for _, test := range []struct {
		rule rule
		want string
	}{
		{noMoreThanTheOffer, OverGrant},
		{noMoreThanTheGrant, OverGrant},
		{lossesAreDurable, Alike},
	} {
		t.Run(string(test.rule), func(t *testing.T) {
			b := bounds(t, "loss")
			v := NewStar(b)
			v.without = map[rule]bool{test.rule: true}
			r := run(t, v, Options{Bounds: b, Ignore: []string{Conservation}})
			if !slices.ContainsFunc(r.Broken, func(v Violation) bool { return v.Invariant == test.want }) {
				t.Errorf("broken are %v, want %s; %d states", r.Broken, test.want, r.States)
			}
		})
	}
}

// TestTransferFindsDamage restarts sites with less than their durable state.
func TestTransferFindsDamage(t *testing.T) {
	for _, test := range []struct {
		name   string
		damage func(*transfer.State)
		want   string
	}{
		{"credits", func(s *transfer.State) { s.Credits = nil }, Conservation},
		{"debits", func(s *transfer.State) { s.Debits = nil }, Forgetting},
		{"numbers", func(s *transfer.State) { s.Reserved = 0 }, SelfCheck},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := bounds(t, "loss")
			b.Ballots = 2
			v := NewTransfer(b)
			v.damage = test.damage
			r := run(t, v, Options{Bounds: b})
			if !slices.ContainsFunc(r.Broken, func(v Violation) bool { return v.Invariant == test.want }) {
				t.Errorf("broken are %v, want %s; %d states", r.Broken, test.want, r.States)
			}
		})
	}
}
