package explore

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/samya-db/samya/avantan/star"
)

func TestStarSmallBoundsClose(t *testing.T) {
	b := bounds(t, "small")
	options := Options{Bounds: b, HealEvery: 5, HealMost: 5000}
	r := run(t, NewStar(b), options)
	if r.Violations != 0 || !r.Closed {
		t.Fatalf("not closed without violation:\n%v", r)
	}
	if r.States < 5_000 || r.Healed < 1000 {
		t.Errorf("the search became trivial: %d states, %d healed", r.States, r.Healed)
	}
	again := run(t, NewStar(b), options)
	if r.States != again.States || r.Transitions != again.Transitions || r.Depth != again.Depth || r.Steps != again.Steps {
		t.Errorf("a second search differs:\n%v\n%v", r, again)
	}
}

// TestStarFindsDamage restarts sites with less than their durable state, each time
// without something that a rule of docs/protocol.md needs.
func TestStarFindsDamage(t *testing.T) {
	for _, test := range []struct {
		name   string
		damage func(*star.State)
		want   string
	}{
		{"slices", func(s *star.State) { s.Slices = nil }, Exclusivity},
		{"votes", func(s *star.State) {
			s.Slices = slices.Clone(s.Slices)
			for i := range s.Slices {
				if s.Slices[i].ID.Leader != s.Slices[i].Pledge.Site && !s.Slices[i].Committed {
					s.Slices[i].Value = nil
				}
			}
		}, Agreement},
		{"commits", func(s *star.State) {
			s.Slices = slices.Clone(s.Slices)
			for i := range s.Slices {
				s.Slices[i].Committed = false
			}
		}, Exclusivity},
		{"floors", func(s *star.State) { s.Floors = nil }, Integrity},
		{"counters", func(s *star.State) { s.Reserved = 0 }, Exclusivity},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := bounds(t, "small")
			b.Ballots = 2
			v := NewStar(b)
			v.damage = test.damage
			r := run(t, v, Options{Bounds: b, Ignore: []string{SelfCheck}, MaxStates: 200_000})
			if !slices.ContainsFunc(r.Broken, func(v Violation) bool { return v.Invariant == test.want }) {
				t.Fatalf("broken are %v, want %s; %d states", r.Broken, test.want, r.States)
			}
			text := strings.Join(r.Trace, "\n")
			if !strings.Contains(text, actCrash) || strings.Contains(text, "no step found") {
				t.Errorf("the schedule has no crash, or a gap:\n%s", text)
			}
		})
	}
}

// fates are the outcomes of the instances in a state: the value, and the sites that have
// accepted and applied it, durably.
func fates(nodes [Sites]Node) (list []string) {
	type key struct {
		id    star.ID
		value string
	}
	got := make(map[key]string)
	for i, n := range nodes {
		n := n.(*starNode)
		for _, e := range n.accepted {
			k := key{e.id, describe(n.variant.values.get(e.value).value)}
			got[k] += fmt.Sprintf(" %d", i)
			if _, applied := n.disk.applied(e.id); applied {
				got[k] += "+"
			}
			if n.disk.concluded(e.id) {
				got[k] += "="
			}
		}
	}
	for k, what := range got {
		list = append(list, fmt.Sprint(k.id, k.value, what))
	}
	return list
}

// searchedStar searches to closure and returns all fates.
func searchedStar(t *testing.T, v *Star) (*search, map[string]bool) {
	t.Helper()
	s := &search{Options: Options{Bounds: v.bounds}, variant: v, store: newStore(v)}
	all := make(map[string]bool)
	note := func(g global) {
		for _, f := range fates(s.nodes(g)) {
			all[f] = true
		}
	}
	s.store.watch = func(g global) {
		s.look(g)
		note(g)
	}
	if err := s.run(t.Context()); err != nil || !s.closed || s.violations != nil {
		t.Fatalf("err %v, closed %v, violations %v", err, s.closed, s.violations)
	}
	for _, g := range s.seen.states {
		note(g)
	}
	return s, all
}

// TestStarReductionsLoseNothing compares the possible outcomes of each instance. The
// reductions leave out combinations of instances that do not touch each other.
func TestStarReductionsLoseNothing(t *testing.T) {
	for _, b := range []Bounds{
		{Instances: 1, Leaders: 2, Ballots: 1, Tokens: 2},
		{Instances: 1, Leaders: 1, Ballots: 1, Crashes: 1, Tokens: 2},
		{Instances: 1, Leaders: 1, Ballots: 1, Losses: 1, Tokens: 2},
	} {
		reduced, got := searchedStar(t, NewStar(b))
		b.Plain = true
		v := NewStar(b)
		plain, want := searchedStar(t, v)
		t.Logf("%+v: plain %d states, reduced %d, %d fates", b, len(plain.seen.states), len(reduced.seen.states), len(want))
		for f := range want {
			if !got[f] {
				t.Errorf("%+v: lost: %s", b, f)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%+v: %d fates instead of %d", b, len(got), len(want))
		}
		rng := rand.New(rand.NewPCG(1, 2))
		visited := make(map[[Sites]string]bool)
		for range 300 {
			walk(rng, v, b, 60, func(nodes [Sites]Node) { visited[keys(nodes)] = true })
		}
		found := plain.found(keys)
		for k := range visited {
			if !found[k] {
				t.Fatal("a walk gets to where the search has not been")
			}
		}
		if len(visited) < 200 {
			t.Errorf("the walks get to %d places only", len(visited))
		}
	}
}

// TestStarWalksAreFound walks at random through bounds that only the reduced
// search closes.
func TestStarWalksAreFound(t *testing.T) {
	b := bounds(t, "small")
	_, found := searchedStar(t, NewStar(b))
	b.Plain = true
	rng := rand.New(rand.NewPCG(1, 2))
	visited := make(map[string]bool)
	for range 500 {
		walk(rng, NewStar(b), b, 80, func(nodes [Sites]Node) {
			for _, f := range fates(nodes) {
				visited[f] = true
			}
		})
	}
	t.Logf("%d fates searched, %d walked to", len(found), len(visited))
	for f := range visited {
		if !found[f] {
			t.Errorf("a walk gets to %q, the search does not: %v", f, slices.Sorted(maps.Keys(found)))
		}
	}
	if len(visited) < 20 {
		t.Errorf("the walks get to %d fates only", len(visited))
	}
}
