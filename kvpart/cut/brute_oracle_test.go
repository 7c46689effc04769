package cut_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/samya-db/samya/kvpart/cut"
)

// brute tries every partition of a small graph.
type brute struct {
	g    *cut.Graph
	k    int
	part []int32
	// most bounds the weight of a part, by dimension; nil for no bound.
	most    []float64
	weights [][]int64
	// leave is called with the cut and the weights of each partition within most. It
	// returns the cut from which on partitions are of no interest.
	leave func(cut int64, weights [][]int64) int64
	bound int64
}

// all calls leave once for all partitions that differ by the numbers of their parts
// alone.
func (b *brute) all() {
	b.part = make([]int32, len(b.g.Offsets)-1)
	b.weights = make([][]int64, b.g.Dims)
	for d := range b.weights {
		b.weights[d] = make([]int64, b.k)
	}
	b.bound = 1 << 62
	b.from(0, 0, 0)
}

// from places vertex v and the vertices behind it. The vertices before it are in parts
// below used, and cut sum.
func (b *brute) from(v, used int, sum int64) {
	if sum >= b.bound {
		return
	}
	if v == len(b.part) {
		b.bound = b.leave(sum, b.weights)
		return
	}
	for p := range min(used+1, b.k) {
		b.part[v] = int32(p)
		more, fits := sum, true
		for i := b.g.Offsets[v]; i < b.g.Offsets[v+1]; i++ {
			if u := b.g.Neighbors[i]; int(u) < v && b.part[u] != int32(p) {
				more += int64(b.g.EdgeWeights[i])
			}
		}
		for d := range b.weights {
			b.weights[d][p] += b.g.VertexWeights[v*b.g.Dims+d]
			fits = fits && (b.most == nil || float64(b.weights[d][p]) <= b.most[d])
		}
		if fits {
			b.from(v+1, max(used, p+1), more)
		}
		for d := range b.weights {
			b.weights[d][p] -= b.g.VertexWeights[v*b.g.Dims+d]
		}
	}
}

// means returns the mean weight of a part, by dimension.
func means(g *cut.Graph, k int) []float64 {
	m := make([]float64, g.Dims)
	for i, w := range g.VertexWeights {
		m[i%g.Dims] += float64(w) / float64(k)
	}
	return m
}

// leastCut returns the least cut with at most the balance in each dimension; false if
// there is none.
func leastCut(g *cut.Graph, k int, balance []float64) (int64, bool) {
	b := &brute{g: g, k: k, most: means(g, k)}
	for d := range b.most {
		b.most[d] *= balance[d] * (1 + 1e-9)
	}
	best, found := int64(0), false
	b.leave = func(cut int64, _ [][]int64) int64 {
		best, found = cut, true
		return cut
	}
	b.all()
	return best, found
}

// leastBalance returns the least possible balance, over the dimensions.
func leastBalance(g *cut.Graph, k int) float64 {
	m, best := means(g, k), 1e9
	b := &brute{g: g, k: k, leave: func(_ int64, weights [][]int64) int64 {
		most := 1.0
		for d := range weights {
			for _, w := range weights[d] {
				if m[d] > 0 {
					most = max(most, float64(w)/m[d])
				}
			}
		}
		best = min(best, most)
		return 1 << 62
	}}
	b.all()
	return best
}

// tiny draws a graph of at most 12 vertices, and the number of parts to cut it into.
func tiny(r *rand.Rand) (*cut.Graph, int) {
	k := 2 + r.IntN(3)
	n := k + r.IntN(13-k)
	if k == 4 {
		n = min(n, 10) // there are half a million partitions of 12
	}
	dims := 1 + r.IntN(4)/3
	heaviest, edges := 1+r.Int64N(4), r.IntN(3*n)
	rows := make([]map[int32]int32, n)
	for v := range rows {
		rows[v] = map[int32]int32{}
	}
	for range edges {
		u, v, w := r.Int32N(int32(n)), r.Int32N(int32(n)), 1+r.Int32N(9)
		if u != v {
			rows[u][v], rows[v][u] = w, w
		}
	}
	g := &cut.Graph{Offsets: []int32{0}, Dims: dims}
	for v := range rows {
		for u := range int32(n) {
			if w := rows[v][u]; w > 0 {
				g.Neighbors, g.EdgeWeights = append(g.Neighbors, u), append(g.EdgeWeights, w)
			}
		}
		g.Offsets = append(g.Offsets, int32(len(g.Neighbors)))
		for range dims {
			g.VertexWeights = append(g.VertexWeights, 1+r.Int64N(heaviest))
		}
	}
	return g, k
}

// TestAgainstAllPartitions holds cuts of small graphs against the best cuts. The
// partitioner need not find the best each time, but nearly always; its cut can never be
// better.
func TestAgainstAllPartitions(t *testing.T) {
	for _, imbalance := range []float64{.03, .3} {
		var graphs, feasible, within int
		var cuts, least int64
		var above float64
		r := rand.New(rand.NewPCG(1, 2))
		for range 400 {
			g, k := tiny(r)
			got, err := cut.Partition(t.Context(), g, cut.Options{Parts: k, Seed: 1, Imbalance: imbalance, Stretch: -1, Loose: -1})
			if err != nil {
				t.Fatal(err)
			}
			if best, ok := leastCut(g, k, got.Balance); !ok || got.Cut < best {
				t.Fatalf("%+v into %d: cut %d at balance %v, but nothing so balanced cuts less than %d (%v)", g, k, got.Cut, got.Balance, best, ok)
			}
			graphs++
			best, ok := leastCut(g, k, slices.Repeat([]float64{1 + imbalance}, g.Dims))
			switch {
			case !ok:
				above += slices.Max(got.Balance)/leastBalance(g, k) - 1
			case slices.Max(got.Balance) <= (1+imbalance)*(1+1e-9):
				feasible++
				within++
				cuts, least = cuts+got.Cut, least+best
			default:
				feasible++
			}
		}
		above /= float64(max(1, graphs-feasible))
		t.Logf("imbalance %v: %d graphs, %d can be balanced, %d are; they cut %d, %d can be; the others' balance is %.2f %% above the least",
			imbalance, graphs, feasible, within, cuts, least, 100*above)
		if feasible < 100 || graphs-feasible < 50 {
			t.Errorf("%d of %d graphs can be balanced: that tests nothing", feasible, graphs)
		}
		if within < feasible*97/100 {
			t.Errorf("%d of %d graphs are in balance", within, feasible)
		}
		if float64(cuts) > 1.03*float64(least) {
			t.Errorf("%d is cut, %d can be", cuts, least)
		}
		if above > .03 {
			t.Errorf("where no partition is in balance, the balance is %.2f %% above the least", 100*above)
		}
	}
}
