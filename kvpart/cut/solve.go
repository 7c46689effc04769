package cut

// enough is the share of the edge weight that may be cut in addition for a tighter
// balance, or for fewer moves.
const enough = .002

// found is a partition.
type found struct {
	part []int32
	cut  int64
	over float64
	in   *problem // the problem with a looser balance, if part keeps only that
}

// better reports whether f is to be preferred to g: balance first.
func (f found) better(g found) bool {
	return f.over < g.over-epsilon || f.over < g.over+epsilon && f.cut < g.cut
}

// partition sets part for p, near start if it is not nil.
func (s *solver) partition(p *problem, part, start []int32, o *Options) {
	if p.k == 1 || p.l.n == 0 {
		clear(part)
		return
	}
	if len(p.l.adj) == 0 {
		s.packVertices(p, part, start)
		return
	}
	if start != nil && s.warm(p, part, start, o) {
		return
	}
	f := s.cold(p, o)
	if s.err != nil {
		return
	}
	copy(part, f.part)
	if start != nil {
		Relabel(part, start, p.k)
	}
}

// packVertices places vertices by their weight alone.
func (s *solver) packVertices(p *problem, part, start []int32) {
	b := newBins(p.k, p.l.weights(), p.maxw)
	it := items{p.l.dims, p.l.vw}
	isNew := func(i int) bool { return start == nil || start[i] < 0 }
	for v := range part {
		if !isNew(v) {
			part[v] = start[v]
			b.put(int(start[v]), it.of(int32(v)))
		}
	}
	s.packAll(b, it, it.heaviestFirst(b.scale, isNew), part)
	if start != nil {
		s.repack(b, it, part)
	} else if b.anyOver() {
		s.swap(b, it, part)
	}
}

// cold partitions p without regard to the former partition.
func (s *solver) cold(p *problem, o *Options) found {
	var f found
	f.part = make([]int32, p.l.n)
	balanced, whole := s.packComponents(p, f.part)
	if balanced || s.err != nil {
		return f
	}
	packed := f.part
	f = s.trials(p, o)
	if !whole {
		return f
	}
	return s.loosened(p, o, f, func(q *problem) found {
		c := found{part: append([]int32(nil), packed...)}
		if balanced, _ := s.packComponents(q, c.part); !balanced {
			c.cut, c.over = s.again(q, c.part)
		}
		return c
	})
}

// loosened returns f, or a partition that cut makes at a looser balance if it cuts less.
// At the loosest balance it must cut at most half as much. Each component fits a part,
// but all together do not fit.
func (s *solver) loosened(p *problem, o *Options, f found, cut func(*problem) found) found {
	for _, imbalance := range []float64{o.Stretch, o.Loose} {
		if imbalance <= o.Imbalance || imbalance > o.Loose {
			continue
		}
		q := p.looser(s, imbalance)
		c := cut(q)
		c.in = q
		if s.err != nil {
			return f
		}
		if c.over <= epsilon && f.cutsMore(c, p) && (imbalance < o.Loose || f.cut >= 2*c.cut) {
			f = c
		}
	}
	return f
}

// cutsMore reports whether f cuts so much more than g that a looser balance, or more
// moves, are worth it.
func (f found) cutsMore(g found, p *problem) bool {
	return float64(f.cut-g.cut) > enough*float64(p.l.edgeWeight())
}

// edgeWeight sums the weights of the edges.
func (l *level) edgeWeight() int64 {
	sum := int64(0)
	for _, w := range l.ew {
		sum += int64(w)
	}
	return sum / 2
}
