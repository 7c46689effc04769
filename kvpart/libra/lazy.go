package libra

import "slices"

// lazy decides for a hot node as a whole (paper, section IV-C, figure 8): it collects
// moves until the node is at the mean. If they suffice they are decided, and nothing is
// split. Otherwise, if splits would free enough, only splits are decided: moves of the
// parts will be better than moves of small units now.
//
// The paper drains the critical dimension of the node alone. That fills destinations in
// one dimension, which then take nothing more of the other. Here each move is in the
// dimension that is critical by then.
func (p *Plan) lazy(hot int) {
	before := p.loads[hot]
	var moves []Action
	for p.loads[hot].most() > 1 && (p.opt.Moves == 0 || p.moves+len(moves) < p.opt.Moves) {
		d := p.loads[hot].critical()
		i, to, ok := p.move(hot, d)
		if !ok {
			break
		}
		moves = append(moves, Action{Kind: Migrate, Unit: i, From: hot, To: to, Dimension: d})
		p.shift(i, to)
		p.busy[i] = true
	}
	p.planned[hot] = len(moves) == 0
	if p.loads[hot].most() > 1+p.opt.Tolerance {
		d := p.loads[hot].critical()
		if splits := p.significant(hot, d, before[d]-1); len(splits) > 0 {
			for _, a := range moves {
				p.shift(a.Unit, hot)
				p.busy[a.Unit] = false
			}
			p.aim.hot = none // nodes lost load: look at all units again
			for _, i := range splits {
				p.split(i, d)
			}
			p.planned[hot] = true
			return
		}
	}
	p.moves += len(moves)
	p.decided = append(p.decided, moves...)
}

// significant returns the units to split of a hot node that its moves do not relieve, the
// heaviest first, and no more than needed: their parts can take all excess off the node.
// It returns none if all of them have less than half of the excess.
func (p *Plan) significant(hot int, d Dimension, excess float64) (splits []int) {
	need := excess
	for _, i := range p.queue(hot, d) {
		if need <= 0 {
			break
		}
		if u := &p.units[i]; !p.busy[i] && u.Load[d] > p.cap() && p.splittable(int(i)) && p.fits(u, d) {
			splits = append(splits, int(i))
			need -= u.Load[d]
		}
	}
	if excess-need < excess/2 {
		return nil
	}
	return splits
}

// fits reports whether a part of λ/2 of a unit would find a destination. Where not even a
// part does, a split brings nothing.
func (p *Plan) fits(u *Unit, d Dimension) bool {
	share := p.cap() / u.Load[d]
	part := Load{share * u.Load[CPU], share * u.Load[Disk]}
	for j := range p.loads {
		if j == u.Node || slices.Contains(u.Barred, j) {
			continue
		}
		after := p.loads[j].plus(part, 1)
		if after.most() <= 1+p.opt.Tolerance || after[d] <= 1+p.opt.Tolerance && after.most() < p.loads[u.Node][d] {
			return true
		}
	}
	return false
}

// widens reports whether a unit above λ/2 would widen the gap between the dimensions of a
// destination beyond λ (paper, section IV-C, stage 2).
func (p *Plan) widens(u *Unit, to int, d Dimension) bool {
	if p.opt.Eager || u.Load[d] <= p.cap() {
		return false
	}
	return gap(p.loads[to].plus(u.Load, 1)) > max(gap(p.loads[to]), p.opt.Tolerance)
}

// gap is the difference of the dimensions.
func gap(l Load) float64 { return max(l[CPU]-l[Disk], l[Disk]-l[CPU]) }
