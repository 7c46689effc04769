package cut

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/samya-db/samya/internal/testheap"
)

// builder makes graphs of requests that touch vertices together.
type builder struct {
	n     int
	vw    []int64
	dims  int
	edges map[[2]int]int32
}

func newBuilder(n, dims int) *builder {
	return &builder{n: n, dims: dims, vw: make([]int64, n*dims), edges: map[[2]int]int32{}}
}

func (b *builder) edge(u, v int, w int32) {
	if u != v {
		b.edges[[2]int{min(u, v), max(u, v)}] += w
	}
}

func (b *builder) request(vs ...int) {
	for i, u := range vs {
		for d := range b.dims {
			b.vw[u*b.dims+d]++
		}
		for _, v := range vs[:i] {
			b.edge(u, v, 1)
		}
	}
}

func (b *builder) graph() *Graph {
	keys := make([][2]int, 0, len(b.edges))
	for e := range b.edges {
		keys = append(keys, e)
	}
	slices.SortFunc(keys, func(a, c [2]int) int { return slices.Compare(a[:], c[:]) })
	rows, weights := make([][]int32, b.n), make([][]int32, b.n)
	for _, e := range keys {
		for i, u := range e {
			rows[u] = append(rows[u], int32(e[1-i]))
			weights[u] = append(weights[u], b.edges[e])
		}
	}
	g := &Graph{Offsets: []int32{0}, Dims: b.dims, VertexWeights: b.vw}
	for v := range b.n {
		g.Neighbors = append(g.Neighbors, rows[v]...)
		g.EdgeWeights = append(g.EdgeWeights, weights[v]...)
		g.Offsets = append(g.Offsets, int32(len(g.Neighbors)))
	}
	return g
}

// communities makes groups of size vertices, and requests within the groups. A share
// outside of the requests' vertices is drawn from all groups.
func communities(seed uint64, groups, size, requests int, outside float64) *Graph {
	r := rand.New(rand.NewPCG(seed, 7))
	b := newBuilder(groups*size, 1)
	for range requests {
		c := r.IntN(groups)
		vs := make([]int, 0, 4)
		for range 2 + r.IntN(3) {
			if r.Float64() < outside {
				vs = append(vs, r.IntN(b.n))
			} else {
				vs = append(vs, c*size+r.IntN(size))
			}
		}
		b.request(vs...)
	}
	return b.graph()
}

// tree makes organisations of teams of ten leaves; a request touches a leaf, its
// team, and its organisation.
func tree(orgs, teams int) *Graph {
	b := newBuilder(orgs*(1+teams*11), 1)
	for o := range orgs {
		org := o * (1 + teams*11)
		for t := range teams {
			team := org + 1 + t*11
			for leaf := range 10 {
				b.request(org, team, team+1+leaf)
			}
		}
	}
	return b.graph()
}

func grid(w, h int) *Graph {
	b := newBuilder(w*h, 1)
	for v := range w * h {
		b.vw[v] = 1
		if v%w+1 < w {
			b.edge(v, v+1, 1)
		}
		if v+w < w*h {
			b.edge(v, v+w, 1)
		}
	}
	return b.graph()
}

func partition(tb testing.TB, g *Graph, o Options) *Result {
	tb.Helper()
	r, err := Partition(context.Background(), g, o)
	if err != nil {
		tb.Fatal(err)
	}
	told(tb, g, o, r)
	return r
}

// fataler is a test or a check of a property.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// told checks that r is a partition and that its figures are true.
func told(t fataler, g *Graph, o Options, r *Result) {
	t.Helper()
	n := len(g.Offsets) - 1
	if len(r.Parts) != n {
		t.Fatalf("%d parts for %d vertices", len(r.Parts), n)
	}
	cut, moved := int64(0), 0
	for v, p := range r.Parts {
		if p < 0 || int(p) >= o.Parts {
			t.Fatalf("vertex %d is in part %d of %d", v, p, o.Parts)
		}
		if o.Start != nil && o.Start[v] >= 0 && o.Start[v] != p {
			moved++
		}
		for e := g.Offsets[v]; e < g.Offsets[v+1]; e++ {
			if r.Parts[g.Neighbors[e]] != p && g.Neighbors[e] > int32(v) {
				cut += int64(g.EdgeWeights[e])
			}
		}
	}
	if cut != r.Cut || moved != r.Moved {
		t.Fatalf("cut %d, moved %d; told %d, %d", cut, moved, r.Cut, r.Moved)
	}
	if len(r.Balance) != g.Dims {
		t.Fatalf("%d balances of %d dimensions", len(r.Balance), g.Dims)
	}
	hub := make([]bool, n)
	for d := range g.Dims {
		w := make([]float64, o.Parts)
		sum := 0.
		for v, p := range r.Parts {
			w[p] += float64(g.VertexWeights[v*g.Dims+d])
			sum += float64(g.VertexWeights[v*g.Dims+d])
		}
		want := 1.
		if sum > 0 {
			want = slices.Max(w) * float64(o.Parts) / sum
		}
		if math.Abs(r.Balance[d]-want) > 1e-9*want {
			t.Fatalf("balance of dimension %d is %v, told %v", d, want, r.Balance[d])
		}
		imbalance := o.Imbalance
		if imbalance == 0 {
			imbalance = defaultImbalance
		}
		for v := range n {
			if float64(g.VertexWeights[v*g.Dims+d]) > sum/float64(o.Parts)*(1+imbalance)*(1+1e-6) {
				hub[v] = true
			}
		}
	}
	for v, is := range hub {
		if is && !slices.Contains(r.Hubs, int32(v)) {
			t.Fatalf("vertex %d outweighs a part and is not among the hubs %v", v, r.Hubs)
		}
	}
}

func TestCommunitiesAreFound(t *testing.T) {
	g := communities(1, 120, 40, 30_000, .03)
	planted := make([]int32, 4800)
	for _, k := range []int{2, 3, 5, 8} {
		for v := range planted {
			planted[v] = int32(v / 40 * k / 120)
		}
		want := (&job{g: g, o: &Options{}, n: 4800, k: k, part: planted}).result().Cut
		for seed := range uint64(3) {
			r := partition(t, g, Options{Parts: k, Seed: seed})
			if float64(r.Cut) > 1.1*float64(want) || r.Balance[0] > 1.031 {
				t.Errorf("k=%d seed %d: cut %d, where the communities have %d; balance %v", k, seed, r.Cut, want, r.Balance)
			}
		}
	}
}

func TestWholeTreesAreKept(t *testing.T) {
	g := tree(100, 10)
	for _, c := range []struct {
		k       int
		cut     float64
		balance float64
	}{{2, 0, 1.001}, {3, 0, 1.03}, {4, 0, 1.001}, {5, 0, 1.001}, {7, 0, 1.051}, {8, 0, 1.041}, {16, .01, 1.1}} {
		r := partition(t, g, Options{Parts: c.k})
		if share := float64(r.Cut) / 30_000; share > c.cut || r.Balance[0] > c.balance {
			t.Errorf("k=%d: cut %.4f, balance %v", c.k, share, r.Balance)
		}
	}
}

func TestGrid(t *testing.T) {
	g := grid(60, 60)
	for k, most := range map[int]int64{2: 66, 4: 132, 9: 270} {
		if r := partition(t, g, Options{Parts: k}); r.Cut > most || r.Balance[0] > 1.031 {
			t.Errorf("k=%d: cut %d, balance %v", k, r.Cut, r.Balance)
		}
	}
}

func TestEdges(t *testing.T) {
	one := func(ws ...int64) *Graph {
		return &Graph{Offsets: make([]int32, len(ws)+1), Dims: 1, VertexWeights: ws}
	}
	pair := func(u, v int64, w int32) *Graph {
		return &Graph{
			Offsets: []int32{0, 1, 2}, Neighbors: []int32{1, 0}, EdgeWeights: []int32{w, w},
			Dims: 1, VertexWeights: []int64{u, v},
		}
	}
	for _, c := range []struct {
		name    string
		g       *Graph
		k       int
		cut     int64
		balance float64
		hubs    int
	}{
		{"empty", one(), 4, 0, 1, 0},
		{"one vertex", one(7), 1, 0, 1, 0},
		{"more parts than vertices", one(1, 1, 1), 8, 0, 8. / 3, 3},
		{"weightless", pair(0, 0, 5), 2, 0, 1, 0},
		{"a pair apart", pair(1, 1, 5), 2, 5, 1, 0},
		{"a hub", pair(9, 1, 5), 2, 5, 1.8, 1},
		{"sums beyond int64", pair(math.MaxInt64, math.MaxInt64, 1), 2, 1, 1, 0},
		{"packed", one(5, 4, 3, 3, 3), 2, 0, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := partition(t, c.g, Options{Parts: c.k})
			if r.Cut != c.cut || math.Abs(r.Balance[0]-c.balance) > 1e-9 || len(r.Hubs) != c.hubs {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestHeavyEdgesDoNotOverflow(t *testing.T) {
	b := newBuilder(64, 1)
	for v := range 64 {
		b.vw[v] = 1
		for u := range v {
			b.edge(u, v, 1)
		}
	}
	for e := range b.edges {
		b.edges[e] = math.MaxInt32
	}
	r := partition(t, b.graph(), Options{Parts: 2})
	if want := int64(32*32) * math.MaxInt32; r.Cut > want || r.Balance[0] > 1.0001+.03 {
		t.Errorf("cut %d, not %d; balance %v", r.Cut, want, r.Balance)
	}
}

func TestMalformed(t *testing.T) {
	ok := func() *Graph {
		return &Graph{
			Offsets: []int32{0, 2, 3, 4}, Neighbors: []int32{1, 2, 0, 0}, EdgeWeights: []int32{3, 4, 3, 4},
			Dims: 1, VertexWeights: []int64{1, 1, 1},
		}
	}
	if err := ok().Validate(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(g *Graph){
		"dims":         func(g *Graph) { g.Dims = 3 },
		"offsets":      func(g *Graph) { g.Offsets = nil },
		"first offset": func(g *Graph) { g.Offsets[0] = 1 },
		"descending":   func(g *Graph) { g.Offsets[1] = 4 },
		"last offset":  func(g *Graph) { g.Offsets[3] = 3 },
		"weights":      func(g *Graph) { g.VertexWeights = g.VertexWeights[:2] },
		"edge weights": func(g *Graph) { g.EdgeWeights = g.EdgeWeights[:2] },
		"negative":     func(g *Graph) { g.VertexWeights[1] = -1 },
		"edge weight":  func(g *Graph) { g.EdgeWeights[0], g.EdgeWeights[2] = 0, 0 },
		"range":        func(g *Graph) { g.Neighbors[0] = 3 },
		"below range":  func(g *Graph) { g.Neighbors[0] = -1 },
		"loop":         func(g *Graph) { g.Neighbors[0] = 0 },
		"one way":      func(g *Graph) { g.Neighbors[3] = 1 },
		"two weights":  func(g *Graph) { g.EdgeWeights[3] = 5 },
	} {
		g := ok()
		spoil(g)
		if err := g.Validate(); !errors.Is(err, errGraph) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := Partition(context.Background(), g, Options{Parts: 2}); !errors.Is(err, errGraph) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, o := range map[string]Options{
		"no parts":      {},
		"many parts":    {Parts: MaxParts + 1},
		"imbalance":     {Parts: 2, Imbalance: -1},
		"not a number":  {Parts: 2, Imbalance: math.NaN()},
		"loose":         {Parts: 2, Loose: math.Inf(1)},
		"stretch":       {Parts: 2, Stretch: math.NaN()},
		"start":         {Parts: 2, Start: []int32{0}},
		"start's part":  {Parts: 2, Start: []int32{0, 1, 2}},
		"start's part-": {Parts: 2, Start: []int32{0, 1, -2}},
	} {
		if _, err := Partition(context.Background(), ok(), o); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEndsWithItsContext(t *testing.T) {
	g := communities(2, 40, 50, 10_000, .05)
	ctx, cancel := context.WithCancel(context.Background())
	yields := 0
	_, err := Partition(ctx, g, Options{Parts: 4, Yield: func() {
		if yields++; yields == 5 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || yields != 5 {
		t.Errorf("%v after %d yields", err, yields)
	}
}

// anyGraph draws a graph of any shape.
func anyGraph(t *rapid.T) *Graph {
	n := rapid.IntRange(1, 120).Draw(t, "n")
	b := newBuilder(n, rapid.IntRange(1, 2).Draw(t, "dims"))
	top := rapid.SampledFrom([]int64{0, 1, 5, 1000, math.MaxInt64}).Draw(t, "heaviest")
	for i := range b.vw {
		b.vw[i] = rapid.Int64Range(0, top).Draw(t, "weight")
	}
	heaviest := rapid.SampledFrom([]int32{1, 100, math.MaxInt32 / 8}).Draw(t, "edge")
	for range rapid.IntRange(0, 3*n).Draw(t, "edges") {
		b.edge(rapid.IntRange(0, n-1).Draw(t, "u"), rapid.IntRange(0, n-1).Draw(t, "v"),
			rapid.Int32Range(1, 1+heaviest/int32(8*n)).Draw(t, "w"))
	}
	return b.graph()
}

func TestPartitionsAreTrueAndDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := anyGraph(t)
		if err := g.Validate(); err != nil {
			t.Fatal(err)
		}
		o := Options{
			Parts: rapid.IntRange(1, 20).Draw(t, "k"),
			Seed:  rapid.Uint64().Draw(t, "seed"),
		}
		if rapid.Bool().Draw(t, "warm") {
			o.Start = make([]int32, len(g.Offsets)-1)
			for v := range o.Start {
				o.Start[v] = rapid.Int32Range(-1, int32(o.Parts-1)).Draw(t, "start")
			}
		}
		r, err := Partition(context.Background(), g, o)
		if err != nil {
			t.Fatal(err)
		}
		told(t, g, o, r)
		again, err := Partition(context.Background(), g, o)
		if err != nil || !slices.Equal(r.Parts, again.Parts) {
			t.Fatalf("not the same again: %v", err)
		}
	})
}

func TestSymmetryIsSeen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := anyGraph(t)
		if len(g.Neighbors) == 0 {
			return
		}
		e := rapid.IntRange(0, len(g.Neighbors)-1).Draw(t, "spoiled")
		g.EdgeWeights[e]++
		if err := g.Validate(); !errors.Is(err, errGraph) {
			t.Fatalf("edge %d weighs more one way: %v", e, err)
		}
	})
}

func TestWarmStartMovesLittle(t *testing.T) {
	was := communities(3, 64, 40, 20_000, .05)
	now := communities(3, 64, 40, 21_000, .05)
	for _, k := range []int{4, 8} {
		start := partition(t, was, Options{Parts: k, Seed: 1}).Parts
		cold := partition(t, now, Options{Parts: k, Seed: 2})
		moved := Relabel(cold.Parts, start, k)
		warm := partition(t, now, Options{Parts: k, Seed: 2, Start: start})
		if 5*warm.Moved > moved || float64(warm.Cut) > 1.05*float64(cold.Cut) {
			t.Errorf("k=%d: warm moves %d and cuts %d, cold %d and %d", k, warm.Moved, warm.Cut, moved, cold.Cut)
		}
	}
}

func TestRelabel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.SampledFrom([]int{1, 2, 7, 130}).Draw(t, "k")
		start := rapid.SliceOfN(rapid.Int32Range(0, int32(k-1)), 1, 200).Draw(t, "start")
		name := make([]int32, k)
		for i := range name {
			name[i] = int32((i + 3) % k)
		}
		parts := make([]int32, len(start))
		for v, p := range start {
			parts[v] = name[p]
		}
		if moved := Relabel(parts, start, k); moved != 0 || !slices.Equal(parts, start) {
			t.Fatalf("%d moved", moved)
		}
	})
}
