package core

import (
	"github.com/samya-db/samya/site/core/policy"
)

// While a majority is there, sites share out the tokens of all. Without a majority, under
// a protocol that goes on all the same, they lend: the escrow of a site at the last time
// with a majority stays its own. Another site borrows the tokens that it is short of at
// the moment. It gives back the tokens beyond its own once it does not need them: a burst
// of minutes ago should not decide the tokens left where the next site crashes or is cut
// off. A site in a minority does not refuse acquires that may wait, as it cannot know
// that there are no tokens anywhere.

// keepOwn notes the site's own escrow once there is no majority. Once there is a
// majority again it drops the belief in an exhaustion shown by a minority. It is called
// before any decision about the entity's tokens.
func (c *assessing) keepOwn(e *entity) {
	p := c.protocol()
	there := p.Choose(true) == p.Choose(false) || c.majorityThere(e)
	switch {
	case there && e.noQuorum():
		e.seldom.own = nil
		if d := e.exhaustion; d != nil {
			*d = exhaustion{}
		}
	case !there && !e.noQuorum():
		own := e.books.Left() + e.books.Net() + e.offered()
		e.rarely().own = &own
	}
}

// loans sets the tokens that the site would have left of its own, and the part of them
// that others hold and can spare, by their reports.
func (c *assessing) loans(e *entity, s *policy.Situation) {
	if !e.noQuorum() {
		return
	}
	s.NoQuorum, s.Own = true, max(0, *e.seldom.own-e.books.Net())
	if s.Own <= s.Left || e.views == nil {
		return
	}
	for i, m := range c.roster.partners() {
		if c.seemsUp(m) {
			s.Lent += max(0, e.views[i].left-e.views[i].Target)
		}
	}
	s.Lent = min(s.Lent, s.Own-s.Left)
}
