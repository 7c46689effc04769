package cut

// components numbers the connected components of l. It returns their number and the
// component of each vertex.
func (s *solver) components(l *level) (int, []int32) {
	of := s.filled(l.n, -1)
	h := s.mark()
	defer s.release(h)
	stack := s.ints.take(l.n)
	n := int32(0)
	for root := range int32(l.n) {
		if of[root] >= 0 {
			continue
		}
		of[root] = n
		stack[0] = root
		for top := 1; top > 0; {
			top--
			v := stack[top]
			lo, hi := l.row(v)
			if !s.spend(int(hi-lo) + 1) {
				return 0, of
			}
			for _, u := range l.adj[lo:hi] {
				if of[u] < 0 {
					of[u] = n
					stack[top] = u
					top++
				}
			}
		}
		n++
	}
	return int(n), of
}

// packComponents puts whole components into parts and reports whether the parts are
// balanced. A component may be too heavy for any part; whole reports that each fits.
func (s *solver) packComponents(p *problem, part []int32) (balanced, whole bool) {
	return s.placeComponents(p, part, func(b *bins, it items, home, _ []int32) {
		s.packAll(b, it, it.heaviestFirst(b.scale, nil), home)
		if b.anyOver() {
			s.swap(b, it, home)
		}
	})
}

// moveComponents is packComponents, but leaves each component in the part of most of its
// vertices, if that is balanced. Otherwise it moves few components.
func (s *solver) moveComponents(p *problem, part []int32) (balanced, whole bool) {
	return s.placeComponents(p, part, func(b *bins, it items, home, of []int32) {
		// The vote of Boyer and Moore finds the part that has more than half.
		votes := make([]int32, it.len())
		for v, c := range of {
			switch {
			case votes[c] == 0:
				home[c], votes[c] = part[v], 1
			case home[c] == part[v]:
				votes[c]++
			default:
				votes[c]--
			}
		}
		for c, q := range home {
			b.put(int(q), it.of(int32(c)))
		}
		was := append([]int32(nil), home...)
		s.repack(b, it, home)
		if b.anyOver() {
			s.swap(b, it, home)
			s.unswap(b, it, home, was)
		}
	})
}

// placeComponents puts each component where place says. The items of place are the
// components; of is the component of each vertex.
func (s *solver) placeComponents(p *problem, part []int32, place func(b *bins, it items, home, of []int32)) (balanced, whole bool) {
	h := s.mark()
	defer s.release(h)
	n, of := s.components(p.l)
	if s.err != nil || n < 2 {
		return false, false
	}
	d := p.l.dims
	it := items{d, make([]int64, n*d)}
	for v, c := range of {
		for i := range d {
			it.w[int(c)*d+i] += p.l.vw[v*d+i]
		}
	}
	for i, w := range it.w {
		if w > p.maxw[i%d] {
			return false, false
		}
	}
	b := newBins(p.k, p.l.weights(), p.maxw)
	home := make([]int32, n)
	place(b, it, home, of)
	if s.err != nil {
		return false, false
	}
	for v, c := range of {
		part[v] = home[c]
	}
	return !b.anyOver(), true
}
