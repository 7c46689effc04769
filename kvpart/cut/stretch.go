package cut

// A stretched partition exceeds the imbalance by up to two hundredths of the mean, so the
// busiest part works up to 2 % more. It therefore has to cut stretchShare of all edges
// less: a request on several parts takes about four times the additional work (see
// kvpart/control). It also has to cut a third less, so that the luck of trials does not
// decide.
const (
	stretchShare = .005
	stretchCut   = 2. / 3
)

// trials returns the best of several partitions of a small graph, or the only partition
// of a large graph. Every second trial is within o.Stretch. Its partition is taken as it
// is if it cuts much less than all others; otherwise it is tightened to the imbalance.
func (s *solver) trials(p *problem, o *Options) found {
	n := p.trials()
	var wide *problem
	if n > 1 {
		wide = p.stretched(s, o)
	}
	var best, widest found
	for try := range n {
		in := p
		if wide != nil && try%2 == 1 {
			in = wide
		}
		f := found{part: make([]int32, p.l.n)}
		f.cut, f.over = s.solve(in, f.part, p.tries(try))
		if s.err != nil {
			return f
		}
		if in == wide {
			g := f
			g.in = wide
			if widest.part == nil || g.better(widest) {
				widest = g
			}
			f = s.tighten(p, f)
		}
		if try == 0 || f.better(best) {
			best = f
		}
	}
	if widest.part != nil && widest.over <= epsilon && best.paysToStretch(widest.cut, p) {
		return widest
	}
	return best
}

// stretched returns p with parts within o.Stretch, or nil if p allows as much already.
func (p *problem) stretched(s *solver, o *Options) *problem {
	if o.Stretch <= o.Imbalance {
		return nil
	}
	q := p.looser(s, o.Stretch)
	for i, w := range q.maxw {
		if w > p.maxw[i] {
			return q
		}
	}
	return nil
}

// paysToStretch reports whether a cut of least is so much less than f's that parts may be
// within Options.Stretch.
func (f found) paysToStretch(least int64, p *problem) bool {
	return float64(least) <= stretchCut*float64(f.cut) &&
		float64(f.cut-least) >= stretchShare*float64(p.l.edgeWeight())
}

// tighten returns the partition f of a looser problem, refined within the bounds of p.
func (s *solver) tighten(p *problem, f found) found {
	f.part = append([]int32(nil), f.part...)
	f.cut, f.over = s.mend(p, f.part)
	return f
}

// keepStretched makes cold a partition of the stretched problem if a start is within
// Options.Stretch, and cuts so much less than cold that cold would be stretched for it.
// Otherwise the luck of a cold start would decide whether the start stays.
func (s *solver) keepStretched(p *problem, at []int32, cold *found, o *Options) {
	if cold.in != nil || p.trials() == 1 || p.over(at) <= epsilon {
		return
	}
	wide := p.stretched(s, o)
	if wide != nil && wide.over(at) <= epsilon && cold.paysToStretch(p.l.cut(at), p) {
		cold.in = wide
		cold.over = wide.over(cold.part)
	}
}
