package cut

// few bounds two shares at 1 in few. In a trusted start it bounds the vertices without a
// part, in a poor start the additional cut over a cold start.
const few = 10

// steady is the share by which a cycle through the levels has to lower the cut, for a
// balanced start to be doubted.
const steady = .01

// warm partitions p near start into part. It reports false if start places no vertex.
func (s *solver) warm(p *problem, part, start []int32, o *Options) bool {
	had := 0
	for _, q := range start {
		if q >= 0 {
			had++
		}
	}
	if had == 0 {
		return false
	}
	at := append([]int32(nil), start...)
	s.adopt(p, at)
	if s.err != nil {
		return true
	}
	poor := p.poor(at)
	if !poor && had >= p.l.n-p.l.n/few {
		f, ok := s.settled(p, at, start)
		if s.err != nil {
			return true
		}
		if ok {
			copy(part, f.part)
			return true
		}
	}
	// The result of a cold start, independent of earlier random choices.
	s.rng = o.chance()
	cold := s.cold(p, o)
	if s.err != nil {
		return true
	}
	Relabel(cold.part, start, p.k)
	if before := p.l.cut(at); poor && cold.cut < before-before/few {
		copy(part, cold.part)
		return true
	}
	s.keepStretched(p, at, &cold, o)
	c := newChoice(s, p, start, at, cold)
	c.run(o)
	copy(part, c.best.part)
	return true
}

// settled returns the partition for a balanced start in which a cycle through the levels
// finds little to improve. It returns false for other starts.
func (s *solver) settled(p *problem, at, start []int32) (found, bool) {
	f := found{part: at, cut: p.l.cut(at), over: p.over(at)}
	if f.over > epsilon {
		return f, false
	}
	kept := found{part: append([]int32(nil), at...)}
	kept.cut, kept.over = s.mend(p, kept.part)
	if s.err != nil || !kept.cutsMore(found{}, p) && f.cut-kept.cut <= f.cut/100 {
		return kept, true
	}
	each := rate(f.cut, p.l.n/2)
	g := s.bind(p, at, start).cycle(at, nil, way{bond: each})
	if float64(g.cut) < (1-steady)*float64(f.cut) {
		return f, false
	}
	if pays := float64(f.cut-g.cut) - each*float64(moved(g.part, start)); g.over <= epsilon && pays > 0 {
		return g, true
	}
	return f, true
}

// poor reports whether part cuts more than half as much as a random partition.
func (p *problem) poor(part []int32) bool {
	chance := float64(p.l.edgeWeight()) * float64(p.k-1) / float64(p.k)
	return float64(p.l.cut(part)) > chance/2
}

// moved returns how many vertices have left their part of start.
func moved(part, start []int32) int {
	n := 0
	for v, q := range start {
		if q >= 0 && q != part[v] {
			n++
		}
	}
	return n
}

// mend refines the partition part of p without a cycle through levels.
func (s *solver) mend(p *problem, part []int32) (cut int64, over float64) {
	st := s.newState(p.l.n, p.k, p.maxw)
	defer s.free(st)
	copy(st.part, part)
	st.load(p.l, nil)
	st.refine()
	copy(part, st.part[:p.l.n])
	return st.cut, st.over
}

// goHome moves vertices of f back to their parts in at, cheapest first, as long as the
// cut is at most most.
func (s *solver) goHome(p *problem, f found, at []int32, most int64) found {
	st := s.newState(p.l.n, p.k, p.maxw)
	defer s.free(st)
	copy(st.part, f.part)
	st.load(p.l, nil)
	q := &st.queue
	for v := range int32(p.l.n) {
		if st.part[v] != at[v] {
			q.set(v, st.toward(v, at[v]))
		}
	}
	for !q.empty() {
		v, key := q.pop()
		gain := st.toward(v, at[v])
		if gain < key && !q.empty() && q.items[0].key > gain {
			q.set(v, gain)
			continue
		}
		if st.cut-gain > most || !st.fits(v, at[v]) {
			continue
		}
		if !s.spend(4 * (p.l.degree(v) + 1)) {
			break
		}
		st.move(v, at[v])
		lo, hi := p.l.row(v)
		for _, u := range p.l.adj[lo:hi] {
			if st.part[u] != at[u] {
				q.set(u, st.toward(u, at[u]))
			}
		}
	}
	if s.err != nil || st.over > f.over+epsilon {
		return f
	}
	return found{part: append([]int32(nil), st.part[:p.l.n]...), cut: st.cut, over: st.over}
}

// toward returns the fall of the cut if v goes to part p.
func (st *state) toward(v, p int32) int64 {
	gain := int64(0)
	lo, hi := st.l.row(v)
	for e := lo; e < hi; e++ {
		switch st.part[st.l.adj[e]] {
		case p:
			gain += int64(st.l.ew[e])
		case st.part[v]:
			gain -= int64(st.l.ew[e])
		}
	}
	return gain
}

// adopt places vertices without a part: with most of their neighbours, or in the part
// with most room.
func (s *solver) adopt(p *problem, part []int32) {
	b := newBins(p.k, p.l.weights(), p.maxw)
	it := items{p.l.dims, p.l.vw}
	for v, q := range part {
		if q >= 0 {
			b.put(int(q), it.of(int32(v)))
		}
	}
	score := make([]int64, p.k)
	var queue []int32
	place := func(v int32) {
		q := s.adopter(p.l, part, v, b, score)
		part[v] = q
		b.put(int(q), it.of(v))
		for e, hi := p.l.row(v); e < hi; e++ {
			if u := p.l.adj[e]; part[u] < 0 {
				queue = append(queue, u)
			}
		}
	}
	// Vertices beside placed vertices come first, then their neighbours, and so on.
	for v, q := range part {
		if q >= 0 {
			continue
		}
		for e, hi := p.l.row(int32(v)); e < hi; e++ {
			if part[p.l.adj[e]] >= 0 {
				queue = append(queue, int32(v))
				break
			}
		}
	}
	for root := range int32(p.l.n) {
		for i := 0; i < len(queue); i++ {
			if part[queue[i]] < 0 {
				place(queue[i])
			}
		}
		queue = queue[:0]
		if part[root] < 0 {
			place(root)
		}
	}
}

// adopter returns the part for v; score holds zeros.
func (s *solver) adopter(l *level, part []int32, v int32, b *bins, score []int64) int32 {
	w := l.vw[int(v)*l.dims : int(v+1)*l.dims]
	lo, hi := l.row(v)
	s.spend(int(hi-lo) + 1)
	best := int32(-1)
	for e := lo; e < hi; e++ {
		q := part[l.adj[e]]
		if q < 0 {
			continue
		}
		score[q] += int64(l.ew[e])
		if (best < 0 || score[q] > score[best]) && b.fits(int(q), w) {
			best = q
		}
	}
	for e := lo; e < hi; e++ {
		if q := part[l.adj[e]]; q >= 0 {
			score[q] = 0
		}
	}
	if best < 0 {
		best = int32(b.lowestWith(w))
	}
	return best
}
