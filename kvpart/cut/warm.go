package cut

// few is what share of the vertices a warm start may move, or place that were in no
// part, without a look at what a cold one cuts: 1 in few.
const few = 10

// warm partitions p near start into part. It reports false if start says nothing.
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
	// Where they start is far from good, or says little: is it worth it at all?
	var cold found
	asked := had < p.l.n-p.l.n/few || p.poor(at)
	if asked {
		if cold = s.cold(p, o); s.err != nil {
			return true
		}
		if before := p.l.cut(at); cold.cut < before-before/few {
			copy(part, cold.part)
			Relabel(part, start, p.k)
			return true
		}
	}
	kept, best := s.near(p, at, o)
	if s.err != nil {
		return true
	}
	copy(part, best.part)
	if !asked {
		if best.over <= epsilon && moved(best.part, start) <= had/few {
			return true
		}
		if cold = s.cold(p, o); s.err != nil {
			return true
		}
	}
	for _, f := range []found{kept, best} {
		if f.over <= cold.over+epsilon && f.cut <= max(cold.cut+cold.cut/20, cold.cut+int64(enough*float64(p.l.edgeWeight()))) {
			copy(part, f.part)
			return true
		}
	}
	copy(part, cold.part)
	Relabel(part, start, p.k)
	return true
}

// poor reports whether part cuts more than half of what chance would.
func (p *problem) poor(part []int32) bool {
	chance := float64(p.l.edgeWeight()) * float64(p.k-1) / float64(p.k)
	return float64(p.l.cut(part)) > chance/2
}

// moved is how many vertices are not where they were.
func moved(part, start []int32) int {
	n := 0
	for v, q := range start {
		if q >= 0 && q != part[v] {
			n++
		}
	}
	return n
}

// near partitions p near at, in a way that moves little, and in the best of those
// that it tries: if a cycle through the levels finds much better, or if whole
// components cut much less. They are the same where moving little is good enough.
func (s *solver) near(p *problem, at []int32, o *Options) (kept, best found) {
	kept = found{part: append([]int32(nil), at...)}
	before := p.l.cut(at)
	kept.cut, kept.over = s.mend(p, kept.part)
	if s.err != nil || kept.over <= epsilon && !kept.cutsMore(found{}, p) && kept.cut <= before+before/100 {
		return kept, kept
	}
	best = found{part: append([]int32(nil), at...)}
	best.cut, best.over = s.again(p, best.part)
	if s.err != nil {
		return kept, best
	}
	switch stay := s.stay(p, at); {
	case stay.almost(best):
		kept, best = stay, stay
	case best.better(kept) && moved(best.part, at) <= moved(kept.part, at)+p.l.n/1000:
		kept = best
	case kept.almost(best):
		best = kept
	case moved(best.part, at) > p.l.n/20:
		best = s.goHome(p, best, at)
	}
	if s.err != nil || !best.cutsMore(found{}, p) {
		return kept, best
	}
	c := found{part: append([]int32(nil), at...)}
	balanced, whole := s.moveComponents(p, c.part)
	if balanced || !whole || s.err != nil {
		if balanced {
			return c, c
		}
		return kept, best
	}
	loose := s.loosened(p, o, best, func(q *problem) found {
		c := found{part: append([]int32(nil), at...)}
		if balanced, _ := s.moveComponents(q, c.part); !balanced {
			c.cut, c.over = s.again(q, c.part)
		}
		return c
	})
	if loose.cut < best.cut {
		return loose, loose
	}
	return kept, best
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

// notable is how much more a partition cuts, as a share, for moving to pay that
// balance does not ask for.
const notable = .02

// stay moves what parts that weigh too much have to lose, and nothing else.
func (s *solver) stay(p *problem, at []int32) found {
	st := s.newState(p.l.n, p.k, p.maxw)
	defer s.free(st)
	copy(st.part, at)
	st.load(p.l, nil)
	st.rebalance()
	return found{append([]int32(nil), st.part[:p.l.n]...), st.cut, st.over}
}

// almost reports whether f cuts not notably more than g.
func (f found) almost(g found) bool {
	return f.over <= g.over+epsilon && float64(f.cut) <= (1+notable)*float64(g.cut)
}

// goHome moves vertices of f back to where they are at, those first that it costs
// least, as long as it cuts not notably more.
func (s *solver) goHome(p *problem, f found, at []int32) found {
	st := s.newState(p.l.n, p.k, p.maxw)
	defer s.free(st)
	copy(st.part, f.part)
	st.load(p.l, nil)
	most := int64((1 + notable) * float64(f.cut))
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
	return found{append([]int32(nil), st.part[:p.l.n]...), st.cut, st.over}
}

// toward is by how much the cut falls if v goes to part p.
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

// adopt places the vertices that are in no part: with most of their neighbours, or
// where there is most room.
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
	// Those beside vertices with a place come first, then those beside them, and so on.
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

// adopter returns the part for v; score is of zeros.
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
