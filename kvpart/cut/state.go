package cut

// state is a partition of a level, with the sums that refinement needs. A vertex with all
// its neighbours in its own part ("inner") has no list of links. It gets a list when a
// neighbour leaves.
type state struct {
	s    *solver
	l    *level
	k    int
	part []int32
	pw   []int64 // weight of each part, dims a part
	maxw []int64 // bound on the weight of each part, dims a part
	cut  int64   // includes the bonds of vertices away from home
	over float64 // total excess of the parts; see excess

	inner []int32 // weight of a vertex's edges within its part, if it has a list
	list  []int32 // where its list begins in links, or -1
	size  []int32 // length of its list
	links []link

	border   []int32 // vertices that have links
	borderAt []int32

	queue heap
	moved []int32 // the round in which a vertex was last moved
	round int32
	slot  []int32 // by part, for makeList
	log   []step
	dims  int
	doubt float64 // least assumed variance of gains; see climb
}

// link is the weight of a vertex's edges to a part other than its own.
type link struct {
	part, weight int32
}

type step struct{ v, from int32 }

// newState makes a state for graphs of up to n vertices. maxw bounds the weights of
// parts.
func (s *solver) newState(n, k int, maxw []int64) *state {
	var st *state
	if l := len(s.states); l > 0 {
		st, s.states = s.states[l-1], s.states[:l-1]
	} else {
		st = &state{s: s}
	}
	st.k, st.maxw = k, maxw
	st.slot = resize(st.slot, k)
	for _, a := range []*[]int32{&st.part, &st.inner, &st.list, &st.size, &st.borderAt, &st.moved, &st.queue.at} {
		*a = resize(*a, n)
	}
	return st
}

// free gives a state back for reuse.
func (s *solver) free(st *state) { s.states = append(s.states, st) }

func resize[T any](a []T, n int) []T {
	if cap(a) < n {
		return make([]T, n)
	}
	return a[:n]
}

// load makes st the partition st.part[:l.n] of l. isInner, if not nil, names vertices
// known to be inner.
func (st *state) load(l *level, isInner func(v int32) bool) {
	st.l, st.dims = l, l.dims
	mean := 2 * float64(l.edgeWeight()) / float64(max(1, len(l.adj)))
	st.doubt = 8 * mean * mean
	n := l.n
	for i := range n {
		st.list[i] = -1
		st.size[i] = 0
		st.borderAt[i] = -1
		st.moved[i] = 0
		st.queue.at[i] = -1
	}
	st.queue.items = st.queue.items[:0]
	for i := range st.slot {
		st.slot[i] = -1
	}
	st.round = 0
	st.links = st.links[:0]
	st.border = st.border[:0]
	st.pw = resize(st.pw, st.k*l.dims)
	clear(st.pw)
	for v := range n {
		for d := range l.dims {
			st.pw[int(st.part[v])*l.dims+d] += l.vw[v*l.dims+d]
		}
	}
	total := int64(0)
	for v := range int32(n) {
		if isInner != nil && isInner(v) {
			continue
		}
		if !st.s.spend(l.degree(v) + 1) {
			return
		}
		total += st.makeList(v)
	}
	st.cut = total / 2
	st.weigh()
}

// makeList makes the list of v and returns the weight of its links.
func (st *state) makeList(v int32) int64 {
	l := st.l
	lo, hi := l.row(v)
	p := st.part[v]
	base := int32(len(st.links))
	inner, out := int32(0), int64(0)
	if l.bond != nil && l.bond[v] > 0 {
		if h := l.home[v]; h == p {
			inner = l.bond[v]
		} else {
			out = 2 * int64(l.bond[v]) // a bond is seen from this end alone
			st.slot[h] = base
			st.links = append(st.links, link{h, l.bond[v]})
		}
	}
	for e := lo; e < hi; e++ {
		q, w := st.part[l.adj[e]], l.ew[e]
		if q == p {
			inner += w
			continue
		}
		out += int64(w)
		if i := st.slot[q]; i >= base && int(i) < len(st.links) && st.links[i].part == q {
			st.links[i].weight += w
		} else {
			st.slot[q] = int32(len(st.links))
			st.links = append(st.links, link{q, w})
		}
	}
	if out == 0 {
		return 0
	}
	st.inner[v] = inner
	st.list[v] = base
	st.size[v] = int32(len(st.links)) - base
	// Leave room for the parts that neighbours may yet move to.
	room := int(hi - lo)
	if l.bond != nil {
		room++
	}
	for room = min(room, st.k-1); len(st.links)-int(base) < room; {
		st.links = append(st.links, link{})
	}
	st.enter(v)
	return out
}

func (st *state) enter(v int32) {
	if st.borderAt[v] < 0 {
		st.borderAt[v] = int32(len(st.border))
		st.border = append(st.border, v)
	}
}

func (st *state) leave(v int32) {
	i := st.borderAt[v]
	if i < 0 {
		return
	}
	last := len(st.border) - 1
	u := st.border[last]
	st.border[i] = u
	st.borderAt[u] = i
	st.border = st.border[:last]
	st.borderAt[v] = -1
}

// linksOf returns the links of v.
func (st *state) linksOf(v int32) []link {
	b := st.list[v]
	if b < 0 {
		return nil
	}
	return st.links[b : b+st.size[v]]
}

// add changes the weight of the link of v to part p by w.
func (st *state) add(v, p, w int32) {
	ls := st.linksOf(v)
	for i := range ls {
		if ls[i].part != p {
			continue
		}
		ls[i].weight += w
		if ls[i].weight == 0 {
			ls[i] = ls[len(ls)-1]
			st.size[v]--
			if st.size[v] == 0 {
				st.leave(v)
			}
		}
		return
	}
	if len(ls) == 0 {
		st.enter(v)
	}
	st.links[st.list[v]+st.size[v]] = link{p, w}
	st.size[v]++
}

// innerOf returns the weight of the edges of v within its part, bond included.
func (st *state) innerOf(v int32) int32 {
	if st.list[v] >= 0 {
		return st.inner[v]
	}
	sum := int32(0)
	for e, hi := st.l.row(v); e < hi; e++ {
		sum += st.l.ew[e]
	}
	if st.l.bond != nil {
		sum += st.l.bond[v]
	}
	return sum
}

// move puts v into part to. It returns the fall of the cut.
func (st *state) move(v, to int32) int64 {
	l := st.l
	from := st.part[v]
	d := st.dims
	st.over -= st.excess(from) + st.excess(to)
	for i := range d {
		w := l.vw[int(v)*d+i]
		st.pw[int(from)*d+i] -= w
		st.pw[int(to)*d+i] += w
	}
	st.over += st.excess(from) + st.excess(to)

	// A vertex without a list may get a list below, by the parts as they are then.
	inner := st.innerOf(v)
	st.part[v] = to
	gain := -int64(inner)
	if st.list[v] < 0 {
		st.makeList(v)
	} else {
		was := int32(0)
		ls := st.linksOf(v)
		for i := range ls {
			if ls[i].part == to {
				was = ls[i].weight
				break
			}
		}
		gain += int64(was)
		// The list has room: the link to the new part goes.
		if was > 0 {
			st.add(v, to, -was)
		}
		if inner > 0 {
			st.add(v, from, inner)
		}
		st.inner[v] = was
	}
	lo, hi := l.row(v)
	for e := lo; e < hi; e++ {
		u, w := l.adj[e], l.ew[e]
		if st.list[u] < 0 {
			st.makeList(u)
			continue
		}
		switch st.part[u] {
		case from:
			st.inner[u] -= w
			st.add(u, to, w)
		case to:
			st.inner[u] += w
			st.add(u, from, -w)
		default:
			st.add(u, from, -w)
			st.add(u, to, w)
		}
	}
	st.cut -= gain
	return gain
}

// excess returns the weight of a part above its bound, as a share of the bound, summed
// over dimensions.
func (st *state) excess(p int32) float64 {
	if st.dims == 1 {
		if x := st.pw[p] - st.maxw[p]; x > 0 {
			return float64(x) / float64(max(st.maxw[p], 1))
		}
		return 0
	}
	sum := 0.
	for d := range st.dims {
		i := int(p)*st.dims + d
		if x := st.pw[i] - st.maxw[i]; x > 0 {
			sum += float64(x) / float64(max(st.maxw[i], 1))
		}
	}
	return sum
}

// weigh computes st.over from scratch.
func (st *state) weigh() {
	st.over = 0
	for p := range int32(st.k) {
		st.over += st.excess(p)
	}
}

// fits reports whether part p has room for v.
func (st *state) fits(v, p int32) bool {
	if st.dims == 1 {
		return st.pw[p]+st.l.vw[v] <= st.maxw[p]
	}
	for d := range st.dims {
		w := st.l.vw[int(v)*st.dims+d]
		i := int(p)*st.dims + d
		if w > 0 && st.pw[i]+w > st.maxw[i] {
			return false
		}
	}
	return true
}
