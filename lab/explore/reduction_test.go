package explore

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/samya-db/samya/internal/race"
)

// walk takes random steps without the engine: it remembers nothing, takes nothing at
// once, and no state stands for another. It calls visit with the nodes after each step.
func walk(rng *rand.Rand, v Variant, b Bounds, steps int, visit func(nodes [Sites]Node)) {
	var nodes [Sites]Node
	for i := range nodes {
		nodes[i] = v.New(i)
	}
	var sent []*Packet
	known := make(map[string]bool)
	var used [costs]int
	for range steps {
		limits := [costs]int{1, b.Crashes, b.Acquires, min(b.Releases, used[Acquire]), b.Losses}
		site, cost := rng.IntN(Sites), Free
		next := nodes[site].Clone()
		var out Step
		if len(sent) > 0 && rng.IntN(3) > 0 {
			p := sent[max(rng.IntN(len(sent)), rng.IntN(len(sent)))] // rather late
			site = p.To
			next = nodes[site].Clone()
			out = next.Deliver(p)
		} else {
			acts := next.Acts()
			i := rng.IntN(len(acts))
			if cost = acts[i].Cost; used[cost] >= limits[cost] {
				continue
			}
			out = next.Do(i)
		}
		if out.Beyond {
			continue
		}
		if cost != Free {
			used[cost]++
		}
		nodes[site] = next
		for i := range out.Send {
			if p := &out.Send[i]; !known[p.Key] {
				known[p.Key] = true
				sent = append(sent, p)
			}
		}
		visit(nodes)
	}
}

// searched searches to closure.
func searched(t *testing.T, v *Majority) *search {
	t.Helper()
	s := &search{Options: Options{Bounds: v.bounds}, variant: v, store: newStore(v)}
	if err := s.run(t.Context()); err != nil || !s.closed || s.violations != nil {
		t.Fatalf("err %v, closed %v, violations %v", err, s.closed, s.violations)
	}
	return s
}

// found returns the results of by for all states.
func (s *search) found(by func([Sites]Node) [Sites]string) map[[Sites]string]bool {
	found := make(map[[Sites]string]bool)
	for _, g := range s.seen.states {
		found[by(s.nodes(g))] = true
	}
	return found
}

// checkWalks holds a search against random walks, which share only the nodes with it: the
// search must have been wherever a walk gets to.
func checkWalks(t *testing.T, s *search, v *Majority, by func([Sites]Node) [Sites]string, least int) {
	t.Helper()
	found := s.found(by)
	rng := rand.New(rand.NewPCG(1, 2))
	visited := make(map[[Sites]string]bool)
	for range 500 {
		walk(rng, v, v.bounds, 60, func(nodes [Sites]Node) { visited[by(nodes)] = true })
	}
	t.Logf("%d places searched, %d walked to", len(found), len(visited))
	if len(visited) < least {
		t.Errorf("the walks get to %d places only", len(visited))
	}
	for k := range visited {
		if !found[k] {
			t.Fatal("a walk gets to where the search has not been")
		}
	}
}

// keys identifies the cores of a state.
func keys(nodes [Sites]Node) (k [Sites]string) {
	for i, n := range nodes {
		k[i] = string(n.Key(nil))
	}
	return k
}

// durable identifies the durable part of a state, but for the parts that acknowledgements
// drop and for tokens, which clients move.
func durable(nodes [Sites]Node) (k [Sites]string) {
	for i, n := range nodes {
		n := n.Clone().(*majority)
		n.state.Kept = nil
		n.disk.left, n.disk.net = 0, 0
		k[i] = string(n.disk.key(n.state.Fingerprint(nil)))
	}
	return k
}

func TestReductionsLoseNothing(t *testing.T) {
	race.OneGoroutine(t)
	for _, b := range []Bounds{
		{Instances: 1, Leaders: 2, Ballots: 1, Tokens: 2},
		{Instances: 1, Leaders: 1, Ballots: 2, Crashes: 1, Tokens: 2},
	} {
		v := NewMajority(b)
		reduced := searched(t, v)
		b.Plain = true
		w := NewMajority(b)
		w.values = v.values // the same numbering
		plain := searched(t, w)
		got, want := reduced.found(durable), plain.found(durable)
		t.Logf("%+v: plain %d states, reduced %d, %d durable", b, len(plain.seen.states), len(reduced.seen.states), len(want))
		if !maps.Equal(got, want) {
			t.Errorf("%+v: %d durable states instead of %d", b, len(got), len(want))
		}
		checkWalks(t, plain, w, keys, 500)
	}
}

func TestWalksAreFound(t *testing.T) {
	v := NewMajority(bounds(t, "small"))
	checkWalks(t, searched(t, v), v, durable, 500)
}

// TestOnlyWhatAStepTouches holds the search, which looks again only at parts that a step
// touches, against looking at everything. Both find the same states and the same steps
// out of them, and nothing is broken in a state that is not checked.
func TestOnlyWhatAStepTouches(t *testing.T) {
	race.OneGoroutine(t)
	s := searched(t, NewMajority(Bounds{Instances: 1, Leaders: 2, Ballots: 1, Crashes: 1, Acquires: 1, Releases: 1, Tokens: 2}))
	steps := 0
	for i, g := range s.seen.states {
		if w := s.store.whole(g); w != g {
			t.Fatalf("state %d is not whole", i)
		}
		s.successors(g, func(to global, site int, _ uint32) bool {
			steps++
			if got, want := s.store.after(to, site, g.site[site]), s.store.whole(to); got != want {
				t.Fatalf("a step of site %d leads from %v to %v, with all looked at to %v", site, g, got, want)
			}
			return true
		})
		if broken := s.variant.Check(s.nodes(g)); broken != nil {
			t.Fatalf("state %d was not checked: %v", i, broken)
		}
	}
	more := 0
	for id := range s.store.fulls {
		for box := range s.store.boxes {
			n, ok := s.store.pairs.get(uint64(id+1)<<32 | uint64(box))
			if !ok {
				continue
			}
			more++
			got, want := s.store.answers[n], s.store.hear(uint32(id), uint32(box))
			if got.whole != want.whole || !slices.Equal(s.store.edges[got.next.from:got.next.to], s.store.edges[want.next.from:want.next.to]) {
				t.Fatalf("site %d that may hear %v: %v, with all looked at %v", id, s.store.boxes[box], got, want)
			}
		}
	}
	if steps < 100_000 || more < 10_000 {
		t.Errorf("only %d steps and %d answers", steps, more)
	}
}
