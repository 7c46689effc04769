package cut

import "math"

const (
	// rounds and patience bound the refinement of a level; see apart.
	rounds   = 6
	patience = 40
	// togetherTo is the most vertices of a level that is climbed from the whole border at
	// once.
	togetherTo = 5000
)

// coarsen contracts l until it has at most about small vertices or shrinks no longer
// well. The finest level, l, comes first.
func (s *solver) coarsen(l *level, keep []int32, heavy []int64, small int) []*level {
	levels := []*level{l}
	for l.n > small {
		nc := s.group(l, keep, heavy)
		if s.err != nil || nc > l.n*19/20 {
			break
		}
		c := s.contract(l, nc)
		if s.err != nil {
			break
		}
		if keep != nil {
			coarse := s.ints.take(nc)
			for v, x := range l.up {
				coarse[x] = keep[v]
			}
			keep = coarse
		}
		levels = append(levels, c)
		l = c
	}
	return levels
}

// project makes st the partition of the finer level l.
func (s *solver) project(st *state, l *level) {
	h := s.mark()
	coarse := s.ints.take(st.l.n)
	inner := s.ints.take(st.l.n)
	copy(coarse, st.part)
	copy(inner, st.size)
	for v := range l.n {
		st.part[v] = coarse[l.up[v]]
	}
	st.load(l, func(v int32) bool { return inner[l.up[v]] == 0 })
	s.release(h)
}

// solve partitions p from scratch into part; the coarsest graph is cut so many times. It
// returns the cut.
func (s *solver) solve(p *problem, part []int32, tries int) (cut int64, over float64) {
	h := s.mark()
	defer s.release(h)
	small := coarsest(p.l.n, p.k)
	levels := s.coarsen(p.l, nil, p.heavy(), small)
	if s.err != nil {
		return 0, 0
	}
	st := s.newState(p.l.n, p.k, p.maxw)
	defer s.free(st)
	s.initial(p, levels[len(levels)-1], st, tries)
	for i := len(levels) - 1; i >= 0 && s.err == nil; i-- {
		if i < len(levels)-1 {
			s.project(st, levels[i])
		}
		st.refine()
	}
	copy(part, st.part[:p.l.n])
	return st.cut, st.over
}

// again refines the partition part of p by another cycle through the levels, which are
// contracted within its parts.
func (s *solver) again(p *problem, part []int32) (cut int64, over float64) {
	h := s.mark()
	defer s.release(h)
	levels := s.coarsen(p.l, part, p.heavy(), coarsest(p.l.n, p.k))
	if s.err != nil {
		return 0, 0
	}
	st := s.descend(p, levels, part, (*state).refine)
	defer s.free(st)
	copy(part, st.part[:p.l.n])
	return st.cut, st.over
}

// descend refines part from the coarsest of levels, which are contracted within its
// parts, down to the finest.
func (s *solver) descend(p *problem, levels []*level, part []int32, refine func(*state)) *state {
	st := s.newState(p.l.n, p.k, p.maxw)
	at := s.ints.take(p.l.n)
	copy(at, part)
	for _, l := range levels[:len(levels)-1] {
		for v, x := range l.up {
			at[x] = at[v]
		}
	}
	coarse := levels[len(levels)-1]
	copy(st.part, at[:coarse.n])
	st.load(coarse, nil)
	for i := len(levels) - 1; i >= 0 && s.err == nil; i-- {
		if i < len(levels)-1 {
			s.project(st, levels[i])
		}
		refine(st)
	}
	return st
}

// coarsest is the intended size of the coarsest graph: enough vertices for a good cut,
// and few enough for a quick cut.
func coarsest(n, k int) int {
	return max(30*k, min(n/(20*max(1, int(math.Log2(float64(k))))), 4000), 400)
}

// refine improves the partition of a level.
func (st *state) refine() {
	st.rebalance()
	if st.l.n <= togetherTo {
		st.together(4, 100)
	}
	st.apart(rounds, patience)
	st.rebalance()
}

// initial sets st to the best of several partitions of the coarsest level: tries from
// scratch, and packed units.
func (s *solver) initial(p *problem, l *level, st *state, tries int) {
	h := s.mark()
	defer s.release(h)
	best := found{part: s.ints.take(l.n), over: math.Inf(1)}
	consider := func() {
		if f := (found{cut: st.cut, over: st.over}); f.better(best) && s.err == nil {
			copy(best.part, st.part)
			best.cut, best.over = f.cut, f.over
		}
	}
	ids := s.ints.take(l.n)
	for i := range ids {
		ids[i] = int32(i)
	}
	for range tries {
		s.recurse(l, ids, st.part, 0, p.k, p.room, p.maxw)
		if s.err != nil {
			return
		}
		st.load(l, nil)
		st.refine()
		consider()
	}
	s.units(p, l, st, consider)
	copy(st.part, best.part)
	st.load(l, nil)
}

// units looks for groups that are best kept whole, clusters as heavy as a part may be,
// and packs them.
func (s *solver) units(p *problem, l *level, st *state, consider func()) {
	h := s.mark()
	defer s.release(h)
	levels := s.coarsen(l, nil, p.maxw[:l.dims], 2*p.k)
	for top := len(levels) - 1; top > 0 && s.err == nil; top-- {
		u := levels[top]
		if u.n < p.k || u.n > 50*p.k {
			continue
		}
		b := newBins(p.k, u.weights(), p.maxw)
		it := items{u.dims, u.vw}
		s.packAll(b, it, it.heaviestFirst(b.scale, nil), st.part[:u.n])
		if b.anyOver() {
			s.swap(b, it, st.part[:u.n])
		}
		st.load(u, nil)
		st.refine()
		for i := top - 1; i >= 0 && s.err == nil; i-- {
			s.project(st, levels[i])
			st.refine()
		}
		consider()
	}
}

// group decides which vertices of l are contracted: clusters, or pairs where clusters are
// few and small (stars, islands).
func (s *solver) group(l *level, keep []int32, heavy []int64) int {
	nc := s.cluster(l, keep, heavy)
	if nc > l.n*3/4 && s.err == nil {
		nc = s.match(l, keep, heavy)
	}
	return nc
}
