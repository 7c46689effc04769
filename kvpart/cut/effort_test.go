package cut

import "testing"

// TestEffort holds the work on graphs against the work of partitioning each once.
func TestEffort(t *testing.T) {
	for _, c := range []struct {
		name   string
		g      *Graph
		trials int
	}{
		{"10,000 edges", communities(9, 30, 40, 3000, .3), 2},
		{"2,000 edges", communities(9, 6, 40, 620, .3), 2},
		{"115,000 edges", grid(240, 240), 1},
		{"200 edges", communities(9, 2, 20, 60, .3), 8},
	} {
		yields := 0
		o := Options{Parts: 4, Seed: 1, Yield: func() { yields++ }}
		partition(t, c.g, o)
		s := testSolver()
		once := 0
		s.yield = func() { once++ }
		p := &problem{l: levelOf(c.g), k: o.Parts}
		p.limit(s, .03)
		s.solve(p, make([]int32, p.l.n), mostTries)
		if n := p.trials(); n != c.trials {
			t.Errorf("%s (%d): %d trials, want %d", c.name, len(c.g.Neighbors)/2, n, c.trials)
		}
		t.Logf("%s (%d): %d yields, partitioned once %d", c.name, len(c.g.Neighbors)/2, yields, once)
		// A tightened trial works a little longer.
		if once > 9 && float64(yields) > 1.3*float64(c.trials)*float64(once)+2 {
			t.Errorf("%s: %d slices of work, partitioned once it takes %d", c.name, yields, once)
		}
	}
	two := newBuilder(2000, 2)
	for v := range two.n {
		two.edge(v, (v+1)%two.n, 1)
	}
	if n := (&problem{l: levelOf(two.graph()), k: 2}).trials(); n != manyTrials {
		t.Errorf("%d trials with two weights a vertex, want %d", n, manyTrials)
	}
}
