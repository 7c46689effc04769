package graphs

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/samya-db/samya/internal/race"
	_ "github.com/samya-db/samya/internal/testheap"
	"github.com/samya-db/samya/kvpart/cut"
)

// check fails unless g is symmetric, has sorted rows and positive edge weights, and has
// at most vertices/5 + sizeOfOrg vertices beyond vertices.
func check(t rapid.TB, g *cut.Graph, vertices int) {
	t.Helper()
	n := len(g.Offsets) - 1
	if n < 1 || n > vertices+vertices/5+sizeOfOrg {
		t.Fatalf("%d vertices, asked for %d", n, vertices)
	}
	if len(g.VertexWeights) != n*g.Dims || len(g.Neighbors) != int(g.Offsets[n]) || len(g.EdgeWeights) != len(g.Neighbors) {
		t.Fatalf("%d vertices of %d dims: %d weights, %d neighbours, %d edge weights, last offset %d",
			n, g.Dims, len(g.VertexWeights), len(g.Neighbors), len(g.EdgeWeights), g.Offsets[n])
	}
	weights := map[[2]int32]int32{}
	for v := range int32(n) {
		last := int32(-1)
		for i := g.Offsets[v]; i < g.Offsets[v+1]; i++ {
			u, w := g.Neighbors[i], g.EdgeWeights[i]
			if u <= last || u >= int32(n) || u == v || w < 1 {
				t.Fatalf("vertex %d has neighbour %d after %d, weight %d", v, u, last, w)
			}
			last = u
			weights[[2]int32{v, u}] = w
		}
	}
	for ends, w := range weights {
		if back := weights[[2]int32{ends[1], ends[0]}]; back != w {
			t.Fatalf("edge %v weighs %d, and %d from its other end", ends, w, back)
		}
	}
	for i, w := range g.VertexWeights {
		if w < 0 {
			t.Fatalf("weight %d is %d", i, w)
		}
	}
}

func TestFamiliesAreWellFormed(t *testing.T) {
	race.OneGoroutine(t)
	for _, f := range Families() {
		t.Run(f.Name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				vertices := rapid.IntRange(MinVertices, 500).Draw(t, "vertices")
				seed := rapid.Uint64().Draw(t, "seed")
				g, err := f.Draw(vertices, seed)
				if err != nil {
					t.Fatal(err)
				}
				again, err := f.Draw(vertices, seed)
				if err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(g, again) {
					t.Fatalf("the same seed gives another graph: %s", cmp.Diff(g, again))
				}
				check(t, g, vertices)
			})
		})
	}
}

func TestFamiliesAreSorted(t *testing.T) {
	sorted := slices.IsSortedFunc(Families(), func(a, b Family) int { return strings.Compare(a.Name, b.Name) })
	if !sorted {
		t.Error("families are not sorted by name")
	}
}

// draw returns the graph of a family at its own size.
func draw(t *testing.T, name string) *cut.Graph {
	t.Helper()
	f, err := ByName(name)
	if err != nil {
		t.Fatal(err)
	}
	g, err := f.Draw(f.Vertices, 1)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestSizes(t *testing.T) {
	for _, test := range []struct {
		name     string
		vertices int
		// edges are within 1 % of this; -1 for any.
		edges int
	}{
		{"ring", 100_000, 638_000},
		{"communities", 100_000, 856_000},
		{"tree", 11_100, 100 * (10 + 100 + 100)},
		{"tree-root", 11_101, -1},
		{"edgeless", 100_000, 0},
		{"grid", 90_000, 2 * 300 * 299},
		{"mesh", 64_000, 3 * 40 * 40 * 39},
	} {
		g := draw(t, test.name)
		vertices, edges := len(g.Offsets)-1, len(g.Neighbors)/2
		if vertices != test.vertices || test.edges >= 0 && (edges < test.edges*99/100 || edges > test.edges*101/100) {
			t.Errorf("%s: %d vertices and %d edges, want %d and %d", test.name, vertices, edges, test.vertices, test.edges)
		}
	}
}

// connected returns the size of the part of g that is connected with vertex v.
func connected(g *cut.Graph, v int32) int {
	seen := map[int32]bool{v: true}
	for queue := []int32{v}; len(queue) > 0; queue = queue[1:] {
		for _, u := range g.Neighbors[g.Offsets[queue[0]]:g.Offsets[queue[0]+1]] {
			if !seen[u] {
				seen[u] = true
				queue = append(queue, u)
			}
		}
	}
	return len(seen)
}

func TestOrganisationsOfTree(t *testing.T) {
	if n := connected(draw(t, "tree"), 0); n != sizeOfOrg {
		t.Errorf("an org of the tree is connected with %d vertices, want its own %d", n, sizeOfOrg)
	}
	if n := connected(draw(t, "tree-cross"), 0); n < 11_000 {
		t.Errorf("an org of the tree with requests across is connected with %d vertices only", n)
	}
	g := draw(t, "tree-root")
	root := int32(len(g.Offsets) - 2)
	// 100,000 requests touch it, 1 in 20 of them with six others instead of three.
	if w := g.VertexWeights[root]; w != 100_000 {
		t.Errorf("the root was touched %d times", w)
	}
	var sum int
	for _, w := range g.EdgeWeights[g.Offsets[root]:] {
		sum += int(w)
	}
	if sum < 312_000 || sum > 318_000 {
		t.Errorf("the edges of the root weigh %d, want about 315,000", sum)
	}
}

func TestAnotherSeedIsAnotherGraph(t *testing.T) {
	for _, f := range Families() {
		if f.Name == "grid" || f.Name == "mesh" {
			continue // nothing is left to chance
		}
		a, err := f.Draw(1000, 1)
		if err != nil {
			t.Fatal(err)
		}
		b, err := f.Draw(1000, 2)
		if err != nil {
			t.Fatal(err)
		}
		if cmp.Equal(a, b) {
			t.Errorf("%s: two seeds give the same graph", f.Name)
		}
	}
}

func TestBadRequests(t *testing.T) {
	if _, err := ByName("trees"); !errors.Is(err, ErrFamily) || !strings.Contains(err.Error(), "tree-root") {
		t.Errorf("got %v", err)
	}
	f, err := ByName("ring")
	if err != nil {
		t.Fatal(err)
	}
	for _, vertices := range []int{-1, 0, MinVertices - 1, MaxVertices + 1} {
		if _, err := f.Draw(vertices, 1); !errors.Is(err, ErrVertices) {
			t.Errorf("%d vertices: %v", vertices, err)
		}
	}
}
