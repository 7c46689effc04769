// Package workload is the graph of keys used together. It has a vertex for each key,
// weighted by use, and an edge for each two keys of the same request. The graph is
// windowed and bounded in vertices and edges. It is not safe for concurrent use, and does
// not know the meaning of a key.
package workload

import (
	"errors"
	"fmt"
)

// errOptions says that an option is out of its range; it is wrapped with which.
var errOptions = errors.New("bad option")

// The bounds of a recorded request.
const (
	// MaxKeys bounds the keys of a request.
	MaxKeys = 256
	// reach is how many of the following keys of its request a key is joined with. Up to
	// reach+1 keys make a clique. A longer request makes a band: its edges are linear in
	// its length, and hold it together as a clique does.
	reach = 8
)

// The ranges of options.
const (
	MinVertices = MaxKeys
	MinEdges    = MaxKeys * reach
	MaxWindow   = 1 << 22
	MaxVertices = 1 << 26
	MaxEdges    = 1 << 27
)

// Vertex is the place of a key in a graph. Places are dense, from 0 on; freed places are
// reused.
type Vertex int32

// None is no vertex.
const None Vertex = -1

// Load is the weight that a request adds to each of its keys, by dimension.
type Load [2]uint32

// Options bounds the memory of a graph.
type Options struct {
	// Window is how many of the last requests count, from 1 to MaxWindow. With 0 as many
	// count as the bounds allow, and the weight of old requests halves from time to time.
	Window int
	// Vertices and Edges bound the graph: from MinVertices to MaxVertices and from
	// MinEdges to MaxEdges. Requests leave the window early if the graph would exceed
	// these bounds.
	Vertices, Edges int
	// Dims is the number of weights of a vertex, 1 or 2.
	Dims int
	// Freed is told of each vertex that leaves with its last request, unless it was
	// removed before. The place may belong to another key afterwards.
	Freed func(Vertex)
}

// Graph is the graph of the last requests. Create it with New.
type Graph struct {
	opt      Options
	vertices []vertex
	free     []Vertex
	removed  int
	edges    edges
	ring     ring
}

// vertex is a key. refs counts its occurrences in the window. Requests name the vertex
// until refs is 0; only then may its place go to another key.
type vertex struct {
	load    [2]int64
	refs    uint32
	removed bool
}

// New makes an empty graph, or fails if an option is out of range.
func New(o Options) (*Graph, error) {
	for _, b := range []struct {
		name        string
		v, low, top int
	}{
		{"window", o.Window, 0, MaxWindow},
		{"vertices", o.Vertices, MinVertices, MaxVertices},
		{"edges", o.Edges, MinEdges, MaxEdges},
		{"dimensions", o.Dims, 1, 2},
	} {
		if b.v < b.low || b.v > b.top {
			return nil, fmt.Errorf("%w: %s of %d, not from %d to %d", errOptions, b.name, b.v, b.low, b.top)
		}
	}
	if o.Freed == nil {
		o.Freed = func(Vertex) {}
	}
	g := &Graph{opt: o, edges: newEdges()}
	if o.Window > 0 {
		g.ring = newRing()
	}
	return g, nil
}

// Reserve makes room for the next request to be recorded, of n keys, at most MaxKeys. It
// may free vertices, even vertices of that request. Call it before Add.
func (g *Graph) Reserve(n int) {
	if g.opt.Window == 0 {
		if !g.fits(n) {
			g.age(n)
		}
		return
	}
	for g.ring.requests > 0 && (g.ring.requests >= g.opt.Window || !g.fits(n) || !g.ring.fits(n)) {
		g.expire()
	}
}

// fits reports whether n new keys fit, without a known edge among them.
func (g *Graph) fits(n int) bool {
	return g.taken()+n <= g.opt.Vertices && g.edges.count+pairs(n) <= g.opt.Edges
}

// taken returns the number of places in use.
func (g *Graph) taken() int { return len(g.vertices) - len(g.free) }

// pairs returns the most edges of a request of n keys.
func pairs(n int) int {
	if n <= reach {
		return n * (n - 1) / 2
	}
	return reach*(reach-1)/2 + (n-reach)*reach
}

// Add returns a vertex for a key that has none. Record it at once.
func (g *Graph) Add() Vertex {
	if n := len(g.free); n > 0 {
		v := g.free[n-1]
		g.free = g.free[:n-1]
		return v
	}
	g.vertices = append(g.vertices, vertex{})
	return Vertex(len(g.vertices) - 1)
}

// Record counts a request for vs, in their order. There must be room for it; see Reserve.
// A key may occur twice.
func (g *Graph) Record(vs []Vertex, load Load) {
	if g.opt.Window > 0 {
		g.ring.push(vs, load)
	}
	g.edges.touch(vs)
	for i, v := range vs {
		p := &g.vertices[v]
		p.refs++
		p.load[0] += int64(load[0])
		p.load[1] += int64(load[1])
		for _, w := range vs[i+1 : min(i+1+reach, len(vs))] {
			if v != w {
				g.edges.add(v, w)
			}
		}
	}
}

// expire takes the oldest request back.
func (g *Graph) expire() {
	vs, load := g.ring.pop()
	g.edges.touch(vs)
	for i, v := range vs {
		for _, w := range vs[i+1 : min(i+1+reach, len(vs))] {
			if v != w {
				g.edges.sub(v, w)
			}
		}
		p := &g.vertices[v]
		p.load[0] -= int64(load[0])
		p.load[1] -= int64(load[1])
		if p.refs--; p.refs == 0 {
			g.release(v)
		}
	}
}

// release frees the place of v.
func (g *Graph) release(v Vertex) {
	p := &g.vertices[v]
	if p.removed {
		g.removed--
	} else {
		g.opt.Freed(v)
	}
	*p = vertex{}
	g.free = append(g.free, v)
}

// Remove takes a key that is gone out of the graph. Its place is kept until no request of
// the window names it, and counts towards the bounds.
func (g *Graph) Remove(v Vertex) {
	if p := &g.vertices[v]; !p.removed {
		p.removed = true
		g.removed++
	}
}

// Vertices returns the number of keys in the graph.
func (g *Graph) Vertices() int { return g.taken() - g.removed }

// Edges returns the number of pairs of keys in the window, pairs of removed keys
// included.
func (g *Graph) Edges() int { return g.edges.count }

// Requests returns the number of requests in the window, 0 without a window.
func (g *Graph) Requests() int { return g.ring.requests }
