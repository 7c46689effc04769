package core

import (
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/stored"
)

// conclude carries out a verdict that lets the acquire wait no longer: it takes the tokens,
// records the outcome, and returns the answer. Without the record of a refusal a late
// duplicate could be granted unnoticed.
func (c *admitting) conclude(v *verdict, r *request, ch charge) (a answer.Answer) {
	rests, state, tokens := ch[0].of, stored.Ran, r.granted(ch)
	if v.refusing != nil || v.full != nil {
		c.refused(ch)
	}
	switch {
	case v.full != nil:
		return c.tells(v, r, ch)
	case v.over != nil:
		rests, state, tokens = v.over.of, stored.Refused, beyond(v.over.of.limit)
	case v.refusing != nil:
		rests, state, tokens = v.refusing.of, stored.Refused, 0
	default:
		takeAll(c, ch)
	}
	if v.granted() {
		a.Tokens, a.Left = tokens, ch[0].of.usable()
	} else {
		a = c.tells(v, r, ch)
	}
	if !c.forgets(r, rests) {
		c.asking.remember(r, rests, state, tokens)
	}
	if v.granted() && v.crowded {
		for e := range ch.entities() {
			c.later(e)
		}
	}
	if v.granted() && r.lease != nil {
		a.Details = &answer.Details{Lease: c.leasing.lend(rests, r, tokens)}
	}
	return a
}

// tells is the answer to an acquire by a verdict that does not let it wait.
func (c *admitting) tells(v *verdict, r *request, ch charge) answer.Answer {
	switch {
	case v.over != nil:
		e := v.over.of
		return answer.Answer{Code: answer.ExceedsLimit, Tokens: e.limit, Left: c.handsOut(e), Lacking: e.name}
	case v.refusing != nil:
		e := v.refusing.of
		return answer.Answer{Code: answer.OutOfTokens, Left: c.handsOut(e), Lacking: e.name, RetryAfter: c.retryAfter(v.refusing)}
	case v.full != nil:
		e := v.full.of
		return answer.Answer{Code: answer.QueueFull, Left: c.handsOut(e), Lacking: e.name, RetryAfter: c.cfg.GiveUp}
	}
	return answer.Answer{Code: answer.OK, Tokens: r.granted(ch), Left: ch[0].of.usable()}
}

// retryAfter is the time after which an acquire that was refused may find tokens.
func (c *admitting) retryAfter(lacking *charged) Tick {
	empty := c.assessing.emptyFor(lacking.of)
	if q := lacking.of.queue; q.saves(0) {
		// Others have waited for what comes back until then.
		return max(1, q.hold.until-min(q.hold.until, c.now.Tick))
	}
	if in, ok := c.hasIn(lacking.of, lacking.tokens); ok && empty > 0 {
		return in
	}
	return max(empty, c.cfg.GiveUp)
}

// demandRefused counts a demand that was refused without a redistribution: the next such demand
// should find tokens.
func (c *admitting) demandRefused(lacking *charged) {
	d := lacking.of.itsExhaustion()
	d.refused = max(d.refused, lacking.tokens)
	c.forecasting.demanded(lacking.of, lacking.tokens)
}
