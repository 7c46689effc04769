package core

import (
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

func (c *admitting) release(r *input.Release) {
	if !r.Valid() {
		c.reply(r.Call, answer.Answer{Code: answer.Invalid})
		return
	}
	q := releaseRequest(r)
	if c.repeating.repeated(r.Call, &q, c.now.Tick) {
		return
	}
	home := SiteID("")
	if r.Lease != nil {
		home = c.roster.heir(r.Lease.Home)
	}
	switch e := c.space.find(r.Entity); {
	case c.roster.leaves && home != c.cfg.Self:
		c.reply(r.Call, answer.Answer{Code: answer.Draining})
	case e == nil:
		c.reply(r.Call, answer.Answer{Code: answer.NotFound})
	case allocationOf(e) == nil && r.Lease == nil:
		c.reply(r.Call, answer.Answer{Code: answer.ByClock})
	case home == c.cfg.Self:
		// Attempts at other sites have the tokens given back here too, by the same
		// record.
		q.tries.Tried = nil
		c.leasing.returnLease(r, &q)
	case c.remembering.tableFull(r.Call, e, 0):
	case r.Lease != nil:
		c.releaseHome(e, r, &q)
	case len(q.tries.Tried) > 0:
		c.parkRelease(e, r, &q)
	case !c.charging.credit(e, r.Tokens):
		c.reply(r.Call, answer.Answer{Code: answer.Overflow, Left: e.usable()})
	default:
		c.asking.remember(&q, e, stored.Ran, r.Tokens)
		c.reply(r.Call, answer.Answer{Code: answer.OK, Tokens: r.Tokens, Left: e.usable()})
		c.freed(e)
	}
}

// releaseHome has the site that granted a lease give back its tokens, once for all
// attempts.
func (c *admitting) releaseHome(e *entity, r *input.Release, q *request) {
	home := c.queries.peer(c.roster.heir(r.Lease.Home))
	switch {
	case home == nil:
		c.reply(r.Call, answer.Answer{Code: answer.Invalid})
		return
	case home.open.Len() >= c.cfg.MaxClaims:
		c.reply(r.Call, answer.Answer{Code: answer.Overloaded, RetryAfter: 1000})
		return
	}
	q.tries.Tried, q.home = []SiteID{home.site}, r.Lease.Request
	c.parkRelease(e, r, q)
}

// parkRelease records a release with earlier attempts that may have run elsewhere. It
// counts once none is known to have run. To count it at once could count it twice, and
// the tokens could be gone before that is found out.
func (c *admitting) parkRelease(e *entity, r *input.Release, q *request) {
	c.asking.remember(q, e, stored.Parked, r.Tokens)
	c.reply(r.Call, answer.Answer{Code: answer.OK, Tokens: r.Tokens, Left: e.usable(), Parked: true})
}
