package core

import (
	"github.com/samya-db/samya/site/core/answer"
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
	c.asking.remember(r, over.of, stored.Refused, beyond(over.of.limit))
	return exceeded(over)
}

// waits implements till: it asks the admission module, unless the window ends in time.
func (c *admitting) waits(e *entity, tokens Tokens, until Tick) bool {
	return c.endsBy(e, tokens, until) || c.mods.Admission.Short(c.assessing.situation(e), tokens, c.assessing.refusesFor(e, tokens)) != policy.RefuseNow
}

func (c *admitting) queueFull(at *charged) answer.Answer {
	return answer.Answer{Code: answer.QueueFull, Left: at.of.usable(), Lacking: at.of.name, RetryAfter: c.cfg.GiveUp}
}

// crowded answers an acquire that would wait where no more can: it is granted if it need
// not wait, else nothing is done.
func (c *admitting) crowded(r *request, ch charge, at *charged) answer.Answer {
	full := c.queueFull(at)
	if v := decide(c, r, ch, turn{}); !v.granted() {
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
	takeAll(c, ch)
	e, tokens := ch[0].of, r.granted(ch)
	c.asking.remember(r, e, stored.Ran, tokens)
	a := answer.Answer{Code: answer.OK, Tokens: tokens, Left: e.usable()}
	if r.lease != nil {
		a.Details = &answer.Details{Lease: c.leasing.lend(e, r, tokens)}
	}
	return a
}

// refuse records the refusal of an acquire for want of an entity's tokens, and returns
// the answer. Without the record a late duplicate could be granted unnoticed.
func (c *admitting) refuse(r *request, lacking *charged) answer.Answer {
	c.asking.remember(r, lacking.of, stored.Refused, 0)
	return c.outOfTokens(lacking)
}

func (c *admitting) outOfTokens(lacking *charged) answer.Answer {
	e, tokens := lacking.of, lacking.tokens
	retry := max(c.assessing.emptyFor(e), c.cfg.GiveUp)
	if in, ok := c.hasIn(e, tokens); ok && c.assessing.emptyFor(e) > 0 {
		retry = in
	}
	return answer.Answer{Code: answer.OutOfTokens, Left: e.usable(), Lacking: e.name, RetryAfter: retry}
}

// demandRefused counts a demand that was refused without a redistribution: the next such demand
// should find tokens.
func (c *admitting) demandRefused(lacking *charged) {
	d := lacking.of.itsExhaustion()
	d.refused = max(d.refused, lacking.tokens)
	c.forecasting.demanded(lacking.of, lacking.tokens)
}
