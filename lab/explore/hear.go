package explore

// pair returns the reply of a full site that may hear all messages of a box.
func (s *store) pair(id, box uint32) reply {
	if box == 0 {
		return reply{whole: id}
	}
	key := uint64(id+1)<<32 | uint64(box)
	if i, ok := s.pairs.get(key); ok {
		return s.answers[i]
	}
	a, ok := s.oneMore(id, box)
	if !ok {
		a = s.hear(id, box)
	}
	s.pairs.put(key, uint32(len(s.answers)))
	s.answers = append(s.answers, a)
	return a
}

// hear is pair without any knowledge of the box.
func (s *store) hear(id, box uint32) reply {
	f := s.fulls[id]
	var changing []uint32
	list := s.boxes[box]
	for i := 0; i < len(list); i++ {
		switch r := s.step(f.core, list[i]); {
		case r.beyond:
		case r.pure(f.core):
			f = s.with(f, r)
		case s.urgent(f.core, list[i], r):
			f, changing, i = s.with(f, r), nil, -1
		default:
			changing = append(changing, list[i])
		}
	}
	a := reply{whole: s.full(f)}
	if a.whole != id {
		a.next = s.pair(a.whole, box).next
		return a
	}
	a.next.from = uint32(len(s.edges))
	for _, p := range changing {
		s.connect(id, f, p, Free)
	}
	a.next.to = uint32(len(s.edges))
	return a
}

func (s *store) urgent(core, p uint32, r *result) bool {
	return len(r.broken) == 0 && s.cores[core].node.Urgent(s.packets[p], s.cores[r.core].node)
}

// oneMore is pair for a box that extends a known box by a packet: only the packet is
// looked at.
func (s *store) oneMore(id, box uint32) (reply, bool) {
	from := s.grownFrom[box]
	var known reply
	if !from.known {
		return reply{}, false
	}
	if from.box == 0 {
		known = reply{whole: id}
	} else if i, ok := s.pairs.get(uint64(id+1)<<32 | uint64(from.box)); ok {
		known = s.answers[i]
	} else {
		return reply{}, false
	}
	if known.whole != id {
		return s.pair(known.whole, box), true
	}
	f := s.fulls[id]
	r := s.step(f.core, from.packet)
	switch {
	case r.beyond:
		return known, true
	case r.pure(f.core), s.urgent(f.core, from.packet, r):
		if to := s.full(s.with(f, r)); to != id {
			return s.pair(to, box), true
		}
		return known, true
	}
	// The steps stay in the order of the packets.
	first := uint32(len(s.edges))
	at := known.next.from
	for ; at < known.next.to && s.edges[at].input < from.packet; at++ {
		s.edges = append(s.edges, s.edges[at])
	}
	s.connect(id, f, from.packet, Free)
	s.edges = append(s.edges, s.edges[at:known.next.to]...)
	return reply{whole: id, next: span{first, uint32(len(s.edges))}}, true
}

// alone returns a full site once it has said all that it says by itself without changing.
func (s *store) alone(id uint32) uint32 {
	if to := s.said[id]; to != 0 {
		return to - 1
	}
	f := s.fulls[id]
	for i, act := range s.cores[f.core].acts {
		if act.Cost != Free {
			continue
		}
		if r := s.step(f.core, uint32(i)|actInput); r.pure(f.core) {
			f = s.with(f, r)
		}
	}
	to := s.full(f)
	s.said[id], s.said[to] = to+1, to+1
	return to
}

// whole lets every site hear urgent messages and say all that it says without changing.
func (s *store) whole(g global) global {
	all := fresh{}
	for to := range g.site {
		g.site[to] = s.alone(g.site[to])
		for from := range g.site {
			all[to][from] = from != to
		}
	}
	return s.settle(g, all)
}

// after is whole for a state that differs from a whole state at a single site. It looks
// only at the messages that this site may hear and at its new messages to others.
func (s *store) after(g global, site int, before uint32) global {
	var news fresh
	s.moved(&g, &news, site, before, s.alone(g.site[site]))
	return s.settle(g, news)
}

// fresh marks, for each site, the senders with messages that it has yet to look at.
type fresh [Sites][Sites]bool

// moved puts a site into another state and marks the pairs with something new to hear.
func (s *store) moved(g *global, news *fresh, site int, before, now uint32) {
	g.site[site] = now
	a, b := &s.fulls[before], &s.fulls[now]
	for i := range g.site {
		if i == site {
			continue
		}
		// An unchanged core has already answered everything it could hear.
		news[site][i] = news[site][i] || a.core != b.core
		news[i][site] = news[i][site] || a.out[i] != b.out[i]
	}
}

// settle lets sites hear new messages, and forgets instances that are over.
func (s *store) settle(g global, news fresh) global {
	for again := true; again; {
		again = false
		for to := range g.site {
			for from := range g.site {
				if !news[to][from] {
					continue
				}
				news[to][from] = false
				before := g.site[to]
				w := s.pair(before, s.fulls[g.site[from]].out[to]).whole
				if w != before {
					s.moved(&g, &news, to, before, s.alone(w))
					again = true
				}
			}
		}
		again = again || s.forget(&g, &news)
	}
	return g
}
