// Package graphs draws graphs to judge partitioners with. The graphs come from requests
// on keys of a ring of ranges, of communities and of trees of tenants, and from shapes of
// other fields. The same family, size and seed give the same graph. The package draws no
// real workload, and refuses sizes beyond MaxVertices.
package graphs

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/samya-db/samya/kvpart/cut"
)

// MinVertices and MaxVertices bound the size of a drawn graph.
const (
	MinVertices = 16
	MaxVertices = 4_000_000
)

// The errors of Family.Draw and ByName. They are wrapped with the refused argument.
var (
	ErrFamily   = errors.New("no such family of graphs")
	ErrVertices = errors.New("vertices out of range")
)

// Family is a way to draw graphs.
type Family struct {
	// Name identifies the family; see ByName.
	Name string
	// Says describes the graphs, with all parameters.
	Says string
	// Vertices is the size at which the family is judged.
	Vertices int
	// draw is given about how many vertices to draw.
	draw func(vertices int, r *rand.Rand) *cut.Graph
}

// Draw returns the graph of a seed with about so many vertices: as many whole rows, trees
// or cubes as fit, at least one. Sizes out of range fail with ErrVertices.
func (f *Family) Draw(vertices int, seed uint64) (*cut.Graph, error) {
	if vertices < MinVertices || vertices > MaxVertices {
		return nil, fmt.Errorf("%w: %d, want %d to %d", ErrVertices, vertices, MinVertices, MaxVertices)
	}
	return f.draw(vertices, rand.New(rand.NewPCG(seed, 0x677261706873))), nil
}

// families are sorted by name.
var families = []Family{
	{"bipartite", "users and items, 1 to 4; a request touches a user and 3 items drawn by Zipf's law (exponent .8) from its genre of 500, or, 1 in 10, from all; 2 requests a vertex", 50_000, bipartite},
	{"coaccess", "YCSB E: 2 scans a key, of 2 to 8 keys in order, from keys drawn by Zipf's law (exponent .99) and scattered; those never touched weigh nothing", 100_000, coaccess},
	{"communities", "communities of 50; 10 requests a vertex touch it and another of its community, or, 1 in 10, of all", 100_000, communities},
	{"edgeless", "no edges; vertices weigh what single accesses by Zipf's law (exponent .99) make, 10 a vertex", 100_000, edgeless},
	{"grid", "a square grid, four neighbours each, all weights 1", 90_000, grid},
	{"grid-weighted", "a square grid of edges weighing 1 to 100 and vertices weighing 1 to 20", 90_000, gridWeighted},
	{"islands", "paths, stars, rings and cliques of 2 to 60 vertices, not connected; all weights 1", 50_000, islands},
	{"mesh", "a cube of points, six neighbours each, all weights 1", 64_000, mesh},
	{"power-law", "preferential attachment: each new vertex has 8 edges to ends of edges; vertices weigh their degree", 50_000, powerLaw},
	{"random", "4 edges a vertex between any two; all weights 1", 20_000, random},
	{"ring", "a ring of keys; 5 scans a key, of 2 to 8 keys in order, from any key", 100_000, ring},
	{"ring-2d", "the ring, with a second weight: 1 in 10 of its ranges of 100 keys does all the I/O, 20 a key", 50_000, ringTwo},
	{"rmat", "a recursive matrix (.57, .19, .19, .05), 8 edges a vertex; those without an edge stay; all vertices weigh 1", 32_768, rmat},
	{"road", "a map: a jittered grid that has lost 3 in 10 of its streets, each of the rest a chain of up to 3 junctions; some bridges; all weights 1", 90_000, road},
	{"small-world", "a ring with 5 neighbours on each side, 1 edge in 20 leads anywhere instead; all weights 1", 50_000, smallWorld},
	{"tree", "orgs of 10 teams of 10 leaves; 10 requests a leaf touch a leaf, its team and its org", 11_100, tree},
	{"tree-cross", "the tree; 1 request in 20 touches a leaf, its team and its org in each of two orgs", 11_100, treeCross},
	{"tree-root", "the tree with those requests; all touch a root as well", 11_101, treeRoot},
	{"tree-skewed", "the tree with leaves drawn by Zipf's law (exponent .8)", 11_100, treeSkewed},
}

// Families returns all families, sorted by name.
func Families() []Family { return slices.Clone(families) }

// ByName returns the family of a name, or ErrFamily.
func ByName(name string) (*Family, error) {
	for i := range families {
		if families[i].Name == name {
			return &families[i], nil
		}
	}
	names := make([]string, len(families))
	for i, f := range families {
		names[i] = f.Name
	}
	return nil, fmt.Errorf("%w: %q, known are %s", ErrFamily, name, strings.Join(names, ", "))
}
