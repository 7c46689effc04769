package workload

import (
	"errors"
	"testing"
)

func TestOptions(t *testing.T) {
	good := Options{Window: 10, Vertices: MinVertices, Edges: MinEdges, Dims: 1}
	if _, err := New(good); err != nil {
		t.Fatalf("New(%+v): %v", good, err)
	}
	for name, change := range map[string]func(*Options){
		"window below 0":    func(o *Options) { o.Window = -1 },
		"window too long":   func(o *Options) { o.Window = MaxWindow + 1 },
		"too few vertices":  func(o *Options) { o.Vertices = MinVertices - 1 },
		"too many vertices": func(o *Options) { o.Vertices = MaxVertices + 1 },
		"too few edges":     func(o *Options) { o.Edges = MinEdges - 1 },
		"too many edges":    func(o *Options) { o.Edges = MaxEdges + 1 },
		"no weight":         func(o *Options) { o.Dims = 0 },
		"three weights":     func(o *Options) { o.Dims = 3 },
	} {
		o := good
		change(&o)
		if _, err := New(o); !errors.Is(err, errOptions) {
			t.Errorf("%s: %v, want ErrOptions", name, err)
		}
	}
}

// TestAgeing has no window: old uses weigh less and less, the most used keys stay, and
// the bounds hold.
func TestAgeing(t *testing.T) {
	o := Options{Vertices: MinVertices, Edges: MinEdges, Dims: 2}
	m := newModel(t, o)
	m.opt.Window = 1 << 30
	r := newRandom(3)
	for i := range 20000 {
		m.record([]int{0, 1}, Load{2, 1})
		a, b := 2+r(3000), 2+r(3000)
		m.record([]int{a, b}, Load{1, 1})
		if i%1000 == 0 {
			m.record([]int{a, b, 1}, Load{1})
		}
	}
	p := m.picture()
	if len(p.Loads) < o.Vertices/2 {
		t.Errorf("%d vertices are left of %d: ageing drops too much", len(p.Loads), o.Vertices)
	}
	// At least half of the other requests are young, at a weight of 1 each.
	if w := p.Edges[[2]int{0, 1}]; w < o.Vertices/8 || w > 20000/2 {
		t.Errorf("the pair used all the time weighs %d", w)
	}
	if l := p.Loads[0]; l[0] < 2*l[1]-64 || l[0] > 2*l[1]+64 {
		t.Errorf("a load of %v, want twice as much of the first as of the second", l)
	}
	m.remove(0)
	if p := m.picture(); len(p.Edges) > 0 && p.Edges[[2]int{0, 1}] != 0 {
		t.Error("a removed key has an edge")
	}
	// The place of the removed key is free after the next ageing.
	for range 1000 {
		m.record([]int{2 + r(3000), 2 + r(3000)}, Load{1})
	}
	if m.g.removed != 0 {
		t.Errorf("%d removed keys hold their places", m.g.removed)
	}
	m.picture()
}

// TestMemoryIsReused takes snapshots over and over: they allocate nothing once
// they had the graph's size, nor does the graph once its window is full.
func TestMemoryIsReused(t *testing.T) {
	m := newFilled(t, 2000, 500)
	var s Snapshot
	m.g.Copy(&s)
	s.Build(nil)
	if n := testing.AllocsPerRun(20, func() {
		m.g.Copy(&s)
		s.Build(nil)
	}); n != 0 {
		t.Errorf("%v allocations a snapshot", n)
	}
	vs := make([]Vertex, 5)
	r := newRandom(9)
	if n := testing.AllocsPerRun(1000, func() {
		m.g.Reserve(len(vs))
		for i := range vs {
			vs[i] = m.anyVertex(r(500))
		}
		m.g.Record(vs, Load{1})
	}); n != 0 {
		t.Errorf("%v allocations a request", n)
	}
}

// TestYields counts the steps of a snapshot: none works on more than a bounded
// number of edges.
func TestYields(t *testing.T) {
	m := newFilled(t, 20000, 5000)
	var s Snapshot
	m.g.Copy(&s)
	edges, steps := len(s.edges), 0
	s.Build(func() { steps++ })
	if want := edges / stride * 2; steps < want || steps == 0 {
		t.Errorf("%d steps for %d edges, want at least %d", steps, edges, want)
	}
}

// newFilled is a graph with a full window of requests of five keys.
func newFilled(t require, window, keys int) *model {
	m := newModel(t, Options{Window: window, Vertices: 1 << 18, Edges: 1 << 21, Dims: 1})
	r := newRandom(5)
	for range window * 3 / 2 {
		at := r(keys)
		m.record([]int{at, at + 1, at + 2, at + 3, at + 4}, Load{1})
	}
	return m
}
