package control

import (
	"slices"
	"testing"
	"time"

	"github.com/samya-db/samya/kvpart/cut"
)

// TestUnseenScansStayOnOnePartition scans some ranges here and there. Of other scans,
// which begin between them, at most 5 % are on several partitions.
func TestUnseenScansStayOnOnePartition(t *testing.T) {
	const (
		n, parts = 20_000, 4
		length   = 5
	)
	w := &world{t: t, keys: newKeys(parts, n), seed: 1}
	w.build(Options[*key]{Policy: all, Cut: cut.Partition})
	scan := func() []int {
		at := int(w.rand() % (n - length))
		var is []int
		for i := at; i < at+length; i++ {
			is = append(is, i)
		}
		return is
	}
	for range 1500 {
		is := scan()
		for range 4 {
			w.use(is...)
		}
		w.c.Step()
	}
	w.now += time.Second
	w.use(0)
	w.c.Step()
	w.c.Cut()
	w.c.Step()
	if w.failed != nil || w.c.Stats().Applied != 1 {
		t.Fatalf("%v, %+v", w.failed, w.c.Stats())
	}
	const scans = 5000
	crossed := 0
	load := make([]int, parts)
	for range scans {
		is := scan()
		for _, i := range is {
			load[w.keys.sorted[i].at]++
		}
		if slices.ContainsFunc(is, func(i int) bool { return w.keys.sorted[i].at != w.keys.sorted[is[0]].at }) {
			crossed++
		}
	}
	if crossed*100 > scans*5 {
		t.Errorf("%d of %d scans are on several partitions", crossed, scans)
	}
	if most := slices.Max(load); most*parts > scans*length*12/10 {
		t.Errorf("the heaviest partition has %d of %d uses", most, scans*length)
	}
}

// rows makes a graph of edges, each given once.
func rows(n int, edges map[[2]int32]int32) *cut.Graph {
	g := &cut.Graph{Dims: 1, Offsets: []int32{0}, VertexWeights: make([]int64, n)}
	for v := range int32(n) {
		for w := range int32(n) {
			if weight := edges[[2]int32{min(v, w), max(v, w)}]; weight > 0 && v != w {
				g.Neighbors, g.EdgeWeights = append(g.Neighbors, w), append(g.EdgeWeights, weight)
			}
		}
		g.Offsets = append(g.Offsets, int32(len(g.Neighbors)))
	}
	return g
}

func TestLightEdges(t *testing.T) {
	g := rows(5, map[[2]int32]int32{{0, 2}: 3, {1, 3}: 1, {2, 3}: 1 << 30})
	// The order of the keys is 4, 2, 0, 3, 1.
	o := &order{vertices: []int32{4, 2, 0, 3, 1}}
	got := o.add(g, func() {})
	want := rows(5, map[[2]int32]int32{{0, 2}: 25, {1, 3}: 9, {2, 3}: 1<<31 - 1, {2, 4}: 1, {0, 3}: 1})
	for v := range 5 {
		type end struct{ vertex, weight int32 }
		row := func(g *cut.Graph) (ends []end) {
			for e := g.Offsets[v]; e < g.Offsets[v+1]; e++ {
				ends = append(ends, end{g.Neighbors[e], g.EdgeWeights[e]})
			}
			slices.SortFunc(ends, func(a, b end) int { return int(a.vertex - b.vertex) })
			return ends
		}
		if !slices.Equal(row(got), row(want)) {
			t.Errorf("vertex %d: %v, want %v", v, row(got), row(want))
		}
	}
}

// TestRanges tells scans from requests that have neighbours by chance or in pairs.
func TestRanges(t *testing.T) {
	for name, c := range map[string]struct {
		edges    map[[2]int32]int32
		touching []bool
		want     bool
	}{
		"a scan":                              {map[[2]int32]int32{{0, 1}: 1, {1, 2}: 1, {2, 3}: 1}, []bool{false, true, true, true}, true},
		"pairs":                               {map[[2]int32]int32{{0, 1}: 1, {2, 3}: 1}, []bool{false, true, true, true}, false},
		"a scan of two, others by themselves": {map[[2]int32]int32{{1, 2}: 1}, []bool{false, true, true, true}, true},
		"strangers":                           {map[[2]int32]int32{{0, 2}: 1, {1, 3}: 1}, []bool{false, true, true, true}, false},
		"nothing touches":                     {map[[2]int32]int32{{0, 1}: 1, {1, 2}: 1}, []bool{false, false, false, false}, false},
	} {
		o := &order{vertices: []int32{0, 1, 2, 3}, touching: c.touching}
		if got := o.ranges(rows(4, c.edges)); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
