package metis

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/samya-db/samya/kvpart/cut"
)

// errFormat says that a file of a graph or of parts is malformed. It is wrapped with the
// line number, from 1, and the fault in the line.
var errFormat = errors.New("bad file")

// The bounds of a graph that is read: its offsets have 32 bits.
const (
	maxVertices = math.MaxInt32 - 1
	maxEdges    = math.MaxInt32 / 2
)

// Read reads a graph in the format of METIS (manual of version 5, section 4.1). The
// first line is "vertices edges [fmt [ncon]]". Then follows a line a vertex, numbered
// from 1, with its size (fmt 1xx), its weights (fmt x1x, as many as ncon, at most 2), and
// its neighbours, each followed by the edge's weight (fmt xx1). Lines that begin with %
// are comments.
//
// The sizes, nil if the file has none, are the costs of moving vertices; package cut
// does not use them. A file that is not in the format fails with the line, also if its
// graph is not symmetric. Rows keep the order of the file.
func Read(r io.Reader) (g *cut.Graph, sizes []int64, err error) {
	f := &reader{lex: newLexer(r)}
	if err := f.header(); err != nil {
		return nil, nil, err
	}
	f.g = &cut.Graph{Offsets: []int32{0}, Dims: max(f.dims, 1)}
	for v := range f.vertices {
		if err := f.vertex(v); err != nil {
			return nil, nil, err
		}
	}
	if err := f.end(); err != nil {
		return nil, nil, err
	}
	if err := f.symmetric(); err != nil {
		return nil, nil, err
	}
	return f.g, f.sizes, nil
}

// reader is a file that is being read. Its allocations follow the data, not the
// claims of the header.
type reader struct {
	lex                *lexer
	vertices, edges    int32
	sized, edgeWeights bool
	// dims is the number of weights the file has for a vertex, 0 for none.
	dims  int
	g     *cut.Graph
	sizes []int64
	// sums are the sums of the vertex weights so far, by dimension.
	sums [2]int64
	// lines are the line numbers of the vertices.
	lines []int
}

// header reads the first line that is no comment.
func (f *reader) header() error {
	f.lex.skipComments()
	var fields []int64
	for {
		n, ok, err := f.lex.number()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if fields = append(fields, n); len(fields) > 4 {
			return f.lex.fail("more than 4 numbers in the header: vertices, edges, fmt, ncon")
		}
	}
	if len(fields) < 2 {
		return f.lex.fail("%d numbers in the header, want vertices, edges and, if need be, fmt and ncon", len(fields))
	}
	if fields[0] < 0 || fields[0] > maxVertices {
		return f.lex.fail("%d vertices, want 0 to %d", fields[0], maxVertices)
	}
	if fields[1] < 0 || fields[1] > maxEdges {
		return f.lex.fail("%d edges, want 0 to %d", fields[1], maxEdges)
	}
	f.vertices, f.edges = int32(fields[0]), int32(fields[1])
	if err := f.kinds(fields[2:]); err != nil {
		return err
	}
	return f.lex.endLine()
}

// kinds reads fmt and ncon, which say which numbers follow for each vertex.
func (f *reader) kinds(fields []int64) error {
	if len(fields) == 0 {
		return nil
	}
	// fmt has three digits. Leading digits may be missing.
	code := fields[0]
	if code < 0 || code > 111 || code%10 > 1 || code/10%10 > 1 {
		return f.lex.fail("fmt %d, want three digits 0 or 1: sizes, vertex weights, edge weights", code)
	}
	f.sized, f.edgeWeights = code/100 == 1, code%10 == 1
	if code/10%10 == 1 {
		f.dims = 1
	}
	if len(fields) == 1 || fields[1] == 0 {
		return nil
	}
	if f.dims == 0 && fields[1] > 0 {
		return f.lex.fail("ncon %d, but fmt %d has no vertex weights", fields[1], code)
	}
	if fields[1] < 1 || fields[1] > 2 {
		return f.lex.fail("ncon %d weights a vertex, want 1 or 2", fields[1])
	}
	f.dims = int(fields[1])
	return nil
}

// vertex reads the line of vertex v.
func (f *reader) vertex(v int32) error {
	f.lex.skipComments()
	if f.lex.atEnd() {
		return f.lex.fail("the file ends after %d vertices of %d", v, f.vertices)
	}
	f.lines = append(f.lines, f.lex.line)
	if f.sized {
		size, ok, err := f.lex.number()
		if err != nil {
			return err
		}
		if !ok || size < 0 {
			return f.lex.fail("vertex %d: want a size of at least 0 first", v+1)
		}
		f.sizes = append(f.sizes, size)
	}
	if err := f.weights(v); err != nil {
		return err
	}
	for {
		more, err := f.neighbour(v)
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	f.g.Offsets = append(f.g.Offsets, int32(len(f.g.Neighbors)))
	return f.lex.endLine()
}

// weights reads the weights of vertex v.
func (f *reader) weights(v int32) error {
	if f.dims == 0 {
		f.g.VertexWeights = append(f.g.VertexWeights, 1)
	}
	for d := range f.dims {
		w, ok, err := f.lex.number()
		if err != nil {
			return err
		}
		if !ok || w < 0 {
			return f.lex.fail("vertex %d: want %d weights of at least 0", v+1, f.dims)
		}
		if f.sums[d] > math.MaxInt64-w {
			return f.lex.fail("vertex %d: all weights together are above %d", v+1, int64(math.MaxInt64))
		}
		f.sums[d] += w
		f.g.VertexWeights = append(f.g.VertexWeights, w)
	}
	return nil
}

// neighbour reads the next neighbour of vertex v, if any.
func (f *reader) neighbour(v int32) (more bool, err error) {
	u, ok, err := f.lex.number()
	if err != nil || !ok {
		return false, err
	}
	weight := int64(1)
	if f.edgeWeights {
		if weight, ok, err = f.lex.number(); err != nil {
			return false, err
		}
		if !ok {
			return false, f.lex.fail("vertex %d: the edge to %d has no weight", v+1, u)
		}
	}
	switch {
	case u < 1 || u > int64(f.vertices):
		return false, f.lex.fail("vertex %d: neighbour %d, want 1 to %d", v+1, u, f.vertices)
	case u == int64(v)+1:
		return false, f.lex.fail("vertex %d is its own neighbour", v+1)
	case weight < 1 || weight > math.MaxInt32:
		return false, f.lex.fail("vertex %d: the edge to %d weighs %d, want 1 to %d", v+1, u, weight, math.MaxInt32)
	case len(f.g.Neighbors) >= 2*int(f.edges):
		return false, f.lex.fail("vertex %d: more neighbours than the header's %d edges have ends", v+1, f.edges)
	}
	f.g.Neighbors = append(f.g.Neighbors, int32(u-1))
	f.g.EdgeWeights = append(f.g.EdgeWeights, int32(weight))
	return true, nil
}

// end checks that nothing follows the last vertex, and that all edges came.
func (f *reader) end() error {
	for f.lex.skipComments(); !f.lex.atEnd(); f.lex.skipComments() {
		_, more, err := f.lex.number()
		if err != nil {
			return err
		}
		if more {
			return f.lex.fail("more lines than the header's %d vertices", f.vertices)
		}
		if err := f.lex.endLine(); err != nil {
			return err
		}
	}
	if f.lex.err != nil || len(f.g.Neighbors) != 2*int(f.edges) {
		return f.lex.fail("%d neighbours in all, want 2 for each of the header's %d edges", len(f.g.Neighbors), f.edges)
	}
	return nil
}

// symmetric checks that each edge stands at both ends, once, with the same weight.
func (f *reader) symmetric() error {
	back := transposed(f.g)
	forth := transposed(back) // the rows of f.g, sorted
	for v := range f.vertices {
		neighbors, _ := row(forth, v)
		for i := 1; i < len(neighbors); i++ {
			if neighbors[i-1] == neighbors[i] {
				return f.fail(v, "vertex %d has its neighbour %d twice", v+1, neighbors[i]+1)
			}
		}
	}
	for v := range f.vertices {
		neighbors, weights := row(forth, v)
		others, backWeights := row(back, v)
		for i := range max(len(neighbors), len(others)) {
			switch {
			case i == len(neighbors) || i < len(others) && others[i] < neighbors[i]:
				return f.fail(v, "vertex %d has no neighbour %d, which has it", v+1, others[i]+1)
			case i == len(others) || neighbors[i] < others[i]:
				return f.fail(v, "vertex %d has a neighbour %d, which has it not", v+1, neighbors[i]+1)
			case weights[i] != backWeights[i]:
				return f.fail(v, "the edge from %d to %d weighs %d, and %d from there", v+1, neighbors[i]+1, weights[i], backWeights[i])
			}
		}
	}
	return nil
}

// fail returns errFormat at the line of vertex v.
func (f *reader) fail(v int32, format string, args ...any) error {
	return fmt.Errorf("%w: line %d: %s", errFormat, f.lines[v], fmt.Sprintf(format, args...))
}

// row returns the neighbours of vertex v and the weights of the edges to them.
func row(g *cut.Graph, v int32) (neighbors, weights []int32) {
	from, to := g.Offsets[v], g.Offsets[v+1]
	return g.Neighbors[from:to], g.EdgeWeights[from:to]
}

// transposed returns g with all edges reversed and rows sorted, and without vertex
// weights.
func transposed(g *cut.Graph) *cut.Graph {
	t := &cut.Graph{
		Offsets:     make([]int32, len(g.Offsets)),
		Neighbors:   make([]int32, len(g.Neighbors)),
		EdgeWeights: make([]int32, len(g.Neighbors)),
	}
	for _, u := range g.Neighbors {
		t.Offsets[u+1]++
	}
	for v := range len(g.Offsets) - 1 {
		t.Offsets[v+1] += t.Offsets[v]
	}
	next := slices.Clone(t.Offsets)
	for v := range len(g.Offsets) - 1 {
		for i := g.Offsets[v]; i < g.Offsets[v+1]; i++ {
			u := g.Neighbors[i]
			t.Neighbors[next[u]], t.EdgeWeights[next[u]] = int32(v), g.EdgeWeights[i]
			next[u]++
		}
	}
	return t
}
