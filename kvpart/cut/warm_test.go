package cut

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// testSolver is a solver without a job.
func testSolver() *solver {
	s := &solver{pace: pace{ctx: context.Background()}, rng: (&Options{Seed: 1}).chance()}
	s.rest()
	return s
}

func levelOf(g *Graph) *level {
	return &level{n: len(g.Offsets) - 1, dims: g.Dims, off: g.Offsets, adj: g.Neighbors, ew: g.EdgeWeights, vw: g.VertexWeights}
}

// TestSpreadShiftsBorders lets the first of some parts in a row be too heavy, and the
// last have room: each gives to the next, and no border is added.
func TestSpreadShiftsBorders(t *testing.T) {
	const k, each = 5, 100
	b := newBuilder(k*each, 1)
	at := make([]int32, b.n)
	for v := range b.n {
		b.vw[v], at[v] = 1, int32(v/each)
		if v > 0 {
			b.edge(v-1, v, 1)
		}
	}
	for v := range each / 2 {
		b.vw[v] = 2
	}
	p := &problem{l: levelOf(b.graph()), k: k}
	s := testSolver()
	p.limit(s, .03)
	st := s.newState(p.l.n, k, p.maxw)
	copy(st.part, at)
	st.load(p.l, nil)
	if st.over == 0 {
		t.Fatal("no part is too heavy")
	}
	st.spread()
	if st.over > epsilon || st.cut != k-1 {
		t.Errorf("cut %d, want %d; too heavy by %v: %v of %v", st.cut, k-1, st.over, st.pw, st.maxw)
	}
	// 50 too much; each part has room for 13.
	if n := moved(st.part[:p.l.n], at); n > 4*37+2*13 {
		t.Errorf("%d vertices moved", n)
	}
}

// TestBondsAreCounted holds the cut of a state, bonds included, against a count of its
// own, after any moves.
func TestBondsAreCounted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := anyGraph(t)
		n, k := len(g.Offsets)-1, rapid.IntRange(2, 6).Draw(t, "k")
		part := rapid.SliceOfN(rapid.Int32Range(0, int32(k-1)), n, n)
		l := levelOf(g)
		l.vw = fitVertices(g.VertexWeights, g.Dims)
		l.home = part.Draw(t, "home")
		l.bond = rapid.SliceOfN(rapid.Int32Range(0, 9), n, n).Draw(t, "bonds")
		st := testSolver().newState(n, k, make([]int64, k*g.Dims))
		copy(st.part, part.Draw(t, "part"))
		st.load(l, nil)
		want := func() int64 {
			sum := l.cut(st.part)
			for v, h := range l.home {
				if st.part[v] != h {
					sum += int64(l.bond[v])
				}
			}
			return sum
		}
		if st.cut != want() {
			t.Fatalf("at first %d, want %d", st.cut, want())
		}
		for range rapid.IntRange(0, 40).Draw(t, "moves") {
			v, to := rapid.Int32Range(0, int32(n-1)).Draw(t, "v"), rapid.Int32Range(0, int32(k-1)).Draw(t, "to")
			if st.part[v] == to {
				continue
			}
			before := st.cut
			if gain := st.move(v, to); st.cut != want() || before-gain != st.cut {
				t.Fatalf("%d to %d: %d, want %d, gain %d", v, to, st.cut, want(), gain)
			}
		}
	})
}

// TestUnswap: unswap returns the items that need not have moved.
func TestUnswap(t *testing.T) {
	it := items{1, []int64{5, 5, 5, 5, 1, 1}}
	was := []int32{0, 0, 1, 1, 0, 0}
	for _, c := range []struct {
		name       string
		part, want []int32
		most       int64
	}{
		{"all home", []int32{1, 0, 0, 1, 1, 0}, was, 12},
		{"one stays away", []int32{1, 0, 0, 1, 1, 0}, []int32{0, 0, 1, 1, 1, 0}, 11},
	} {
		b := newBins(2, []int64{22}, []int64{c.most, c.most})
		part := slices.Clone(c.part)
		for i, p := range part {
			b.put(int(p), it.of(int32(i)))
		}
		testSolver().unswap(b, it, part, was)
		if !slices.Equal(part, c.want) {
			t.Errorf("%s: %v, want %v", c.name, part, c.want)
		}
	}
}

// heat doubles the weight of vertices around first, a twentieth of the total weight.
func heat(g *Graph, first int32) *Graph {
	n := int32(len(g.Offsets) - 1)
	hot := *g
	hot.VertexWeights = slices.Clone(g.VertexWeights)
	left := int64(0)
	for _, w := range g.VertexWeights {
		left += w
	}
	left /= 20
	seen := make([]bool, n)
	for root := range n {
		queue := []int32{(first + root) % n}
		for len(queue) > 0 {
			v := queue[0]
			queue = queue[1:]
			if seen[v] {
				continue
			}
			if left < g.VertexWeights[v] {
				return &hot
			}
			seen[v] = true
			left -= g.VertexWeights[v]
			hot.VertexWeights[v] *= 2
			queue = append(queue, g.Neighbors[g.Offsets[v]:g.Offsets[v+1]]...)
		}
	}
	return &hot
}

// hubbed is 60 hubs with 20 leaves each; some requests pair leaves of different hubs.
func hubbed(seed uint64) *Graph {
	r := rand.New(rand.NewPCG(seed, 9))
	b := newBuilder(60*21, 1)
	for range 6 * b.n {
		org := r.IntN(60) * 21
		b.request(org, org+1+r.IntN(20))
		if r.IntN(10) == 0 {
			b.request(org+1+r.IntN(20), r.IntN(60)*21+1+r.IntN(20))
		}
	}
	return b.graph()
}

// TestWarmStartAfterHeat heats graphs in a single place: a warm start moves less than a
// fifth as much as a cold start, and cuts 1.05 times as much at most.
func TestWarmStartAfterHeat(t *testing.T) {
	for _, c := range []struct {
		name string
		g    *Graph
		k    []int
	}{
		{"communities", communities(5, 64, 40, 20_000, .05), []int{4, 8, 16}},
		{"trees", tree(100, 10), []int{4, 8}},
		{"hubs", hubbed(1), []int{2, 4}},
	} {
		for _, k := range c.k {
			for _, first := range []int32{0, 777} {
				start := partition(t, c.g, Options{Parts: k, Seed: 1}).Parts
				hot := heat(c.g, first)
				cold := partition(t, hot, Options{Parts: k, Seed: 1})
				coldMoved := Relabel(cold.Parts, start, k)
				warm := partition(t, hot, Options{Parts: k, Seed: 1, Start: start})
				if 5*warm.Moved >= coldMoved && warm.Moved > 0 || float64(warm.Cut) > 1.05*float64(cold.Cut) {
					t.Errorf("%s into %d, heat at %d: warm moves %d and cuts %d, cold %d and %d", c.name, k, first, warm.Moved, warm.Cut, coldMoved, cold.Cut)
				}
			}
		}
	}
}
