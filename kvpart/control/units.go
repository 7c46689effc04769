package control

import (
	"context"
	"fmt"
	"slices"

	"github.com/samya-db/samya/kvpart/cut"
	"github.com/samya-db/samya/kvpart/libra"
)

// units are keys that move as a whole: vertices of a graph.
type units struct {
	of   [][]int32 // vertices of each
	node []int     // partition of each
}

func (u *units) add(vs []int32, node int) {
	u.of, u.node = append(u.of, vs), append(u.node, node)
}

const (
	// rounds bounds how often units are split before they move. The last round only
	// moves: while units may be split a round may rather split them.
	rounds = 8
	// groupsEach is how many groups of keys a partition has, about, for Both.
	groupsEach = 16
)

// ranges returns the map of a policy of ranges: package libra moves ranges of keys, which
// are split where that helps. A range is a run of keys of one partition; so ranges that
// meet again on a partition are a single range at the next cut.
func (c *Controller[E]) ranges(j *job[E], g *cut.Graph, k int, yield func()) ([]int32, error) {
	var u units
	parts := slices.Clone(j.start)
	last := int32(unplaced)
	j.order.vertices = j.order.vertices[:0]
	err := c.ascend(j, func(e E) error {
		v := j.vertex(e)
		if v < 0 {
			return nil
		}
		j.order.vertices = append(j.order.vertices, v)
		if p := parts[v]; p >= 0 {
			all, n := j.order.vertices, len(u.of)
			if p == last {
				u.of[n-1] = append(u.of[n-1], v)
			} else {
				u.add(slices.Clone(all[len(all)-1:]), int(p))
			}
			last = p
		}
		return nil
	}, yield)
	if err != nil {
		return nil, err
	}
	return parts, c.spread(&u, k, g, parts, u.neighbours)
}

// groups returns the map of the policy Both. parts is a cut of the graph. If it is out of
// balance, each part is cut into groups, and package libra moves some groups.
func (c *Controller[E]) groups(ctx context.Context, j *job[E], g *cut.Graph, k int, parts []int32, yield func()) error {
	if q := weigh(g, parts, k, yield); q.balance <= 1+c.opt.Policy.Tolerance {
		return nil
	}
	fine, err := c.opt.Cut(ctx, g, cut.Options{
		Parts: min(groupsEach*k, max(1, len(parts))), Imbalance: .5, Seed: c.opt.Seed + uint64(j.number), Yield: yield,
	})
	if err != nil {
		return fmt.Errorf("cut groups: %w", err)
	}
	var u units
	index := make(map[[2]int32]int)
	for v, p := range parts {
		id := [2]int32{p, fine.Parts[v]}
		i, ok := index[id]
		if !ok {
			i = len(u.of)
			index[id] = i
			u.add(nil, int(p))
		}
		u.of[i] = append(u.of[i], int32(v))
	}
	return c.spread(&u, k, g, parts, func() [][]bond { return u.bonds(g) })
}

// spread moves units between the k partitions, in parts. It keeps units together that
// have bonds, as far as balance allows.
func (c *Controller[E]) spread(u *units, k int, g *cut.Graph, parts []int32, bonds func() [][]bond) error {
	for round := range rounds + 1 {
		var plan *libra.Plan
		bonds := bonds()
		o := libra.Options{Tolerance: c.opt.Policy.Tolerance, Affinity: func(unit, node int) float64 {
			sum := 0.
			for _, b := range bonds[unit] {
				if plan.Node(b.unit) == node {
					sum += b.weight
				}
			}
			return sum
		}}
		var err error
		if plan, err = libra.NewPlan(o, k, u.loads(g, round == rounds)); err != nil {
			return fmt.Errorf("balance %d units: %w", len(u.of), err)
		}
		splits := make(map[int]libra.Action)
		for a := plan.Step(); a.Kind < libra.Done; a = plan.Step() {
			if a.Kind == libra.Split {
				splits[a.Unit] = a
				continue
			}
			u.node[a.Unit] = a.To
			for _, v := range u.of[a.Unit] {
				parts[v] = int32(a.To)
			}
		}
		if len(splits) == 0 {
			return nil
		}
		u.split(g, splits)
	}
	return nil
}

// loads are the units as package libra has them; with whole none is split.
func (u *units) loads(g *cut.Graph, whole bool) []libra.Unit {
	all := make([]libra.Unit, len(u.of))
	for i, vs := range u.of {
		all[i] = libra.Unit{Node: u.node[i], Whole: whole || len(vs) == 1}
		for _, v := range vs {
			for d := range libra.Dimensions() {
				all[i].Load[d] += float64(g.VertexWeights[int(v)*g.Dims+d])
			}
		}
	}
	return all
}

// bond is the weight of the edges to another unit.
type bond struct {
	unit   int
	weight float64
}

// neighbours returns the bonds of units in the order of keys: a unit belongs to the units
// before and after it, so that ranges stay long.
func (u *units) neighbours() [][]bond {
	all := make([][]bond, len(u.of))
	for i := range all {
		if i > 0 {
			all[i] = append(all[i], bond{i - 1, 1})
		}
		if i+1 < len(all) {
			all[i] = append(all[i], bond{i + 1, 1})
		}
	}
	return all
}

// bonds returns the bonds of units by the edges of their keys.
func (u *units) bonds(g *cut.Graph) [][]bond {
	at := make([]int, len(g.Offsets)-1) // the unit of a vertex
	for i, vs := range u.of {
		for _, v := range vs {
			at[v] = i
		}
	}
	all := make([][]bond, len(u.of))
	sum := make([]float64, len(u.of))
	for i, vs := range u.of {
		var met []int
		for _, v := range vs {
			for e := g.Offsets[v]; e < g.Offsets[v+1]; e++ {
				w := at[g.Neighbors[e]]
				if w == i {
					continue
				}
				if sum[w] == 0 {
					met = append(met, w)
				}
				sum[w] += float64(g.EdgeWeights[e])
			}
		}
		for _, w := range met {
			all[i] = append(all[i], bond{w, sum[w]})
			sum[w] = 0
		}
	}
	return all
}

// split carries splits out, and keeps the order of units.
func (u *units) split(g *cut.Graph, splits map[int]libra.Action) {
	var next units
	for i, vs := range u.of {
		if a, ok := splits[i]; ok {
			for _, part := range pieces(g, vs, &a) {
				next.add(part, u.node[i])
			}
			continue
		}
		next.add(vs, u.node[i])
	}
	*u = next
}

// pieces cuts a unit where the loads of its keys say.
func pieces(g *cut.Graph, vs []int32, a *libra.Action) (all [][]int32) {
	samples := make([]libra.Sample[int], len(vs))
	for i, v := range vs {
		samples[i] = libra.Sample[int]{Start: i, End: i, Load: float64(g.VertexWeights[int(v)*g.Dims+int(a.Dimension)])}
	}
	from := 0
	for _, to := range libra.SplitKeys(samples, a.Share, a.Parts, func(low, _ int) int { return low }) {
		all = append(all, vs[from:to:to])
		from = to
	}
	return append(all, vs[from:])
}
