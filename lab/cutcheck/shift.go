package cutcheck

import (
	"math/rand/v2"
	"slices"

	"github.com/samya-db/samya/kvpart/cut"
)

// A Change is a way in which the load of a graph changes.
type Change string

// The changes. A vertex's load is its weights plus half the weights of its edges.
const (
	// Scattered doubles random vertices with a twentieth of the weight.
	Scattered Change = "scattered"
	// Hot doubles neighbouring vertices with a twentieth of the weight.
	Hot Change = "hot"
)

// Changes returns all changes.
func Changes() []Change { return []Change{Scattered, Hot} }

// Shift returns g after a change of share of its load. Vertices that hold this
// share of the weight (in the first dimension) double their weights. The edges
// between two such vertices double theirs.
func Shift(g *cut.Graph, change Change, share float64, seed uint64) *cut.Graph {
	n := len(g.Offsets) - 1
	r := rand.New(rand.NewPCG(seed, 0x7368696674))
	order := r.Perm(n)
	if change == Hot {
		order = near(g, order)
	}
	var sum int64
	for v := range n {
		sum += g.VertexWeights[v*g.Dims]
	}
	shifted := &cut.Graph{
		Offsets: g.Offsets, Neighbors: g.Neighbors, Dims: g.Dims,
		EdgeWeights: slices.Clone(g.EdgeWeights), VertexWeights: slices.Clone(g.VertexWeights),
	}
	left, hot := int64(share*float64(sum)), make([]bool, n)
	for _, v := range order {
		w := g.VertexWeights[v*g.Dims]
		if w > left {
			continue // a vertex that alone has more
		}
		left -= w
		hot[v] = true
		for d := range g.Dims {
			shifted.VertexWeights[v*g.Dims+d] *= 2
		}
	}
	for v := range n {
		for i := g.Offsets[v]; i < g.Offsets[v+1]; i++ {
			if hot[v] && hot[g.Neighbors[i]] {
				shifted.EdgeWeights[i] *= 2
			}
		}
	}
	return shifted
}

// near orders the vertices breadth first, from the first vertex of order. When no
// more vertices are in reach, it goes on from the next vertex of order.
func near(g *cut.Graph, order []int) []int {
	seen := make([]bool, len(order))
	var queue []int
	for _, first := range order {
		if seen[first] {
			continue
		}
		seen[first] = true
		queue = append(queue, first)
		for at := len(queue) - 1; at < len(queue); at++ {
			v := queue[at]
			for _, u := range g.Neighbors[g.Offsets[v]:g.Offsets[v+1]] {
				if !seen[u] {
					seen[u] = true
					queue = append(queue, int(u))
				}
			}
		}
	}
	return queue
}
