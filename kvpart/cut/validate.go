package cut

import (
	"fmt"
	"math"
	"math/bits"
)

// Validate fails with the place if g is not as Graph says. It takes time in
// proportion to the size of g.
func (g *Graph) Validate() error {
	if g.Dims != 1 && g.Dims != 2 {
		return fmt.Errorf("%w: a vertex has %d weights, not 1 or 2", errGraph, g.Dims)
	}
	n := len(g.Offsets) - 1
	if n < 0 {
		return fmt.Errorf("%w: Offsets is empty: it has one more element than there are vertices", errGraph)
	}
	if n > math.MaxInt32-1 {
		return fmt.Errorf("%w: %d vertices, more than %d", errGraph, n, math.MaxInt32-1)
	}
	if len(g.VertexWeights) != n*g.Dims {
		return fmt.Errorf("%w: %d VertexWeights for %d vertices of %d each", errGraph, len(g.VertexWeights), n, g.Dims)
	}
	if len(g.Neighbors) != len(g.EdgeWeights) {
		return fmt.Errorf("%w: %d Neighbors and %d EdgeWeights", errGraph, len(g.Neighbors), len(g.EdgeWeights))
	}
	if g.Offsets[0] != 0 {
		return fmt.Errorf("%w: Offsets[0] is %d, not 0", errGraph, g.Offsets[0])
	}
	for v := range n {
		if g.Offsets[v+1] < g.Offsets[v] {
			return fmt.Errorf("%w: Offsets[%d] is %d, below the one before, %d", errGraph, v+1, g.Offsets[v+1], g.Offsets[v])
		}
	}
	if int(g.Offsets[n]) != len(g.Neighbors) {
		return fmt.Errorf("%w: Offsets ends with %d, there are %d Neighbors", errGraph, g.Offsets[n], len(g.Neighbors))
	}
	for i, w := range g.VertexWeights {
		if w < 0 {
			return fmt.Errorf("%w: vertex %d weighs %d", errGraph, i/g.Dims, w)
		}
	}
	return g.symmetric()
}

// symmetric checks the edges. It hashes each edge in both directions; the sums agree if
// every edge stands in the rows of both its ends. If they differ, it transposes the graph
// to find the place.
func (g *Graph) symmetric() error {
	var up, down uint64
	n := int32(len(g.Offsets) - 1)
	for v := range n {
		from, to := g.Offsets[v], g.Offsets[v+1]
		for e := from; e < to; e++ {
			u, w := g.Neighbors[e], g.EdgeWeights[e]
			switch {
			case u < 0 || u >= n:
				return fmt.Errorf("%w: vertex %d has neighbour %d of %d vertices", errGraph, v, u, n)
			case w <= 0:
				return fmt.Errorf("%w: the edge from %d to %d weighs %d", errGraph, v, u, w)
			case u > v:
				up += edgeHash(v, u, w)
			case u < v:
				down += edgeHash(u, v, w)
			default:
				return fmt.Errorf("%w: vertex %d is its own neighbour", errGraph, v)
			}
		}
	}
	if up == down {
		return nil
	}
	return g.oneWay()
}

func edgeHash(u, v, w int32) uint64 {
	hi, lo := bits.Mul64(uint64(u)<<32|uint64(v)^0x9e3779b97f4a7c15, uint64(w)*0xbf58476d1ce4e5b9^0x94d049bb133111eb)
	x := hi ^ lo ^ uint64(u)*0xd6e8feb86659fd93
	x ^= x >> 32
	return x * 0xff51afd7ed558ccd
}

// oneWay names an edge that stands in the row of only one of its ends.
func (g *Graph) oneWay() error {
	in := transpose(g)
	out := transpose(in) // g with its rows sorted
	for v := range len(g.Offsets) - 1 {
		a, b := in.Offsets[v], out.Offsets[v]
		for a < in.Offsets[v+1] || b < out.Offsets[v+1] {
			switch {
			case b == out.Offsets[v+1] || a < in.Offsets[v+1] && in.Neighbors[a] < out.Neighbors[b]:
				return fmt.Errorf("%w: the edge from %d to %d is not in the row of %[3]d", errGraph, in.Neighbors[a], v)
			case a == in.Offsets[v+1] || in.Neighbors[a] > out.Neighbors[b]:
				return fmt.Errorf("%w: the edge from %d to %d is not in the row of %[3]d", errGraph, v, out.Neighbors[b])
			case in.EdgeWeights[a] != out.EdgeWeights[b]:
				return fmt.Errorf("%w: the edge from %d to %d weighs %d, back it weighs %d",
					errGraph, v, out.Neighbors[b], out.EdgeWeights[b], in.EdgeWeights[a])
			}
			a++
			b++
		}
	}
	return fmt.Errorf("%w: not symmetric", errGraph)
}

// transpose reverses the edges of g; its rows are sorted.
func transpose(g *Graph) *Graph {
	n := len(g.Offsets) - 1
	t := &Graph{
		Offsets:     make([]int32, n+1),
		Neighbors:   make([]int32, len(g.Neighbors)),
		EdgeWeights: make([]int32, len(g.Neighbors)),
	}
	for _, u := range g.Neighbors {
		t.Offsets[u+1]++
	}
	for v := range n {
		t.Offsets[v+1] += t.Offsets[v]
	}
	at := make([]int32, n)
	copy(at, t.Offsets)
	for v := range n {
		for e := g.Offsets[v]; e < g.Offsets[v+1]; e++ {
			u := g.Neighbors[e]
			t.Neighbors[at[u]] = int32(v)
			t.EdgeWeights[at[u]] = g.EdgeWeights[e]
			at[u]++
		}
	}
	return t
}

// check fails with ErrOptions if o is not valid for g.
func (o *Options) check(g *Graph) error {
	switch {
	case o.Parts < 1 || o.Parts > MaxParts:
		return fmt.Errorf("%w: Parts is %d, not from 1 to %d", ErrOptions, o.Parts, MaxParts)
	case !(o.Imbalance >= 0 && o.Imbalance <= maxImbalance):
		return fmt.Errorf("%w: Imbalance is %v, not from 0 to %v", ErrOptions, o.Imbalance, maxImbalance)
	case !(o.Stretch <= maxImbalance):
		return fmt.Errorf("%w: Stretch is %v, above %v", ErrOptions, o.Stretch, maxImbalance)
	case !(o.Loose <= maxImbalance):
		return fmt.Errorf("%w: Loose is %v, above %v", ErrOptions, o.Loose, maxImbalance)
	case o.Start != nil && len(o.Start) != len(g.Offsets)-1:
		return fmt.Errorf("%w: Start is of %d vertices, the graph has %d", ErrOptions, len(o.Start), len(g.Offsets)-1)
	}
	for v, p := range o.Start {
		if p < -1 || int(p) >= o.Parts {
			return fmt.Errorf("%w: Start puts vertex %d into part %d of %d", ErrOptions, v, p, o.Parts)
		}
	}
	return nil
}
