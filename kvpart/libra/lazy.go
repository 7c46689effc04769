package libra

import "slices"

// lazy decides a whole round before Step returns any of it (paper, section IV-C, figure 8).
// First it collects moves until each hot node is at the mean. A node with moves that suffice
// is not split. Of another node, if splits would free enough, only splits are decided: moves
// of the parts will be better than moves of small units now.
//
// The paper drains a node after the other, and only the critical dimension of each. That
// fills destinations in one dimension, and they take nothing more of the other. Here each
// move is off the node that is hottest by then, in the dimension that is critical by then.
// A bound on the moves of a round is no reason to split.
func (p *Plan) lazy() {
	before := p.Loads()
	for !p.full() {
		hot := none
		for j, l := range p.loads {
			if max(before[j].most(), l.most()) > 1+p.aim() && l.most() > 1 && !p.nodes[j].idle &&
				(hot == none || l.most() > p.loads[hot].most()) {
				hot = j
			}
		}
		if hot == none {
			if p.resort() {
				continue
			}
			break
		}
		d := p.loads[hot].critical()
		if i, to, ok := p.move(hot, d); ok {
			p.migrate(i, to, d)
		} else if p.excess(hot) <= p.opt.Tolerance || !p.exchange(hot, d, false) {
			p.nodes[hot].idle = true
		}
	}
	if p.full() {
		return
	}
	tied := p.tied()
	for j := range p.loads {
		if before[j].most()-1 <= p.opt.Tolerance || p.excess(j) <= p.opt.Tolerance {
			continue
		}
		d := p.loads[j].critical()
		if splits := p.significant(j, d, before[j][d]-1); len(splits) > 0 {
			if !tied[j] {
				p.undo(j)
			}
			need := before[j][d] - 1
			for _, i := range splits {
				p.split(i, d, need)
				need -= p.units[i].Load[d]
			}
		}
	}
}

// tied returns the nodes with moves that must not be taken back: other moves count on them.
// These are sources that are destinations too, and sources of moves there.
func (p *Plan) tied() []bool {
	source, tied := make([]bool, len(p.nodes)), make([]bool, len(p.nodes))
	for _, a := range p.decided {
		source[a.From] = true
	}
	for _, a := range p.decided {
		if source[a.To] {
			tied[a.From], tied[a.To] = true, true
		}
	}
	return tied
}

// undo takes back the moves off a node.
func (p *Plan) undo(hot int) {
	p.decided = slices.DeleteFunc(p.decided, func(a Action) bool {
		if a.Kind != Migrate || a.From != hot {
			return false
		}
		p.shift(a.Unit, hot)
		p.busy[a.Unit] = false
		p.moves--
		return true
	})
	p.nodes[hot].left, p.nodes[hot].fresh = [dimensions][]int32{}, [dimensions]bool{}
}

// significant returns the units to split of a hot node that its moves do not relieve, the
// heaviest first, and no more than needed: their parts can take all excess off the node.
// It returns none if all of them have less than half of the excess, and the round has
// other decisions, after which more units may move.
func (p *Plan) significant(hot int, d Dimension, excess float64) (splits []int) {
	need := excess
	for _, i := range p.heavy(hot, d) {
		if need <= 0 {
			break
		}
		splits = append(splits, i)
		need -= p.units[i].Load[d]
	}
	if len(p.decided) > 0 && excess-need < excess/2 {
		return nil
	}
	return splits
}

// aim is the excess above which a lazy round relieves a node, once a node exceeds λ. Rounds
// that stop at λ begin again with the next measurement that errs.
func (p *Plan) aim() float64 { return p.opt.Tolerance / 2 }

// widens reports whether a unit above λ/2 would widen the gap between the dimensions of a
// destination beyond λ (paper, section IV-C, stage 2). Where a dimension has no load at all
// the gap says nothing.
func (p *Plan) widens(u *Unit, to int, d Dimension) bool {
	if p.opt.Eager || p.single || u.Load[d] <= p.cap() {
		return false
	}
	return gap(p.loads[to].plus(u.Load, 1)) > max(gap(p.loads[to]), p.opt.Tolerance)
}

// gap is the difference of the dimensions.
func gap(l Load) float64 { return max(l[CPU]-l[Disk], l[Disk]-l[CPU]) }
