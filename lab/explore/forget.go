package explore

import "slices"

// past is a core and instances with records in it.
type past struct {
	core      uint32
	instances uint64
}

// clearing is a box that a core may hear, and instances that go on nowhere.
type clearing struct {
	core, box uint32
	instances uint64
}

// forget drops data about instances that go on nowhere: the sites' records for the
// invariants alone, and messages that make no difference any more. It reports whether a
// site has changed by that, or has heard a dead message.
func (s *store) forget(g *global, news *fresh) bool {
	var ended, open uint64
	for _, id := range g.site {
		p := &s.cores[s.fulls[id].core].past
		ended, open = ended|p.Ended, open|p.Open
	}
	over := ended &^ open
	if over == 0 {
		return false
	}
	for to := range g.site {
		for from := range g.site {
			box := s.fulls[g.site[from]].out[to]
			if s.about[box]&over != 0 && s.hearDead(g, news, to, box, over) {
				return true
			}
		}
	}
	before := *g
	changed := false
	for site, id := range g.site {
		f := s.fulls[id]
		c := &s.cores[f.core]
		if c.past.Recorded&over == 0 {
			continue
		}
		key := past{f.core, c.past.Recorded & over}
		to, ok := s.forgot[key]
		if !ok {
			to = s.core(site, c.node.Forget(key.instances))
			s.forgot[key] = to
		}
		if !changed && s.watch != nil {
			s.watch(before)
		}
		f.core = to
		s.moved(g, news, site, id, s.alone(s.full(f)))
		changed = true
	}
	if changed {
		return true
	}
	for from, id := range g.site {
		f := s.fulls[id]
		for to, box := range f.out {
			if s.about[box]&over != 0 {
				f.out[to] = s.clear(clearing{s.fulls[g.site[to]].core, box, s.about[box] & over})
			}
		}
		if f != s.fulls[id] {
			g.site[from] = s.full(f)
		}
	}
	return false
}

// hearDead delivers a message of an instance that goes on nowhere.
func (s *store) hearDead(g *global, news *fresh, to int, box uint32, over uint64) bool {
	id := g.site[to]
	f := s.fulls[id]
	for _, p := range s.boxes[box] {
		if s.packets[p].Instance&over == 0 || !s.cores[f.core].node.Dead(s.packets[p]) {
			continue
		}
		r := s.step(f.core, p)
		if r.beyond || len(r.broken) > 0 || r.core == f.core {
			continue
		}
		s.moved(g, news, to, id, s.alone(s.full(s.with(f, r))))
		return true
	}
	return false
}

// clear returns a box without the messages that are stale for a core. Each of
// them was tried: it leaves the core as it is.
func (s *store) clear(c clearing) uint32 {
	if to, ok := s.cleared[c]; ok {
		return to
	}
	var kept []uint32
	for _, p := range s.boxes[c.box] {
		r := s.step(c.core, p)
		if s.packets[p].Instance&c.instances == 0 || !r.pure(c.core) || !s.cores[c.core].node.Stale(s.packets[p]) {
			kept = append(kept, p)
		}
	}
	to := s.box(slices.Clip(kept))
	s.cleared[c] = to
	return to
}
