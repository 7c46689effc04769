package workload

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkRecord records requests of 1 key and of 5, each with the oldest request taken
// back, over 100,000 keys in a window of 100,000 requests. Least of many runs on a
// machine shared with others: 1 key 32 ns (zipf) and 47 ns (uniform); 5 keys, 20 changes
// of edges, 480 ns and 950 ns, mostly waiting for memory. Without touch: 500 ns and 1150
// ns.
func BenchmarkRecord(b *testing.B) {
	for _, keys := range []int{1, 5} {
		for _, draw := range []string{"zipf", "uniform"} {
			b.Run(fmt.Sprintf("keys=%d/%s", keys, draw), func(b *testing.B) {
				const n = 100_000
				w := newBenched(b, n, keys, draw)
				next := make([]int, 1<<20)
				w.draw(next, 2, draw)
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					w.record(next[i&(1<<20-1)])
					i++
				}
				b.ReportMetric(float64(w.g.Edges()), "edges")
			})
		}
	}
}

// BenchmarkSnapshot copies and builds a graph of 100,000 vertices; only the copy
// keeps the graph from going on.
func BenchmarkSnapshot(b *testing.B) {
	for _, what := range []string{"copy", "build"} {
		b.Run(what, func(b *testing.B) {
			g := newBenched(b, 100_000, 5, "uniform").g
			var s Snapshot
			g.Copy(&s)
			s.Build(nil)
			for b.Loop() {
				if what == "copy" {
					g.Copy(&s)
					continue
				}
				b.StopTimer()
				g.Copy(&s)
				b.StartTimer()
				s.Build(nil)
			}
			b.ReportMetric(float64(len(s.Vertices)), "vertices")
			b.ReportMetric(float64(len(s.graph.Neighbors)/2), "edges")
		})
	}
}

// benched is a graph with the vertices of its keys.
type benched struct {
	g   *Graph
	n   int
	of  []Vertex // by key
	key []int    // by vertex
	vs  []Vertex
}

func newBenched(b *testing.B, n, keys int, draw string) *benched {
	b.Helper()
	w := &benched{n: n, of: make([]Vertex, n+keys), key: make([]int, n+keys), vs: make([]Vertex, keys)}
	for i := range w.of {
		w.of[i] = None
	}
	g, err := New(Options{
		Window: n, Vertices: 1 << 18, Edges: 1 << 21, Dims: 1,
		Freed: func(v Vertex) { w.of[w.key[v]] = None },
	})
	if err != nil {
		b.Fatal(err)
	}
	w.g = g
	at := make([]int, 2*n)
	w.draw(at, 1, draw)
	for _, k := range at {
		w.record(k)
	}
	return w
}

// record records a request for the keys from at on.
func (w *benched) record(at int) {
	w.g.Reserve(len(w.vs))
	for i := range w.vs {
		v := w.of[at+i]
		if v == None {
			v = w.g.Add()
			w.of[at+i], w.key[v] = v, at+i
		}
		w.vs[i] = v
	}
	w.g.Record(w.vs, Load{1})
}

// draw draws first keys; popular ones are spread over the key space.
func (w *benched) draw(to []int, seed uint64, draw string) {
	r := rand.New(rand.NewPCG(seed, seed))
	z := rand.NewZipf(r, 1.01, 1, uint64(w.n-1))
	for i := range to {
		if draw == "uniform" {
			to[i] = r.IntN(w.n)
		} else {
			to[i] = int(z.Uint64() * 2654435761 % uint64(w.n))
		}
	}
}
