package cut

import "math"

const (
	// bisectTo is how many vertices a graph is coarsened to before it is cut in two.
	bisectTo = 80
	// seedsTried is the number of vertices from which a half is grown.
	seedsTried = 6
)

// recurse cuts l in two, and each half again, down to the single parts lo to hi-1. It
// sets out for the vertices of l, which ids names.
func (s *solver) recurse(l *level, ids, out []int32, lo, hi int, room, maxw []int64) {
	if hi-lo == 1 || l.n == 0 {
		for _, v := range ids {
			out[v] = int32(lo)
		}
		return
	}
	mid := (lo + hi) / 2
	h := s.mark()
	defer s.release(h)
	goal := s.halves(l, lo, mid, hi, room, maxw)
	side := s.ints.take(l.n)
	s.bisect(l, side, goal)
	if s.err != nil {
		return
	}
	for half := range int32(2) {
		h := s.mark()
		sub, subIDs := s.extract(l, ids, side, half)
		if half == 0 {
			s.recurse(sub, subIDs, out, lo, mid, room, maxw)
		} else {
			s.recurse(sub, subIDs, out, mid, hi, room, maxw)
		}
		s.release(h)
	}
}

// goal holds the intended and the largest weight of the two sides of a bisection, by
// dimension.
type goal struct {
	want, maxw []int64 // side 0, then side 1
}

// halves shares the weight of l among the parts lo to mid-1 and mid to hi-1 by their
// room. The bisections to come share the tolerance.
func (s *solver) halves(l *level, lo, mid, hi int, room, maxw []int64) goal {
	d := l.dims
	g := goal{make([]int64, 2*d), make([]int64, 2*d)}
	sum := l.weights()
	depth := math.Ceil(math.Log2(float64(hi - lo)))
	for i := range d {
		var r, m [2]float64
		for p := lo; p < hi; p++ {
			side := 0
			if p >= mid {
				side = 1
			}
			r[side] += float64(room[p*d+i])
			m[side] += float64(maxw[p*d+i])
		}
		share := float64(mid-lo) / float64(hi-lo)
		if r[0]+r[1] > 0 {
			share = r[0] / (r[0] + r[1])
		}
		w0 := int64(share * float64(sum[i]))
		want := [2]int64{w0, sum[i] - w0}
		for side := range 2 {
			w := float64(want[side])
			limit := w
			if w > 0 && m[side] > w {
				limit = w * math.Pow(m[side]/w, 1/depth)
			}
			g.want[side*d+i] = want[side]
			g.maxw[side*d+i] = max(want[side], int64(limit))
		}
	}
	return g
}

// extract returns the subgraph of l on a side.
func (s *solver) extract(l *level, ids, side []int32, half int32) (*level, []int32) {
	at := s.ints.take(l.n)
	n, edges := int32(0), 0
	for v := range int32(l.n) {
		if side[v] == half {
			at[v] = n
			n++
			edges += l.degree(v)
		}
	}
	sub := &level{n: int(n), dims: l.dims}
	sub.off = s.ints.take(int(n) + 1)
	sub.adj = s.ints.take(edges)
	sub.ew = s.ints.take(edges)
	sub.vw = s.wides.take(int(n) * l.dims)
	subIDs := s.ints.take(int(n))
	pos := int32(0)
	for v := range int32(l.n) {
		if side[v] != half {
			continue
		}
		x := at[v]
		subIDs[x] = ids[v]
		copy(sub.vw[int(x)*l.dims:int(x+1)*l.dims], l.vw[int(v)*l.dims:])
		sub.off[x] = pos
		from, to := l.row(v)
		s.spend(int(to-from) + 1)
		for e := from; e < to; e++ {
			if u := l.adj[e]; side[u] == half {
				sub.adj[pos], sub.ew[pos] = at[u], l.ew[e]
				pos++
			}
		}
	}
	sub.off[n] = pos
	sub.adj, sub.ew = sub.adj[:pos], sub.ew[:pos]
	return sub, subIDs
}

// bisect sets side to 0 or 1 for each vertex of l: multilevel.
func (s *solver) bisect(l *level, side []int32, g goal) {
	h := s.mark()
	defer s.release(h)
	heavy := make([]int64, l.dims)
	for i, w := range l.weights() {
		heavy[i] = max(1, w*3/(2*bisectTo))
	}
	levels := s.coarsen(l, nil, heavy, bisectTo)
	if s.err != nil {
		return
	}
	st := s.newState(l.n, 2, g.maxw)
	defer s.free(st)
	coarsest := levels[len(levels)-1]
	s.grown(coarsest, st, g)
	for i := len(levels) - 2; i >= 0 && s.err == nil; i-- {
		s.project(st, levels[i])
		st.rebalance()
		st.together(4, 60)
	}
	copy(side, st.part[:l.n])
}

// grown sets st to the best of several bisections of l, each grown from a vertex.
func (s *solver) grown(l *level, st *state, g goal) {
	h := s.mark()
	defer s.release(h)
	best := s.ints.take(l.n)
	bestCut, bestOver := int64(0), math.Inf(1)
	for try := range seedsTried {
		s.grow(l, st.part, g)
		st.load(l, nil)
		if s.err != nil {
			return
		}
		st.rebalance()
		st.together(6, 60)
		if try == 0 || st.over < bestOver-epsilon || st.over < bestOver+epsilon && st.cut < bestCut {
			copy(best, st.part)
			bestCut, bestOver = st.cut, st.over
		}
	}
	copy(st.part, best)
	st.load(l, nil)
}

// grow grows side 0 around a random vertex, until it has its intended weight in some
// dimension.
func (s *solver) grow(l *level, part []int32, g goal) {
	h := s.mark()
	defer s.release(h)
	q := heap{at: s.filled(l.n, -1)}
	gain := s.filled(l.n, 0)
	order := s.order(l.n)
	next := 0
	for v := range l.n {
		part[v] = 1
	}
	w := make([]int64, l.dims)
	for {
		for i := range l.dims {
			if w[i] >= g.want[i] && g.want[i] > 0 {
				return
			}
		}
		var v int32
		if q.empty() {
			for next < l.n && part[order[next]] == 0 {
				next++
			}
			if next == l.n {
				return
			}
			v = order[next]
		} else {
			v, _ = q.pop()
		}
		// The last vertex may be too heavy.
		fits := true
		for i := range l.dims {
			x := l.vw[int(v)*l.dims+i]
			if w[i]+x > g.maxw[i] && x > 0 {
				fits = false
			}
		}
		part[v] = 0
		if !fits {
			part[v] = 1
			next++
			if next >= l.n {
				return
			}
			continue
		}
		for i := range l.dims {
			w[i] += l.vw[int(v)*l.dims+i]
		}
		from, to := l.row(v)
		if !s.spend(int(to-from) + 1) {
			return
		}
		for e := from; e < to; e++ {
			if u := l.adj[e]; part[u] == 1 {
				if q.at[u] < 0 && gain[u] == 0 {
					sum := int32(0)
					for f, end := l.row(u); f < end; f++ {
						sum += l.ew[f]
					}
					gain[u] = -sum
				}
				gain[u] += 2 * l.ew[e]
				q.set(u, int64(gain[u]))
			}
		}
	}
}
