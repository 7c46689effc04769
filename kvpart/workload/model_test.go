package workload

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// picture is a graph told plainly: by key, and by pair of keys, the lower first.
// Each life of a key, from its creation to its removal, is a number of its own.
type picture struct {
	Loads map[int]Load
	Edges map[[2]int]int
}

// asked is a request of the model.
type asked struct {
	keys []int
	load Load
}

// draw builds the picture of requests from nothing.
func draw(requests []asked, removed map[int]bool, dims int) picture {
	p := picture{map[int]Load{}, map[[2]int]int{}}
	for _, r := range requests {
		for i, k := range r.keys {
			if removed[k] {
				continue
			}
			l := p.Loads[k]
			for d := range dims {
				l[d] += r.load[d]
			}
			p.Loads[k] = l
			for j := i + 1; j < len(r.keys) && j <= i+reach; j++ {
				if o := r.keys[j]; o != k && !removed[o] {
					p.Edges[[2]int{min(k, o), max(k, o)}]++
				}
			}
		}
	}
	return p
}

// model is a graph, and the requests that it should show.
type model struct {
	t       require
	g       *Graph
	opt     Options
	of      map[int]Vertex // of the living keys the graph has
	key     map[Vertex]int
	asked   []asked
	removed map[int]bool
	snap    Snapshot
}

type require interface {
	Fatalf(format string, args ...any)
	Helper()
}

func newModel(t require, o Options) *model {
	m := &model{t: t, opt: o, of: map[int]Vertex{}, key: map[Vertex]int{}, removed: map[int]bool{}}
	o.Freed = func(v Vertex) {
		k, ok := m.key[v]
		if !ok {
			t.Fatalf("vertex %d was freed and has no key", v)
		}
		delete(m.of, k)
		delete(m.key, v)
	}
	g, err := New(o)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	m.g = g
	return m
}

func (m *model) record(keys []int, load Load) {
	m.t.Helper()
	m.g.Reserve(len(keys))
	var vs []Vertex
	for _, k := range keys {
		v, ok := m.of[k]
		if !ok {
			v = m.g.Add()
			if old, taken := m.key[v]; taken {
				m.t.Fatalf("vertex %d of key %d is given to key %d", v, old, k)
			}
			m.of[k], m.key[v] = v, k
		}
		vs = append(vs, v)
	}
	m.g.Record(vs, load)
	m.asked = append(m.asked, asked{keys, load})
	if v, e := m.g.taken(), m.g.Edges(); v > m.opt.Vertices || e > m.opt.Edges {
		m.t.Fatalf("%d vertices and %d edges, bounds %d and %d", v, e, m.opt.Vertices, m.opt.Edges)
	}
	if r := m.g.Requests(); r > m.opt.Window {
		m.t.Fatalf("%d requests in a window of %d", r, m.opt.Window)
	}
}

func (m *model) remove(k int) {
	if v, ok := m.of[k]; ok {
		m.g.Remove(v)
		delete(m.of, k)
		delete(m.key, v)
	}
	m.removed[k] = true
}

// picture reads the graph's snapshot, which must be symmetric.
func (m *model) picture() picture {
	m.t.Helper()
	m.g.Copy(&m.snap)
	g := m.snap.Build(nil)
	p := picture{map[int]Load{}, map[[2]int]int{}}
	both := map[[2]int]int{}
	for i, v := range m.snap.Vertices {
		k, ok := m.key[v]
		if !ok {
			m.t.Fatalf("vertex %d is in the snapshot and has no key", v)
		}
		var l Load
		for d := range m.opt.Dims {
			l[d] = uint32(g.VertexWeights[i*m.opt.Dims+d])
		}
		p.Loads[k] = l
		for e := g.Offsets[i]; e < g.Offsets[i+1]; e++ {
			o := m.key[m.snap.Vertices[g.Neighbors[e]]]
			if o == k {
				m.t.Fatalf("key %d is its own neighbour", k)
			}
			if _, twice := both[[2]int{k, o}]; twice {
				m.t.Fatalf("the edge of %d and %d stands twice in one row", k, o)
			}
			both[[2]int{k, o}] = int(g.EdgeWeights[e])
		}
	}
	for ends, w := range both {
		if o := both[[2]int{ends[1], ends[0]}]; o != w {
			m.t.Fatalf("the edge of %v weighs %d one way and %d the other", ends, w, o)
		}
		if ends[0] < ends[1] {
			p.Edges[ends] = w
		}
	}
	if n := m.g.Vertices(); n != len(p.Loads) {
		m.t.Fatalf("%d vertices, %d in the snapshot", n, len(p.Loads))
	}
	return p
}

// check holds the graph against a graph built from the last requests alone.
func (m *model) check() {
	m.t.Helper()
	last := m.asked[len(m.asked)-m.g.Requests():]
	if diff := cmp.Diff(draw(last, m.removed, m.opt.Dims), m.picture()); diff != "" {
		m.t.Fatalf("the graph of the last %d requests (-want +got):\n%s", len(last), diff)
	}
}

// TestWindow runs random requests and removals: the graph is at each time exactly the
// graph of the last requests.
func TestWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t, Options{
			Window:   rapid.IntRange(1, 60).Draw(t, "window"),
			Vertices: 1 << 10, Edges: 1 << 14,
			Dims: rapid.IntRange(1, 2).Draw(t, "dims"),
		})
		universe := rapid.IntRange(2, 200).Draw(t, "keys")
		life := 0 // grows with each removal, so that the key is a new key afterwards
		for step := range rapid.IntRange(1, 150).Draw(t, "requests") {
			switch rapid.IntRange(0, 9).Draw(t, "kind") {
			case 0:
				if len(m.of) > 0 {
					m.remove(m.key[m.anyVertex(rapid.IntRange(0, 1<<20).Draw(t, "which"))])
					life += universe
				}
			default:
				n := rapid.IntRange(0, 20).Draw(t, "n")
				var keys []int
				for range n {
					keys = append(keys, m.alive(rapid.IntRange(0, universe-1).Draw(t, "key"), life, universe))
				}
				m.record(keys, Load{rapid.Uint32Range(0, 3).Draw(t, "load"), rapid.Uint32Range(0, 5).Draw(t, "io")})
				if want := min(len(m.asked), m.opt.Window); m.g.Requests() != want {
					t.Fatalf("%d requests in the window, want %d", m.g.Requests(), want)
				}
			}
			if step%8 == 7 {
				m.check()
			}
		}
		m.check()
	})
}

// alive is the life of key k that may be used: the first that was not removed.
func (m *model) alive(k, life, universe int) int {
	for ; k <= life+universe; k += universe {
		if !m.removed[k] {
			break
		}
	}
	return k
}

// anyVertex picks a vertex that has a key, the first from i on.
func (m *model) anyVertex(i int) Vertex {
	for i %= len(m.g.vertices); ; i = (i + 1) % len(m.g.vertices) {
		if _, ok := m.key[Vertex(i)]; ok {
			return Vertex(i)
		}
	}
}

// TestBounds records more than the bounds allow: the window gets shorter, is exact
// all the same, and no shorter than it must be.
func TestBounds(t *testing.T) {
	for name, o := range map[string]Options{
		"vertices": {Window: 1 << 16, Vertices: MinVertices, Edges: 1 << 20, Dims: 1},
		"edges":    {Window: 1 << 16, Vertices: 1 << 16, Edges: MinEdges, Dims: 1},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, o)
			r := newRandom(7)
			for range 3000 {
				keys := make([]int, 1+r(30))
				for i := range keys {
					keys[i] = r(2000)
				}
				m.record(keys, Load{1})
			}
			m.check()
			if m.g.Requests() == len(m.asked) {
				t.Fatal("no request left the window: the bound was never met")
			}
			if v, e := m.g.taken(), m.g.Edges(); v < o.Vertices-2*30 && e < o.Edges-2*30*reach {
				t.Fatalf("%d vertices and %d edges of %d and %d: the window is shorter than it must be", v, e, o.Vertices, o.Edges)
			}
			for range 200 {
				m.record(make([]int, MaxKeys), Load{1})
				wide := make([]int, MaxKeys)
				for i := range wide {
					wide[i] = r(2000)
				}
				m.record(wide, Load{1})
			}
			m.check()
		})
	}
}

// newRandom returns numbers below n that follow from seed.
func newRandom(seed uint64) func(n int) int {
	return func(n int) int {
		seed = seed*6364136223846793005 + 1442695040888963407
		return int(seed >> 33 % uint64(n))
	}
}
