package libra

import (
	"math"
	"slices"
)

// attempts is how many units of a hot node an exchange tries with each other node, and how
// many units there: the heaviest that are not barred.
const attempts = 16

// exchange decides that a hot node and another swap a unit each, and reports whether it
// did. The paper has no such step. Without it a round is stuck where all nodes are hot, some
// of processor load and some of disk load: none of them may be a destination.
//
// An exchange leaves both nodes with at most 1 + λ in a dimension, or with no more than
// before, and the hot node with less. Between its two moves the destination of the first
// may have more, by the load of that unit. It does not look at affinities. As a last resort
// it may be a move alone, and only lowers the larger load of both nodes: see resort.
func (p *Plan) exchange(hot int, d Dimension, last bool) bool {
	if p.opt.Printed || p.opt.Moves > 0 && p.moves+2 > p.opt.Moves {
		return false
	}
	tried := make([]int, len(p.loads)) // units, by node
	tried[hot] = attempts
	for _, i := range p.left(hot, d) {
		if p.units[i].Load[d] <= p.opt.Benefit || !slices.ContainsFunc(tried, func(n int) bool { return n < attempts }) {
			break
		}
		j, k := p.partner(int(i), d, last, tried)
		if j == none {
			continue
		}
		p.migrate(int(i), j, d)
		if k != none {
			p.migrate(k, hot, d.other())
			for n := len(p.decided) - 2; n < len(p.decided); n++ {
				p.decided[n].Swap = true
			}
		}
		for _, n := range []*node{&p.nodes[hot], &p.nodes[j]} {
			// Another dimension may be critical now, or more load may leave.
			n.stale, n.idle = true, n.split
		}
		return true
	}
	return false
}

// resort decides a last move or swap off the worst node, if none of its units can be split:
// a step that lowers the larger load of two nodes, though a node stays above 1 + λ. The paper
// splits until such a step is not needed. It reports whether it did.
func (p *Plan) resort() bool {
	hot := p.worst()
	d := p.loads[hot].critical()
	return p.excess(hot) > p.opt.Tolerance && !p.nodes[hot].split && len(p.heavy(hot, d)) == 0 && p.exchange(hot, d, true)
}

// partner returns the node and unit with which the exchange of unit i leaves least overload
// on both nodes. As a last resort it returns the pair with the least load of the larger of
// both nodes, and none for a move without a unit in return.
func (p *Plan) partner(i int, d Dimension, last bool, tried []int) (node, unit int) {
	node, unit = none, none
	u := &p.units[i]
	hot := p.loads[u.Node]
	best := math.Inf(1)
	try := func(j, k int, gain Load) {
		from, to := hot.plus(gain, -1), p.loads[j].plus(gain, 1)
		if from.most() >= hot.most() || to.most() >= hot.most() {
			return
		}
		o := overload(from) + overload(to)
		if last {
			o = max(from.most(), to.most())
			if hot.most()-o <= p.opt.Benefit {
				return
			}
		} else if from[d] < 1-p.opt.Tolerance || !p.within(from, hot) || !p.within(to, p.loads[j]) || o >= overload(hot)+overload(p.loads[j]) {
			return
		}
		if o < best {
			node, unit, best = j, k, o
		}
	}
	for j := range p.loads {
		if tried[j] == attempts || slices.Contains(u.Barred, j) {
			continue
		}
		tried[j]++
		if last {
			try(j, none, u.Load)
		}
		partners := 0
		for _, k := range p.left(j, d.other()) {
			v := &p.units[k]
			if partners == attempts || v.Load.most() <= p.opt.Benefit {
				break
			}
			if slices.Contains(v.Barred, u.Node) {
				continue
			}
			partners++
			if gain := u.Load.plus(v.Load, -1); gain[d] > p.opt.Benefit {
				try(j, int(k), gain)
			}
		}
	}
	return node, unit
}

// within reports whether a load is at most 1 + λ, or as before, in each dimension.
func (p *Plan) within(l, before Load) bool {
	return l[CPU] <= max(1+p.opt.Tolerance, before[CPU]) && l[Disk] <= max(1+p.opt.Tolerance, before[Disk])
}

// overload is the load above the mean, in both dimensions.
func overload(l Load) float64 { return max(l[CPU]-1, 0) + max(l[Disk]-1, 0) }
