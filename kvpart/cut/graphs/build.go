package graphs

import (
	"slices"

	"github.com/samya-db/samya/kvpart/cut"
)

// builder collects weighted edges between vertices, in any order and repeated, and makes
// a graph of them.
type builder struct {
	vertices int
	halves   []half
	weights  []int64
	dims     int
}

// half is an edge as seen from an end.
type half struct {
	from, to, weight int32
}

// newBuilder returns a builder of a graph with vertices of equal weight.
func newBuilder(vertices int, weight int64) *builder {
	b := &builder{vertices: vertices, weights: make([]int64, vertices), dims: 1}
	for v := range b.weights {
		b.weights[v] = weight
	}
	return b
}

// edge adds weight to the edge between u and v. It ignores an edge from a vertex to
// itself.
func (b *builder) edge(u, v, weight int32) {
	if u != v {
		b.halves = append(b.halves, half{u, v, weight}, half{v, u, weight})
	}
}

// request adds the share of a request on keys to a workload graph: 1 to each vertex, and
// 1 to each edge between two keys.
func (b *builder) request(keys ...int32) {
	for i, u := range keys {
		b.weights[u]++
		for _, v := range keys[:i] {
			b.edge(u, v, 1)
		}
	}
}

// graph adds up the edges.
func (b *builder) graph() *cut.Graph {
	// The edges are sorted by the far end and then, stably, by the near end. So each row
	// is in the order of its neighbours.
	rows := b.byFrom(b.byTo(b.halves))
	g := &cut.Graph{
		Offsets:       make([]int32, 1, b.vertices+1),
		Dims:          b.dims,
		VertexWeights: b.weights,
	}
	at := 0
	for v := range int32(b.vertices) {
		began := len(g.Neighbors)
		for ; at < len(rows) && rows[at].from == v; at++ {
			h := rows[at]
			if last := len(g.Neighbors) - 1; last >= began && g.Neighbors[last] == h.to {
				g.EdgeWeights[last] += h.weight
				continue
			}
			g.Neighbors = append(g.Neighbors, h.to)
			g.EdgeWeights = append(g.EdgeWeights, h.weight)
		}
		g.Offsets = append(g.Offsets, int32(len(g.Neighbors)))
	}
	g.Neighbors, g.EdgeWeights = slices.Clip(g.Neighbors), slices.Clip(g.EdgeWeights)
	return g
}

func (b *builder) byFrom(halves []half) []half {
	return countingSort(halves, b.vertices, func(h half) int32 { return h.from })
}

func (b *builder) byTo(halves []half) []half {
	return countingSort(halves, b.vertices, func(h half) int32 { return h.to })
}

// countingSort returns halves stably sorted by a key below n.
func countingSort(halves []half, n int, key func(half) int32) []half {
	next := make([]int, n+1)
	for _, h := range halves {
		next[key(h)+1]++
	}
	for i := range n {
		next[i+1] += next[i]
	}
	sorted := make([]half, len(halves))
	for _, h := range halves {
		sorted[next[key(h)]] = h
		next[key(h)]++
	}
	return sorted
}
