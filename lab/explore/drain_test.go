package explore

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/samya-db/samya/avantan/handoff"
	"github.com/samya-db/samya/internal/race"
)

// TestDrainCloses: a site leaves, and its heir gets all that it has.
func TestDrainCloses(t *testing.T) {
	race.OneGoroutine(t)
	b := bounds(t, "drain")
	r := run(t, NewMajority(b), Options{Bounds: b, HealEvery: 100, HealMost: 5000})
	if r.Violations != 0 || !r.Closed {
		t.Fatalf("not closed without violation:\n%v", r)
	}
	if r.States < 180_000 || r.Healed < 2000 {
		t.Errorf("the search became trivial: %d states, %d healed", r.States, r.Healed)
	}
}

// TestDrainRules leaves out a rule of docs/protocol.md, sections 21 and 22, at a time.
func TestDrainRules(t *testing.T) {
	race.OneGoroutine(t)
	for _, test := range []struct {
		rule rule
		want string
	}{
		{emptyIsClosed, Conservation},
		{netIsHandedOver, NetLaw},
		{hearsNoneThatIsOut, OverGrant},
		{leasesAreFrozen, LeaseOnce},
	} {
		t.Run(string(test.rule), func(t *testing.T) {
			b := bounds(t, "drain")
			v := NewMajority(b)
			v.without = map[rule]bool{test.rule: true}
			r := run(t, v, Options{Bounds: b})
			if !slices.ContainsFunc(r.Broken, func(v Violation) bool { return v.Invariant == test.want }) {
				t.Fatalf("broken are %v, want %s; %d states", r.Broken, test.want, r.States)
			}
			if strings.Contains(strings.Join(r.Trace, "\n"), "no step found") {
				t.Errorf("the schedule has a gap:\n%s", strings.Join(r.Trace, "\n"))
			}
		})
	}
}

// TestStarDrainCloses is TestDrainCloses under the any-subset variant. The leaver leads.
func TestStarDrainCloses(t *testing.T) {
	race.OneGoroutine(t)
	b := bounds(t, "drain")
	r := run(t, NewStar(b), Options{Bounds: b, HealEvery: 100, HealMost: 5000})
	if r.Violations != 0 || !r.Closed {
		t.Fatalf("not closed without violation:\n%v", r)
	}
	if r.States < 100_000 || r.Healed < 1000 {
		t.Errorf("the search became trivial: %d states, %d healed", r.States, r.Healed)
	}
}

// TestStarDrainOfACohortCloses: a site that stays leads too.
func TestStarDrainOfACohortCloses(t *testing.T) {
	race.OneGoroutine(t)
	b := bounds(t, "drain")
	b.Leaders, b.Crashes, b.Acquires, b.Releases = 2, 0, 0, 0
	r := run(t, NewStar(b), Options{Bounds: b, HealEvery: 100, HealMost: 5000})
	if r.Violations != 0 || !r.Closed || r.States < 300_000 {
		t.Fatalf("not closed without violation, or trivial:\n%v", r)
	}
}

// TestStarDrainRules leaves out a rule at a time under the any-subset variant.
func TestStarDrainRules(t *testing.T) {
	race.OneGoroutine(t)
	for _, test := range []struct {
		rule rule
		want string
		// leaders is 2 if a site that stays has to lead too.
		leaders, crashes int
	}{
		{emptyIsClosed, Conservation, 1, 1},
		{hearsNoneThatIsOut, OverGrant, 1, 1},
		{leasesAreFrozen, LeaseOnce, 1, 1},
		{othersAreClear, Alike, 2, 0},
		{goneIsOut, Liveness, 1, 1},
		{offersOfLeavers, Alike, 2, 0},
	} {
		t.Run(string(test.rule), func(t *testing.T) {
			b := bounds(t, "drain")
			b.Leaders, b.Crashes, b.Acquires, b.Releases = test.leaders, test.crashes, 0, 0
			v := NewStar(b)
			v.without = map[rule]bool{test.rule: true}
			r := run(t, v, Options{Bounds: b, HealEvery: 5, HealMost: 20_000})
			if !slices.ContainsFunc(r.Broken, func(v Violation) bool { return v.Invariant == test.want }) {
				t.Errorf("broken are %v, want %s; %d states", r.Broken, test.want, r.States)
			}
		})
	}
}

// TestDrainFindsDamage restarts sites with less than their durable state.
func TestDrainFindsDamage(t *testing.T) {
	race.OneGoroutine(t)
	for _, test := range []struct {
		name   string
		damage func(*handoff.State)
		want   string
	}{
		{"open bequest", func(s *handoff.State) { s.Open = nil }, Conservation},
		{"numbers given", func(s *handoff.State) { s.Given = nil; s.Open = nil }, Conservation},
		{"numbers taken", func(s *handoff.State) { s.Taken = nil }, Conservation},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := bounds(t, "drain")
			v := NewMajority(b)
			v.forgets = test.damage
			r := run(t, v, Options{Bounds: b, Ignore: []string{SelfCheck}})
			if !slices.ContainsFunc(r.Broken, func(v Violation) bool { return v.Invariant == test.want }) {
				t.Fatalf("broken are %v, want %s; %d states", r.Broken, test.want, r.States)
			}
		})
	}
}

// TestDrainReductionsLoseNothing compares the durable states of a search with and without
// the reductions, and the plain search with random walks.
func TestDrainReductionsLoseNothing(t *testing.T) {
	race.OneGoroutine(t)
	b := Bounds{Instances: 1, Leaders: 1, Ballots: 1, Acquires: 1, Tokens: 2, View: DrainView}
	v := NewMajority(b)
	reduced := searched(t, v)
	b.Plain = true
	w := NewMajority(b)
	w.values = v.values // the same numbering
	plain := searched(t, w)
	handed := func(nodes [Sites]Node) (k [Sites]string) {
		k = durable(nodes)
		for i, n := range nodes {
			k[i] = string(n.(*majority).handed.Fingerprint([]byte(k[i])))
		}
		return k
	}
	got, want := reduced.found(handed), plain.found(handed)
	t.Logf("plain %d states, reduced %d, %d durable", len(plain.seen.states), len(reduced.seen.states), len(want))
	if !maps.Equal(got, want) {
		t.Errorf("%d durable states instead of %d", len(got), len(want))
	}
	checkWalks(t, plain, w, keys, 500)
}
