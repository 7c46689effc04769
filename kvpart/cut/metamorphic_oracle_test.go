package cut_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/samya-db/samya/kvpart/cut"
	"github.com/samya-db/samya/kvpart/cut/graphs"
)

// relabelled returns g with vertex v called names[v].
func relabelled(g *cut.Graph, names []int) *cut.Graph {
	n := len(names)
	old := make([]int, n)
	for v, name := range names {
		old[name] = v
	}
	h := &cut.Graph{Offsets: []int32{0}, Dims: g.Dims}
	for _, v := range old {
		for i := g.Offsets[v]; i < g.Offsets[v+1]; i++ {
			h.Neighbors = append(h.Neighbors, int32(names[g.Neighbors[i]]))
			h.EdgeWeights = append(h.EdgeWeights, g.EdgeWeights[i])
		}
		h.Offsets = append(h.Offsets, int32(len(h.Neighbors)))
		h.VertexWeights = append(h.VertexWeights, g.VertexWeights[v*g.Dims:(v+1)*g.Dims]...)
	}
	return h
}

// twice returns two copies of g that are not connected.
func twice(g *cut.Graph) *cut.Graph {
	n, ends := int32(len(g.Offsets)-1), int32(len(g.Neighbors))
	h := &cut.Graph{
		Offsets:       slices.Clone(g.Offsets),
		Neighbors:     slices.Clone(g.Neighbors),
		EdgeWeights:   slices.Repeat(g.EdgeWeights, 2),
		Dims:          g.Dims,
		VertexWeights: slices.Repeat(g.VertexWeights, 2),
	}
	for _, o := range g.Offsets[1:] {
		h.Offsets = append(h.Offsets, o+ends)
	}
	for _, u := range g.Neighbors {
		h.Neighbors = append(h.Neighbors, u+n)
	}
	return h
}

// scaled returns g with all weights of vertices and of edges multiplied.
func scaled(g *cut.Graph, vertices int64, edges int32) *cut.Graph {
	h := *g
	h.VertexWeights, h.EdgeWeights = slices.Clone(g.VertexWeights), slices.Clone(g.EdgeWeights)
	for i := range h.VertexWeights {
		h.VertexWeights[i] *= vertices
	}
	for i := range h.EdgeWeights {
		h.EdgeWeights[i] *= edges
	}
	return &h
}

func partition(t *testing.T, g *cut.Graph, o cut.Options) *cut.Result {
	t.Helper()
	r, err := cut.Partition(t.Context(), g, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// small is a small graph of a family, and the number of parts to cut it into.
type small struct {
	name string
	g    *cut.Graph
	k    int
}

// smallGraphs has a graph of each family.
func smallGraphs(t *testing.T) []small {
	t.Helper()
	var all []small
	for i, family := range graphs.Families() {
		g, err := family.Draw(300, 5)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, small{family.Name, g, 2 + 3*(i%3)})
	}
	return all
}

// near fails unless two cuts of g are alike, up to a share and .5 % of all edges.
func near(t *testing.T, g *cut.Graph, what string, got, want int64, share float64) {
	t.Helper()
	var all int64
	for _, w := range g.EdgeWeights {
		all += int64(w) / 2
	}
	if apart := float64(max(got-want, want-got)); apart > share*float64(want)+.005*float64(all)+1 {
		t.Errorf("%s: %d, want about %d", what, got, want)
	}
}

// The names of vertices mean nothing.
func TestRelabelledVertices(t *testing.T) {
	for _, c := range smallGraphs(t) {
		g, k := c.g, c.k
		t.Run(c.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, 4))
			h := relabelled(g, r.Perm(len(g.Offsets)-1))
			o := cut.Options{Parts: k, Seed: 1}
			near(t, g, "cut of relabelled vertices", partition(t, h, o).Cut, partition(t, g, o).Cut, .15)
		})
	}
}

// The unit of weights means nothing either.
func TestScaledWeights(t *testing.T) {
	for _, c := range smallGraphs(t) {
		g, k := c.g, c.k
		t.Run(c.name, func(t *testing.T) {
			o := cut.Options{Parts: k, Seed: 1}
			own := partition(t, g, o)
			near(t, g, "a third of the cut with edges of three times the weight", partition(t, scaled(g, 1, 3), o).Cut/3, own.Cut, .15)
			near(t, g, "cut with vertices of seven times the weight", partition(t, scaled(g, 7, 1), o).Cut, own.Cut, .15)
		})
	}
}

// Two copies are cut into halves between them, and into twice the parts about as well as
// a single copy. Stretch is off: a single copy may be worth it where two are not.
func TestTwoCopies(t *testing.T) {
	for _, c := range smallGraphs(t) {
		g, k := c.g, c.k
		t.Run(c.name, func(t *testing.T) {
			two := twice(g)
			if halves := partition(t, two, cut.Options{Parts: 2, Seed: 1}); halves.Cut != 0 || slices.Max(halves.Balance) > 1.03 {
				t.Errorf("of two copies %d is cut at balance %v, want none", halves.Cut, halves.Balance)
			}
			own := partition(t, g, cut.Options{Parts: k, Seed: 1, Stretch: -1})
			near(t, g, "cut of two copies into twice the parts", partition(t, two, cut.Options{Parts: 2 * k, Seed: 1, Stretch: -1}).Cut, 2*own.Cut, .3)
		})
	}
}

// A start that was cut well already is kept, but for moves that pay.
func TestStartIsKept(t *testing.T) {
	for _, c := range smallGraphs(t) {
		g, k := c.g, c.k
		t.Run(c.name, func(t *testing.T) {
			cold := partition(t, g, cut.Options{Parts: k, Seed: 1})
			warm := partition(t, g, cut.Options{Parts: k, Seed: 2, Start: cold.Parts})
			n := len(cold.Parts)
			if warm.Cut > cold.Cut || warm.Moved > n/10 || slices.Max(warm.Balance) > max(1.03, slices.Max(cold.Balance))*(1+1e-9) {
				t.Errorf("cut %d and balance %v became %d and %v, %d of %d vertices moved",
					cold.Cut, cold.Balance, warm.Cut, warm.Balance, warm.Moved, n)
			}
			// And a start that says nothing is a cold start.
			free := partition(t, g, cut.Options{Parts: k, Seed: 1, Start: slices.Repeat([]int32{-1}, n)})
			near(t, g, "cut from a start in no part", free.Cut, cold.Cut, .1)
			if free.Moved != 0 {
				t.Errorf("%d vertices moved that were in no part", free.Moved)
			}
		})
	}
}
