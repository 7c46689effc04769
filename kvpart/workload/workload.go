// Package workload is the graph of what is used together: a vertex a key,
// weighted by its use, an edge for two keys of one request. It is windowed and
// bounded in vertices and edges. It refuses to be used by two goroutines at a
// time, and to know what a key is.
package workload

import (
	"errors"
	"fmt"
)

// ErrOptions says that an option is out of its range; it is wrapped with which.
var ErrOptions = errors.New("bad option")

// What is recorded of one request.
const (
	// MaxKeys bounds the keys of a request.
	MaxKeys = 256
	// Reach is how many of the keys that follow a key in its request it is joined
	// with: up to Reach+1 keys make a clique. A longer request makes a band, whose
	// edges are linear in its length and hold it together as a clique does.
	Reach = 8
)

// The ranges of options.
const (
	MinVertices = MaxKeys
	MinEdges    = MaxKeys * Reach
	MaxWindow   = 1 << 22
	MaxVertices = 1 << 26
	MaxEdges    = 1 << 27
)

// Vertex is the place of a key in a graph. Places are dense, from 0 on, and one
// that is freed is used again.
type Vertex int32

// None is no vertex.
const None Vertex = -1

// Load is what a request weighs at each of its keys, by dimension.
type Load [2]uint32

// Options says what a graph remembers.
type Options struct {
	// Window is how many requests, the last ones: from 1 to MaxWindow; 0 for as many
	// as the bounds allow, old ones at less and less weight.
	Window int
	// Vertices and Edges bound the graph: from MinVertices to MaxVertices and from
	// MinEdges to MaxEdges. Requests leave the window earlier where it would not fit.
	Vertices, Edges int
	// Dims is how many weights a vertex has, 1 or 2.
	Dims int
	// Freed is told of each vertex whose last request left the window, unless it was
	// removed before. The place may be another key's afterwards.
	Freed func(Vertex)
}

// Graph is the graph of the last requests.
type Graph struct {
	opt      Options
	vertices []vertex
	free     []Vertex
	removed  int
	edges    edges
	ring     ring
}

// vertex is one key. refs is how often it stands in the window: its place is not
// given to another key before that is 0, for its requests name it until then.
type vertex struct {
	load    [2]int64
	refs    uint32
	removed bool
}

// New makes a graph of nothing, or fails with ErrOptions.
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
			return nil, fmt.Errorf("%w: %s of %d, not from %d to %d", ErrOptions, b.name, b.v, b.low, b.top)
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

// Reserve makes room for a request of n keys, at most MaxKeys, which is to be
// recorded next: it may free vertices, those of the request as well. It comes
// before Add.
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

// fits tells whether n new keys fit, none of which was used with another before.
func (g *Graph) fits(n int) bool {
	return g.taken()+n <= g.opt.Vertices && g.edges.count+pairs(n) <= g.opt.Edges
}

// taken is how many places are in use.
func (g *Graph) taken() int { return len(g.vertices) - len(g.free) }

// pairs is how many edges a request of n keys has at most.
func pairs(n int) int {
	if n <= Reach {
		return n * (n - 1) / 2
	}
	return Reach*(Reach-1)/2 + (n-Reach)*Reach
}

// Add returns a vertex for a key that has none. It is to be recorded at once.
func (g *Graph) Add() Vertex {
	if n := len(g.free); n > 0 {
		v := g.free[n-1]
		g.free = g.free[:n-1]
		return v
	}
	g.vertices = append(g.vertices, vertex{})
	return Vertex(len(g.vertices) - 1)
}

// Record counts a request for vs, for which there must be room, in their order; a
// key may stand there twice.
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
		for _, w := range vs[i+1 : min(i+1+Reach, len(vs))] {
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
		for _, w := range vs[i+1 : min(i+1+Reach, len(vs))] {
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

// release gives the place of v free.
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

// Remove takes a key that is no more out of the graph. Its place is kept until no
// request of the window names it, and counts towards the bounds.
func (g *Graph) Remove(v Vertex) {
	if p := &g.vertices[v]; !p.removed {
		p.removed = true
		g.removed++
	}
}

// Vertices is how many keys the graph has.
func (g *Graph) Vertices() int { return g.taken() - g.removed }

// Edges is how many pairs of keys the window has, those of removed keys included.
func (g *Graph) Edges() int { return g.edges.count }

// Requests is how many requests the window has, 0 without one.
func (g *Graph) Requests() int { return g.ring.requests }
