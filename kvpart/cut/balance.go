package cut

import "math"

// rebalance moves vertices out of overweight parts, until no part is overweight or no
// move helps. It starts with the vertices that raise the cut least for their weight.
func (st *state) rebalance() {
	if st.over <= epsilon {
		return
	}
	for range 4 {
		before := st.over
		for p := range int32(st.k) {
			if st.excess(p) > epsilon {
				st.empty(p)
			}
		}
		if st.over <= epsilon || st.over >= before-epsilon {
			return
		}
	}
}

// empty moves vertices out of part p until p is within its bound.
func (st *state) empty(p int32) {
	q := &st.queue
	for v := range int32(st.l.n) {
		if st.part[v] != p || !st.relieves(v, p) {
			continue
		}
		if _, key, ok := st.escape(v); ok {
			q.set(v, key)
		}
	}
	for !q.empty() && st.excess(p) > epsilon {
		v, key := q.pop()
		to, now, ok := st.escape(v)
		if !ok || !st.relieves(v, p) {
			continue
		}
		if now < key && !q.empty() && q.items[0].key > now {
			q.set(v, now)
			continue
		}
		if !st.s.spend(4 * (st.l.degree(v) + 1)) {
			break
		}
		st.move(v, to)
		lo, hi := st.l.row(v)
		for _, u := range st.l.adj[lo:hi] {
			if q.at[u] < 0 {
				continue
			}
			if _, key, ok := st.escape(u); ok {
				q.set(u, key)
			}
		}
	}
	q.reset()
}

// relieves reports whether p without v weighs less in a dimension of its excess.
func (st *state) relieves(v, p int32) bool {
	for d := range st.dims {
		i := int(p)*st.dims + d
		if st.pw[i] > st.maxw[i] && st.l.vw[int(v)*st.dims+d] > 0 {
			return true
		}
	}
	return false
}

// escape returns the best part for v to leave its overweight part for, and the priority
// of the move. Only moves that lower the excess count.
func (st *state) escape(v int32) (to int32, key int64, ok bool) {
	from := st.part[v]
	to = -1
	var gain int32
	inner := st.innerOf(v)
	for _, c := range st.linksOf(v) {
		if (to < 0 || c.weight-inner > gain) && st.helps(v, from, c.part) {
			to, gain = c.part, c.weight-inner
		}
	}
	if to < 0 {
		light := st.lightest(from)
		if light < 0 || !st.helps(v, from, light) {
			return -1, 0, false
		}
		to, gain = light, -inner
	}
	w := 0.
	for d := range st.dims {
		i := int(from)*st.dims + d
		if st.pw[i] > st.maxw[i] {
			w += float64(st.l.vw[int(v)*st.dims+d]) / float64(max(st.maxw[i], 1))
		}
	}
	rel := float64(gain)
	if gain > 0 {
		rel *= w
	} else if w > 0 {
		rel /= w
	}
	return to, ordered(rel), true
}

// helps reports whether moving v lowers the greater excess of the two parts.
func (st *state) helps(v, from, to int32) bool {
	if st.fits(v, to) {
		return true
	}
	had, after := 0., 0.
	for d := range st.dims {
		w := st.l.vw[int(v)*st.dims+d]
		i, j := int(from)*st.dims+d, int(to)*st.dims+d
		had = max(had, ratio(st.pw[i], st.maxw[i]), ratio(st.pw[j], st.maxw[j]))
		after = max(after, ratio(st.pw[i]-w, st.maxw[i]), ratio(st.pw[j]+w, st.maxw[j]))
	}
	return after < had-epsilon
}

func ratio(w, limit int64) float64 { return float64(w) / float64(max(limit, 1)) }

// lightest returns the part with most room other than p, or -1.
func (st *state) lightest(p int32) int32 {
	best, least := int32(-1), math.Inf(1)
	for q := range int32(st.k) {
		if q == p {
			continue
		}
		most := 0.
		for d := range st.dims {
			i := int(q)*st.dims + d
			most = max(most, ratio(st.pw[i], st.maxw[i]))
		}
		if most < least {
			best, least = q, most
		}
	}
	return best
}

// ordered maps floats to integers of the same order.
func ordered(f float64) int64 {
	b := int64(math.Float64bits(f))
	if b < 0 {
		return math.MinInt64 - b
	}
	return b
}
