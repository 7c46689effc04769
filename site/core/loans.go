package core

// While a majority is there, sites share out what all of them have. Without one,
// under a protocol that goes on all the same, they lend: what a site held when a
// majority was there last stays its own. Another one takes of it what it is short of
// at the moment, and gives back what it has beyond its own once it is not needed, for
// a burst of minutes ago should not decide what is left where the next site crashes or
// is cut off. Nor does a site in a minority refuse what may wait: that there are no
// tokens anywhere is nothing that it can know.

// apart reports whether the site goes on without a majority.
func (e *entity) apart() bool { return e.seldom != nil && e.seldom.own != nil }

// keepApart notes what is the site's own when no majority is there any more, and what
// a minority has shown is not believed once one is there again. It is called before
// anything is decided of the entity's tokens.
func (c *Core) keepApart(e *entity) {
	p := protocols[c.modeNow().Protocol()]
	there := p.Choose(true) == p.Choose(false) || c.majorityThere(e)
	switch {
	case there && e.apart():
		e.seldom.own = nil
		if d := e.drought; d != nil {
			*d = drought{}
		}
	case !there && !e.apart():
		own := e.books.Left() + e.books.Net() + e.offered()
		e.rarely().own = &own
	}
}

// loans fills in what the site would have left of its own, and what of that others
// hold and can spare, by what they have told.
func (c *Core) loans(e *entity, s *Situation) {
	if !e.apart() {
		return
	}
	s.Apart, s.Own = true, max(0, *e.seldom.own-e.books.Net())
	if s.Own <= s.Left || e.views == nil {
		return
	}
	for i, m := range c.cfg.Members {
		if m != c.cfg.Self && c.seemsUp(m) {
			s.Lent += max(0, e.views[i].left-e.views[i].Target)
		}
	}
	s.Lent = min(s.Lent, s.Own-s.Left)
}
