package cut

import "slices"

// The bounds of a warm start. It moves fewer than mostMoved times the vertices that a
// cold start moves. It cuts at most mostMore times the cold cut in addition.
const mostMoved, mostMore = .2, .05

// rate is the price of moving a vertex, in edge weight: the additional cut allowed to a
// warm start, divided by its allowed moves.
func rate(cut int64, moves int) float64 {
	return mostMore / mostMoved * float64(cut) / float64(max(1, moves))
}

// way parametrizes a cycle through the levels.
type way struct {
	// bond is the cost of moving a vertex, in edge weight.
	bond float64
	// flat stays on the finest level. deep goes to levels of fewer vertices than a cold
	// start does.
	flat, deep bool
	// spread shifts borders first. Only the excess left moves to wherever there is room.
	spread bool
}

// ways are tried in turn. The best way differs by graph, and partly depends on luck.
// Bonds are multiples of rate.
var ways = []way{
	{bond: 4, flat: true, spread: true},
	{bond: 1, spread: true, deep: true},
	{bond: 16, deep: true},
	{bond: .05, deep: true},
	{bond: .25},
	{bond: .05, spread: true, deep: true},
	{bond: 64, deep: true},
}

// No more ways are tried after enoughKept if both bounds are kept, and after enoughFew if
// the cut is next to nothing.
const enoughKept, enoughFew = 1, 3

// tight and slack are the bonds of a cycle from the best partition so far. tight is for a
// partition that moves too much, slack for a partition that cuts too much.
const tight, slack = 4, .05

// choice chooses among partitions near a start.
type choice struct {
	s         *solver
	p         *problem
	start, at []int32
	cold      found
	coldMoved int

	best found
	rank rank
}

// rank orders partitions, the least first.
type rank struct {
	class class
	by    float64
}

type class int

const (
	kept       class = iota // within both bounds
	nearlyKept              // within the bound on moves; the additional cut is next to nothing
	missed
	unbalanced
)

func (r rank) below(other rank) bool {
	return r.class < other.class || r.class == other.class && r.by < other.by
}

func newChoice(s *solver, p *problem, start, at []int32, cold found) *choice {
	if cold.in != nil {
		p = cold.in
	}
	c := &choice{s: s, p: p, start: start, at: at, cold: cold, coldMoved: moved(cold.part, start)}
	c.best, c.rank = cold, c.rankOf(cold)
	return c
}

// most returns the bound on the cut.
func (c *choice) most() int64 { return int64((1 + mostMore) * float64(c.cold.cut)) }

// shares returns the additional cut of f and its moves, each as a share of its bound.
func (c *choice) shares(f found) (cut, moves float64) {
	cut = float64(f.cut-c.cold.cut) / mostMore / max(epsilon, float64(c.cold.cut))
	if m := moved(f.part, c.start); m > 0 {
		moves = float64(m) / mostMoved / float64(max(1, c.coldMoved))
	}
	return cut, moves
}

// rankOf prefers partitions within both bounds. Among them it weighs a twentieth of the
// cold cut like a fifth of the cold moves. Among others it prefers the partition that is
// least beyond either bound.
func (c *choice) rankOf(f found) rank {
	cut, moves := c.shares(f)
	switch {
	case f.over > c.cold.over+epsilon:
		return rank{unbalanced, f.over}
	case cut <= 1 && moves < 1:
		return rank{kept, cut + moves}
	case !f.cutsMore(c.cold, c.p) && moves < 1:
		return rank{nearlyKept, cut + moves}
	}
	return rank{missed, max(cut, moves)}
}

func (c *choice) consider(f found) {
	if c.s.err != nil {
		return
	}
	if r := c.rankOf(f); r.below(c.rank) {
		c.best, c.rank = f, r
	}
}

// enough reports whether no further way need be tried after so many ways.
func (c *choice) enough(ways int) bool {
	if c.s.err != nil {
		return true
	}
	few := !c.cold.cutsMore(found{}, c.p)
	return c.rank.class == kept && (few && ways == 0 || ways >= enoughKept) ||
		c.rank.class == nearlyKept && few && ways >= enoughFew
}

// run looks for the best partition.
func (c *choice) run(o *Options) {
	c.consider(found{part: c.at, cut: c.p.l.cut(c.at), over: c.p.over(c.at)})
	c.components(o)
	if c.enough(0) {
		return
	}
	b := c.s.bind(c.p, c.at, c.start)
	each := rate(c.cold.cut, c.coldMoved)
	cycle := func(from, other []int32, w way) found {
		w.bond *= each
		f := b.cycle(from, other, w)
		c.consider(f)
		return f
	}
	// Small graphs get several rounds, as in trials.
	rounds := max(1, min(4, trialWork/c.p.size()))
	for i, w := range slices.Repeat(ways, rounds) {
		if c.enough(i) {
			return
		}
		f := cycle(c.at, nil, w)
		if i == 0 || c.enough(i) {
			continue
		}
		// Levels keep the borders of both f and the best partition, so that the next
		// partition may take from either.
		w := way{bond: slack, spread: true, deep: true}
		if cut, moves := c.shares(c.best); moves >= cut {
			w.bond = tight
		}
		c.goHome(cycle(c.best.part, f.part, w))
	}
	if c.s.err == nil && c.rank.class == missed {
		c.goHome(cycle(c.cold.part, nil, way{bond: tight, spread: true, deep: true}))
	}
}

// goHome considers f with vertices moved back, if f moves too much and may cut more.
func (c *choice) goHome(f found) {
	if c.s.err != nil {
		return
	}
	if cut, moves := c.shares(f); cut < 1 && moves >= 1 {
		c.consider(c.s.goHome(c.p, f, c.at, c.most()))
	}
}

// components tries to move components whole, which may take a looser balance.
func (c *choice) components(o *Options) {
	if c.rank.class == kept || c.cold.cutsMore(found{}, c.p) {
		return
	}
	try := func(p *problem) (whole bool) {
		part := append([]int32(nil), c.at...)
		balanced, whole := c.s.moveComponents(p, part)
		if balanced {
			c.consider(found{part: part, cut: p.l.cut(part)})
		}
		return whole
	}
	if !try(c.p) {
		return
	}
	for imbalance := max(o.Stretch, defaultStretch); imbalance <= o.Loose+epsilon && c.rank.class != kept && c.s.err == nil; imbalance += .01 {
		if imbalance > o.Imbalance {
			try(c.p.looser(c.s, imbalance))
		}
	}
}
