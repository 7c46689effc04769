package hierarchy

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// size is the size of a tree: organisations, teams in each, leaves in each team.
type size struct{ orgs, teams, leaves int }

// tree is the entities of a site.
type tree struct {
	records []stored.Entity
	// leaves are the names of the leaves, which requests name.
	leaves []string
}

// rootName is the name of the root above all organisations.
const rootName = "root"

// newTree makes the entities of a site. No load reaches their limits.
func newTree(of size, root bool) *tree {
	t := new(tree)
	top := uint64(0)
	if root {
		top = t.add(rootName, 0)
	}
	for o := range of.orgs {
		org := fmt.Sprintf("%04d", o)
		atOrg := t.add(org, top)
		for i := range of.teams {
			team := fmt.Sprintf("%s/%d", org, i)
			atTeam := t.add(team, atOrg)
			for j := range of.leaves {
				leaf := fmt.Sprintf("%s/%d", team, j)
				t.add(leaf, atTeam)
				t.leaves = append(t.leaves, leaf)
			}
		}
	}
	return t
}

// add adds an entity below the entity of generation parent (0 for none), and
// returns the new generation.
func (t *tree) add(name string, parent uint64) uint64 {
	generation := uint64(len(t.records) + 1)
	t.records = append(t.records, stored.Entity{
		Name: name, Parent: parent, Generation: generation, Initial: input.MaxTokens, Limit: input.MaxTokens, Version: 1,
	})
	return generation
}

// siteName is the name of the only site.
const siteName = "a"

// newCore makes the core of a site with the entities.
func (t *tree) newCore(seed uint64) (*core.Core, error) {
	data := stored.Restored{
		Catalogue: &stored.Catalogue{Generation: uint64(len(t.records))},
		// Partitions place entities in the order of names.
		Entities: slices.SortedFunc(slices.Values(t.records), func(a, b stored.Entity) int { return cmp.Compare(a.Name, b.Name) }),
	}
	for i := range t.records {
		e := &t.records[i]
		data.Books = append(data.Books, stored.Books{Name: e.Name, Generation: e.Generation, Left: e.Limit})
	}
	c, err := core.New(core.Config{
		Self: siteName, Members: []core.SiteID{siteName}, Rand: rand.New(rand.NewPCG(seed, 1)), Retention: retention,
	}, data)
	if err != nil {
		return nil, fmt.Errorf("making the core of %d entities: %w", len(t.records), err)
	}
	return c, nil
}

// retention is the time for which requests are remembered, in milliseconds: short,
// to keep memory small at a million requests a second.
const retention = 200

// check fails unless the books of all entities add up. The net tokens of a leaf are
// the tokens acquired and not released. The net tokens of any other entity are the
// sum of the entities below it. All other tokens are left. out is by leaf.
func (t *tree) check(views []answer.View, out []int) error {
	held := make(map[string]core.Tokens, len(views))
	for i, leaf := range t.leaves {
		held[leaf] = core.Tokens(out[i])
	}
	if len(views) != len(t.records) {
		return fmt.Errorf("%d entities, want %d", len(views), len(t.records))
	}
	for _, v := range views {
		if _, leaf := held[v.Name]; leaf && v.Parent != "" && v.Children == 0 && v.Net != held[v.Name] {
			return fmt.Errorf("%d tokens are out of %q, %d were acquired and not released", v.Net, v.Name, held[v.Name])
		}
	}
	below := make(map[string]core.Tokens)
	for _, v := range views {
		below[v.Parent] += v.Net
	}
	for _, v := range views {
		switch {
		case v.Children > 0 && v.Net != below[v.Name]:
			return fmt.Errorf("%d tokens are out of %q, %d of those below it", v.Net, v.Name, below[v.Name])
		case v.Left+v.Net != v.Limit:
			return fmt.Errorf("of %q %d tokens are left and %d out, of %d", v.Name, v.Left, v.Net, v.Limit)
		}
	}
	return nil
}

// drawer draws leaves: all leaves alike, or the k-th most wanted leaf in proportion
// to 1/k^0.99.
type drawer struct {
	leaves int
	// upTo are the cumulative shares of the most wanted leaves; nil if all leaves
	// are wanted alike.
	upTo []float64
	// ranks maps a rank to a leaf, in random order.
	ranks []int
}

func newDrawer(leaves int, zipf bool, seed uint64) *drawer {
	d := &drawer{leaves: leaves}
	if !zipf {
		return d
	}
	d.ranks, d.upTo = rand.New(rand.NewPCG(seed, 2)).Perm(leaves), make([]float64, leaves)
	sum := 0.0
	for k := range d.upTo {
		sum += math.Pow(float64(k+1), -.99)
		d.upTo[k] = sum
	}
	for k := range d.upTo {
		d.upTo[k] /= sum
	}
	return d
}

func (d *drawer) draw(rnd *rand.Rand) int {
	if d.upTo == nil {
		return rnd.IntN(d.leaves)
	}
	return d.ranks[min(sort.SearchFloat64s(d.upTo, rnd.Float64()), d.leaves-1)]
}
