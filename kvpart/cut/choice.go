package cut

import "slices"

// What a warm start is to keep to: it moves less than mostMoved of what a cold one
// moves, and cuts at most mostMore more.
const mostMoved, mostMore = .2, .05

// rate is what moving a vertex may cost in edges: what a warm start may cut more,
// shared among all that it may move.
func rate(cut int64, moves int) float64 {
	return mostMore / mostMoved * float64(cut) / float64(max(1, moves))
}

// way is how a cycle through the levels is made.
type way struct {
	// bond is what moving a vertex costs, in edges.
	bond float64
	// flat stays on the finest level; deep goes to levels of fewer vertices than a cold
	// start does.
	flat, deep bool
	// spread shifts borders before it moves what is too much to wherever there is room.
	spread bool
}

// ways are tried one after another: which one does best differs by graph, and is
// partly luck. Bonds are multiples of rate.
var ways = []way{
	{bond: 4, flat: true, spread: true},
	{bond: 1, spread: true, deep: true},
	{bond: 16, deep: true},
	{bond: .05, deep: true},
	{bond: .25},
	{bond: .05, spread: true, deep: true},
	{bond: 64, deep: true},
}

// After enoughKept ways no more is tried if both bounds are kept to, after enoughFew
// if the cut is next to nothing.
const enoughKept, enoughFew = 1, 3

// tight and slack are the bonds of a cycle from the best so far: where that moves
// too much, and where it cuts too much.
const tight, slack = 4, .05

// choice is one among partitions near a start.
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
	kept       class = iota // to both bounds
	nearlyKept              // but for a cut of next to nothing
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

// most is what may be cut.
func (c *choice) most() int64 { return int64((1 + mostMore) * float64(c.cold.cut)) }

// shares are how much f cuts more and moves, each of what it may.
func (c *choice) shares(f found) (cut, moves float64) {
	cut = float64(f.cut-c.cold.cut) / mostMore / max(epsilon, float64(c.cold.cut))
	if m := moved(f.part, c.start); m > 0 {
		moves = float64(m) / mostMoved / float64(max(1, c.coldMoved))
	}
	return cut, moves
}

// rankOf prefers what is within both bounds; there a twentieth of the cut is worth
// a fifth of the moves. Of others it prefers the one that is least beyond either.
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

// enough reports whether so many ways were.
func (c *choice) enough(ways int) bool {
	if c.s.err != nil {
		return true
	}
	few := !c.cold.cutsMore(found{}, c.p)
	return c.rank.class == kept && (few && ways == 0 || ways >= enoughKept) ||
		c.rank.class == nearlyKept && few && ways >= enoughFew
}

// run looks for the best.
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
	// Small graphs are tried again, as in trials.
	rounds := max(1, min(4, trialWork/(c.p.l.n+len(c.p.l.adj)+1)))
	for i, w := range slices.Repeat(ways, rounds) {
		if c.enough(i) {
			return
		}
		f := cycle(c.at, nil, w)
		if i == 0 || c.enough(i) {
			continue
		}
		// Borders of both this one and the best are kept while levels are made, so that
		// the next one may take from either.
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

// goHome considers f with vertices moved back, if it moves too much and may cut more.
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
	for imbalance := .05; imbalance <= o.Loose+epsilon && c.rank.class != kept && c.s.err == nil; imbalance += .01 {
		if imbalance > o.Imbalance {
			try(c.p.looser(c.s, imbalance))
		}
	}
}
