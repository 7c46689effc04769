package workload

import (
	"slices"

	"github.com/samya-db/samya/kvpart/cut"
)

// Snapshot is a copy of a graph at one instant. It may be used while the graph goes on.
// The next copy into it reuses its memory.
type Snapshot struct {
	// Vertices are the keys: vertex i of the built graph is Vertices[i].
	Vertices []Vertex
	graph    cut.Graph
	edges    []edge
	index    []int32 // of a vertex in Vertices, or -1
	fill     []int32
}

// stride is how many edges are built between two yields: some 50 us.
const stride = 2048

// Copy makes s a copy of g. It only reads through the vertices and edges of g once, and
// leaves all other work to Build.
func (g *Graph) Copy(s *Snapshot) {
	s.Vertices = s.Vertices[:0]
	s.index = slices.Grow(s.index[:0], len(g.vertices))[:len(g.vertices)]
	s.graph.Dims = g.opt.Dims
	s.graph.VertexWeights = s.graph.VertexWeights[:0]
	for i := range g.vertices {
		p := &g.vertices[i]
		if p.refs == 0 || p.removed {
			s.index[i] = -1
			continue
		}
		s.index[i] = int32(len(s.Vertices))
		s.Vertices = append(s.Vertices, Vertex(i))
		s.graph.VertexWeights = append(s.graph.VertexWeights, p.load[:g.opt.Dims]...)
	}
	s.edges = slices.Grow(s.edges[:0], g.edges.count)
	for _, e := range g.edges.slots {
		if e.pair != 0 {
			s.edges = append(s.edges, e)
		}
	}
}

// Build makes the graph of the copy: symmetric, and without removed vertices. It calls
// yield, if not nil, about every hundred microseconds. The graph belongs to the snapshot.
func (s *Snapshot) Build(yield func()) *cut.Graph {
	if yield == nil {
		yield = func() {}
	}
	g := &s.graph
	n := len(s.Vertices)
	g.Offsets = slices.Grow(g.Offsets[:0], n+1)[:n+1]
	clear(g.Offsets)
	kept := s.edges[:0]
	for part := range slices.Chunk(s.edges, stride) {
		for _, e := range part {
			v, w := s.index[e.pair>>32], s.index[uint32(e.pair)]
			if v < 0 || w < 0 {
				continue
			}
			g.Offsets[v+1]++
			g.Offsets[w+1]++
			kept = append(kept, edge{uint64(v)<<32 | uint64(w), e.weight})
		}
		yield()
	}
	s.edges = kept
	for i := range n {
		g.Offsets[i+1] += g.Offsets[i]
	}
	ends := 2 * len(s.edges)
	g.Neighbors = slices.Grow(g.Neighbors[:0], ends)[:ends]
	g.EdgeWeights = slices.Grow(g.EdgeWeights[:0], ends)[:ends]
	s.fill = append(s.fill[:0], g.Offsets[:n]...)
	for part := range slices.Chunk(s.edges, stride) {
		for _, e := range part {
			v, w := int32(e.pair>>32), int32(uint32(e.pair))
			i, j := s.fill[v], s.fill[w]
			s.fill[v], s.fill[w] = i+1, j+1
			g.Neighbors[i], g.EdgeWeights[i] = w, int32(e.weight)
			g.Neighbors[j], g.EdgeWeights[j] = v, int32(e.weight)
		}
		yield()
	}
	return g
}
