package core

import (
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/policy"
	"github.com/samya-db/samya/site/core/stored"
)

// admitting decides about acquires and releases.
type admitting struct {
	*common
	*forecasting
	*charging
	*assessing
	*remembering
	*asking
	*leasing
	*repeating
}

// refuseExcess records that an acquire asked for more than a limit, and returns the
// answer. Without the record a late duplicate could be granted unnoticed.
func (c *admitting) refuseExcess(r *request, over *charged) answer.Answer {
	c.remember(r, over.of, stored.Refused, beyond(over.of.limit))
	return exceeded(over)
}

// seek decides about an acquire. It waits at the first entity of its charge that lacks
// tokens, or holds, and lets it wait: seek returns that entity as at. It is refused if an
// entity lacks tokens and does not let it wait: seek returns that entity as refusing. If
// neither is returned it is granted: the charge has been lowered to the tokens that all
// entities have.
func (c *admitting) seek(r *request, ch charge, t turn) (at, refusing *charged) {
	most := input.MaxTokens
	for i := range ch {
		x := &ch[i]
		least, free := min(r.least, x.tokens), x.of.free()
		mayWait := t.mayWait && x.of != t.at
		held := mayWait && x.of.queue.holds(t.arrived)
		switch {
		case !held && (free >= x.tokens || t.content && free >= least):
		case held || mayWait && c.mods.Admission.Short(c.situation(x.of), x.tokens, c.refusesFor(x.of, x.tokens)) != policy.RefuseNow:
			if at == nil {
				at = x
			}
		case free < least:
			return nil, x
		}
		if free < x.tokens {
			most = min(most, free)
		}
	}
	if at == nil && most < ch[0].tokens {
		ch.lower(most)
	}
	return at, nil
}

func (c *admitting) queueFull(at *charged) answer.Answer {
	return answer.Answer{Code: answer.QueueFull, Left: at.of.usable(), Lacking: at.of.name, RetryAfter: c.cfg.GiveUp}
}

// crowded answers an acquire that would wait where no more can: it is granted if it need
// not wait, else nothing is done.
func (c *admitting) crowded(r *request, ch charge, at *charged) answer.Answer {
	full := c.queueFull(at)
	if nowhere, refusing := c.seek(r, ch, turn{}); nowhere != nil || refusing != nil {
		return full
	}
	a := c.grant(r, ch)
	for e := range ch.entities() {
		c.later(e)
	}
	return a
}

// grant moves tokens to the maker of a request, records that and returns the answer.
func (c *admitting) grant(r *request, ch charge) answer.Answer {
	c.take(ch)
	e, tokens := ch[0].of, ch[0].tokens
	if r.parts != nil {
		tokens = r.tokens
	}
	c.remember(r, e, stored.Ran, tokens)
	a := answer.Answer{Code: answer.OK, Tokens: tokens, Left: e.usable()}
	if r.lease != nil {
		a.Details = &answer.Details{Lease: c.lend(e, r, tokens)}
	}
	return a
}

// refuse records the refusal of an acquire for want of an entity's tokens, and returns
// the answer. Without the record a late duplicate could be granted unnoticed.
func (c *admitting) refuse(r *request, lacking *charged) answer.Answer {
	c.remember(r, lacking.of, stored.Refused, 0)
	return c.outOfTokens(lacking.of)
}

func (c *admitting) outOfTokens(e *entity) answer.Answer {
	return answer.Answer{Code: answer.OutOfTokens, Left: e.usable(), Lacking: e.name, RetryAfter: max(c.emptyFor(e), c.cfg.GiveUp)}
}

// demandRefused counts a demand that was refused without a hunt: the next such demand
// should find tokens.
func (c *admitting) demandRefused(lacking *charged) {
	d := lacking.of.itsDrought()
	d.refused = max(d.refused, lacking.tokens)
	c.demanded(lacking.of, lacking.tokens)
}
