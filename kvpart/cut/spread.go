package cut

// spreadTo is the most parts for which spread looks for paths.
const spreadTo = 256

// spread moves excess weight to parts with room. Where the neighbours of a part have no
// room it moves weight from part to neighbouring part, so that borders shift and none is
// added. Excess without a path stays where it is.
func (st *state) spread() {
	if st.over <= epsilon || st.k > spreadTo {
		return
	}
	for range 2 {
		for d := range st.dims {
			st.flow(d)
		}
		if st.over <= epsilon {
			return
		}
	}
}

// flow spreads the weight of dimension d.
func (st *state) flow(d int) {
	k := st.k
	links := make([]int64, k*k)
	widest := make([]int64, k)
	for _, v := range st.border {
		p := st.part[v]
		for _, c := range st.linksOf(v) {
			links[int(p)*k+int(c.part)] += int64(c.weight)
		}
	}
	for i, w := range links {
		widest[i/k] = max(widest[i/k], w)
	}
	beside := func(p, q int) bool {
		w := links[p*k+q]
		return w > 0 && 16*w >= min(widest[p], widest[q])
	}
	left := make([]int64, k) // excess, or room below 0
	for p := range k {
		left[p] = st.pw[p*st.dims+d] - st.maxw[p*st.dims+d]
	}
	flow := make([]int64, k*k)
	from, queue := make([]int, k), make([]int, 0, k)
	for p := range k {
		for left[p] > 0 {
			if !st.s.spend(k * k) {
				return
			}
			q := nearest(p, left, beside, from, queue)
			if q < 0 {
				break
			}
			w := min(left[p], -left[q])
			left[p] -= w
			left[q] += w
			for q != p {
				flow[from[q]*k+q] += w
				q = from[q]
			}
		}
	}
	st.pushAll(d, flow)
}

// nearest returns the part with room that is fewest parts away from p, or -1; from holds
// the path.
func nearest(p int, left []int64, beside func(p, q int) bool, from, queue []int) int {
	for q := range from {
		from[q] = -1
	}
	from[p] = p
	queue = append(queue[:0], p)
	for i := 0; i < len(queue); i++ {
		at := queue[i]
		if left[at] < 0 {
			return at
		}
		for q := range from {
			if from[q] < 0 && beside(at, q) {
				from[q] = at
				queue = append(queue, q)
			}
		}
	}
	return -1
}

// pushAll moves flow from part to part. Parts that no flow enters any more go first.
func (st *state) pushAll(d int, flow []int64) {
	k := st.k
	for p := range k {
		for q := range p {
			w := min(flow[p*k+q], flow[q*k+p])
			flow[p*k+q] -= w
			flow[q*k+p] -= w
		}
	}
	into := make([]int, k)
	for i, w := range flow {
		if w > 0 {
			into[i%k]++
		}
	}
	done := make([]bool, k)
	for range k {
		next := -1
		for p := range k {
			if !done[p] && (next < 0 || into[p] < into[next]) {
				next = p
			}
		}
		done[next] = true
		for q := range k {
			if w := flow[next*k+q]; w > 0 {
				st.push(int32(next), int32(q), d, w)
				into[q]--
			}
		}
	}
}

// push moves vertices of about weight w from part p to part q beside it. It starts with
// the vertices that raise the cut least for their weight.
func (st *state) push(p, q int32, d int, w int64) {
	h := &st.queue
	enter := func(u int32) {
		if x := st.l.vw[int(u)*st.dims+d]; x > 0 && st.part[u] == p {
			if g, ok := st.pull(u, q); ok {
				h.set(u, perWeight(g, float64(x)))
			}
		}
	}
	for _, v := range st.border {
		enter(v)
	}
	for !h.empty() && w > 0 {
		v, _ := h.pop()
		x := st.l.vw[int(v)*st.dims+d]
		if x > w && x-w > w/2+st.spare(q, d) {
			continue
		}
		if !st.s.spend(4 * (st.l.degree(v) + 1)) {
			break
		}
		st.move(v, q)
		w -= x
		lo, hi := st.l.row(v)
		for _, u := range st.l.adj[lo:hi] {
			enter(u)
		}
	}
	h.reset()
}

// spare returns how much more of dimension d part p may weigh.
func (st *state) spare(p int32, d int) int64 {
	i := int(p)*st.dims + d
	return max(0, st.maxw[i]-st.pw[i])
}

// pull returns the fall of the cut if v goes to part q; false if v has no edge there.
func (st *state) pull(v, q int32) (int32, bool) {
	for _, c := range st.linksOf(v) {
		if c.part == q {
			return c.weight - st.innerOf(v), true
		}
	}
	return 0, false
}

// perWeight ranks gains relative to a weight.
func perWeight(gain int32, w float64) int64 {
	rel := float64(gain)
	if gain > 0 {
		rel *= w
	} else {
		rel /= w
	}
	return ordered(rel)
}
