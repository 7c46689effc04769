package control

import (
	"math"
	"slices"

	"github.com/samya-db/samya/kvpart/cut"
)

// dataWeight is the weight of an edge of the graph relative to an edge between two
// neighbouring keys.
const dataWeight = 8

// order is the vertices of a graph in the order of their keys.
type order struct {
	vertices []int32
	// touching tells for each vertex whether no other key lies between it and the
	// previous vertex.
	touching []bool
	graph    cut.Graph
	before   []int32
	after    []int32
}

// neighbors gives the cut a reason to keep neighbouring keys together. A scan not seen
// yet may begin anywhere: between two runs of used keys in two partitions it crosses from
// the first to the second. A light edge between each two successive keys makes each
// partition a few long ranges, as long as that costs no edge of the graph. neighbors
// returns g itself if requests are not of ranges.
func (c *Controller[E]) neighbors(j *job[E], g *cut.Graph, yield func()) *cut.Graph {
	if c.opt.Policy.Replace || len(g.Neighbors) == 0 {
		return g
	}
	o := &j.order
	o.vertices, o.touching = o.vertices[:0], o.touching[:0]
	touching := false
	_ = c.ascend(j, func(e E) error { // visiting does not fail
		v := j.vertex(e)
		if v >= 0 {
			o.vertices, o.touching = append(o.vertices, v), append(o.touching, touching)
		}
		touching = v >= 0
		return nil
	}, yield)
	if !o.ranges(g) {
		return g
	}
	return o.add(g, yield)
}

// ranges reports whether requests are of ranges: most touching keys were used together,
// more than pairs would be.
func (o *order) ranges(g *cut.Graph) bool {
	pairs, together := 0, 0
	degree := func(v int32) int32 { return g.Offsets[v+1] - g.Offsets[v] }
	for i, touching := range o.touching {
		if !touching {
			continue
		}
		a, b := o.vertices[i-1], o.vertices[i]
		if degree(a) > degree(b) {
			a, b = b, a
		}
		if degree(a) == 0 { // used alone: tells nothing
			continue
		}
		pairs++
		if slices.Contains(g.Neighbors[g.Offsets[a]:g.Offsets[a+1]], b) {
			together++
		}
	}
	return 3*together > 2*pairs
}

// add returns g with the light edges.
func (o *order) add(g *cut.Graph, yield func()) *cut.Graph {
	n := len(g.Offsets) - 1
	o.before, o.after = slices.Grow(o.before[:0], n)[:n], slices.Grow(o.after[:0], n)[:n]
	for v := range n {
		o.before[v], o.after[v] = -1, -1
	}
	for i := 1; i < len(o.vertices); i++ {
		a, b := o.vertices[i-1], o.vertices[i]
		o.after[a], o.before[b] = b, a
	}
	to := &o.graph
	to.Dims, to.VertexWeights = g.Dims, g.VertexWeights
	to.Offsets = append(to.Offsets[:0], 0)
	to.Neighbors, to.EdgeWeights = to.Neighbors[:0], to.EdgeWeights[:0]
	for v := range int32(n) {
		if v%stride == stride-1 {
			yield()
		}
		before, after := o.before[v], o.after[v]
		for e := g.Offsets[v]; e < g.Offsets[v+1]; e++ {
			w := g.Neighbors[e]
			weight := dataWeight * int64(g.EdgeWeights[e])
			switch w {
			case before:
				weight++
				before = -1
			case after:
				weight++
				after = -1
			}
			to.Neighbors, to.EdgeWeights = append(to.Neighbors, w), append(to.EdgeWeights, int32(min(weight, math.MaxInt32)))
		}
		for _, w := range [2]int32{before, after} {
			if w >= 0 {
				to.Neighbors, to.EdgeWeights = append(to.Neighbors, w), append(to.EdgeWeights, 1)
			}
		}
		to.Offsets = append(to.Offsets, int32(len(to.Neighbors)))
	}
	return to
}
