package cut

// match pairs vertices for contraction: each with the free neighbour to which its edge
// weighs most, vertices of few neighbours first. If many stay alone (stars), vertices
// with a common neighbour are paired too. No pair weighs more than heavy, nor spans two
// parts of keep (which may be nil). match sets l.up and returns the number of vertices of
// the coarser graph.
func (s *solver) match(l *level, keep []int32, heavy []int64) int {
	l.up = s.ints.take(l.n)
	h := s.mark()
	defer s.release(h)
	mate := s.filled(l.n, -1)
	alone := s.matchNeighbours(l, mate, keep, heavy)
	if alone > l.n/10 {
		s.matchTwoHop(l, mate, keep, heavy)
	}
	nc := int32(0)
	for v := range int32(l.n) {
		if u := mate[v]; u < 0 || u >= v {
			l.up[v] = nc
			nc++
		} else {
			l.up[v] = l.up[u]
		}
	}
	return int(nc)
}

// matchNeighbours returns how many vertices found no mate.
func (s *solver) matchNeighbours(l *level, mate, keep []int32, heavy []int64) int {
	alone := 0
	for _, v := range s.byDegree(l) {
		if mate[v] >= 0 {
			continue
		}
		from, to := l.row(v)
		if !s.spend(int(to-from) + 1) {
			return 0
		}
		best, most := int32(-1), int32(0)
		for e := from; e < to; e++ {
			w := l.ew[e]
			if w < most {
				continue
			}
			u := l.adj[e]
			if mate[u] >= 0 || keep != nil && keep[u] != keep[v] || !l.light(v, u, heavy) {
				continue
			}
			if w > most || l.vw[int(u)*l.dims] < l.vw[int(best)*l.dims] {
				best, most = u, w
			}
		}
		if best >= 0 {
			mate[v], mate[best] = best, v
		} else {
			alone++
		}
	}
	return alone
}

// light reports whether v and u together weigh no more than heavy.
func (l *level) light(v, u int32, heavy []int64) bool {
	if l.dims == 1 {
		return l.vw[v]+l.vw[u] <= heavy[0]
	}
	for d := range l.dims {
		if l.vw[int(v)*l.dims+d]+l.vw[int(u)*l.dims+d] > heavy[d] {
			return false
		}
	}
	return true
}

// byDegree returns the vertices by number of neighbours, up to a bound; vertices of equal
// number in random order.
func (s *solver) byDegree(l *level) []int32 {
	const buckets = 64
	perm := s.order(l.n)
	avg := max(1, len(l.adj)/max(1, l.n))
	top := int32(min(buckets-1, 2*avg))
	var first [buckets + 1]int32
	for v := range l.n {
		first[min(l.off[v+1]-l.off[v], top)+1]++
	}
	for i := range buckets {
		first[i+1] += first[i]
	}
	sorted := s.ints.take(l.n)
	for _, v := range perm {
		b := min(l.off[v+1]-l.off[v], top)
		sorted[first[b]] = v
		first[b]++
	}
	return sorted
}

// matchTwoHop pairs vertices without a mate that have a common neighbour, and vertices
// without neighbours.
func (s *solver) matchTwoHop(l *level, mate, keep []int32, heavy []int64) {
	island := int32(-1)
	for v := range int32(l.n) {
		from, to := l.row(v)
		if from == to && mate[v] < 0 {
			if island >= 0 && (keep == nil || keep[island] == keep[v]) && l.light(island, v, heavy) {
				mate[v], mate[island] = island, v
				island = -1
			} else {
				island = v
			}
			continue
		}
		if !s.spend(int(to-from) + 1) {
			return
		}
		last := int32(-1)
		for e := from; e < to; e++ {
			u := l.adj[e]
			if mate[u] >= 0 || l.degree(u) > maxTwoHop {
				continue
			}
			if last >= 0 && last != u && (keep == nil || keep[last] == keep[u]) && l.light(last, u, heavy) {
				mate[u], mate[last] = last, u
				last = -1
			} else {
				last = u
			}
		}
	}
}

// maxTwoHop is the most neighbours of a vertex that is paired with a vertex not among
// them.
const maxTwoHop = 8
