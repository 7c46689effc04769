package cut

// contract returns the graph of the nc vertices that l.up names.
func (s *solver) contract(l *level, nc int) *level {
	c := &level{n: nc, dims: l.dims}
	c.off = s.ints.take(nc + 1)
	c.vw = s.wides.take(nc * l.dims)
	clear(c.vw)
	for v := range l.n {
		for d := range l.dims {
			c.vw[int(l.up[v])*l.dims+d] += l.vw[v*l.dims+d]
		}
	}
	if l.bond != nil {
		c.home, c.bond = s.ints.take(nc), s.filled(nc, 0)
		for v, x := range l.up {
			c.home[x] = l.home[v]
			c.bond[x] += l.bond[v]
		}
	}
	// Memory sized by the finer graph is taken first, so that the surplus can be given
	// back.
	room := s.ints.take(2 * len(l.adj))
	h := s.mark()
	first, members := s.members(l.up, nc)
	at := s.filled(nc, -1)
	adj, ew := room[:len(l.adj)], room[len(l.adj):]
	pos := int32(0)
	up := l.up
	for x := range int32(nc) {
		from := pos
		c.off[x] = from
		for _, v := range members[first[x]:first[x+1]] {
			lo, hi := l.row(v)
			if !s.spend(int(hi-lo) + 1) {
				break
			}
			nbr := l.adj[lo:hi]
			wgt := l.ew[lo:hi]
			for i, u := range nbr {
				y := up[u]
				if y == x {
					continue
				}
				if p := at[y]; p >= from {
					ew[p] += wgt[i]
				} else {
					at[y] = pos
					adj[pos] = y
					ew[pos] = wgt[i]
					pos++
				}
			}
		}
	}
	c.off[nc] = pos
	s.release(h)
	c.adj = adj[:pos:pos]
	copy(room[pos:2*pos], ew[:pos])
	room = s.ints.shrink(room, int(2*pos))
	c.ew = room[pos:]
	return c
}

// members lists the vertices by their coarser vertex.
func (s *solver) members(up []int32, nc int) (first, members []int32) {
	first = s.filled(nc+2, 0)
	for _, x := range up {
		first[x+2]++
	}
	for i := 2; i < len(first); i++ {
		first[i] += first[i-1]
	}
	members = s.ints.take(len(up))
	for v, x := range up {
		members[first[x+1]] = int32(v)
		first[x+1]++
	}
	return first[:nc+1], members
}
