package sim

import (
	"slices"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
)

// useLease has a client use a lease that it holds.
func (c *client) useLease(again func()) {
	s := c.s
	i := s.r.IntN(len(c.leases))
	l := c.leases[i]
	forget := func() { c.leases = slices.Delete(c.leases, i, i+1) }
	quit := func() {
		forget()
		l.quit = true
	}
	p := &op{entity: l.op.entity, lease: l, site: l.home.i, then: func(*answer.Answer) { again() }}
	switch pick := s.r.IntN(10); {
	case l.counted == 0 || pick == 0:
		// It is left to expire, or has.
		forget()
		again()
		return
	case pick < 3 || s.lacks.renewals && pick < 7:
		p.kind = renew
		if s.chance(500) {
			p.ttl = micros(300+s.r.IntN(25_000)) * millisecond
		}
		if l.by != l.home.i && s.chance(300) {
			p.site = l.by
		}
		s.renew(p)
		again()
		return
	case pick < 6:
		quit()
		p.kind = commit
		if s.chance(600) {
			p.tokens = 1 + core.Tokens(s.r.Int64N(int64(l.counted)))
			s.observe.less(l, p.tokens)
		}
		p.then = func(a *answer.Answer) {
			if a != nil && a.Code == answer.OK {
				c.held[p.entity] += a.Tokens
				s.observe.gotOf(p.entity, l.generation, a.Tokens)
			}
			again()
		}
	case pick < 8:
		// All of it, also by asking for more.
		quit()
		p.kind = release
		if s.chance(500) {
			p.tokens = l.counted + core.Tokens(s.r.IntN(5))
		}
		s.observe.less(l, 0)
	default:
		p.kind, p.tokens = release, 1+core.Tokens(s.r.Int64N(int64(l.counted)))
		s.observe.less(l, l.counted-p.tokens)
	}
	if p.kind == release {
		p.roam(s)
		if p.tries.roams && s.chance(600) {
			p.site = s.someSite()
		}
	}
	if l.by != l.home.i && s.chance(300) {
		// The client goes by the site that granted the lease.
		p.site = l.by
	}
	s.issue(p)
}

// renew asks the home of a lease to renew it, once.
func (s *sim) renew(p *op) {
	s.ops++
	p.s, p.id, p.ended = s, s.ops, true
	n := s.nodes[p.site]
	s.after(s.r.Int64N(3*millisecond), func() { n.hand(&call{op: p}) })
}
