package core

import (
	"encoding/json"
	"slices"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

// limitChanged notes that the limit was changed in an instance applied now.
func (c *limiting) limitChanged(e *entity, t avantan.Instance) {
	s := e.rarely()
	if s.acks == nil {
		s.acks = new(acks)
	}
	s.acks.at, s.acks.missing = t, c.peers()
}

func (c *limiting) changeLimit(ch *input.Change, p *pendingChange) {
	c.space.Execute([]string{ch.Name}, func(es []*entity) {
		e := es[0]
		if e == nil {
			c.reply(ch.Call, answer.Answer{Code: answer.NotFound})
			return
		}
		if c.answerLimit(e, p) {
			c.askApplied(e)
			c.assessing.schedule(e)
			return
		}
		if joinPending(c.common, e.limitChanges(), p) {
			return
		}
		if ch.Kind == input.Reconcile && (c.tooEarly(ch) || c.changing(e, ch.Call)) {
			return
		}
		if ch.Rescue != nil && c.refusedRescue(e, ch) {
			return
		}
		if ch.Kind == input.Reconcile && rateOf(e) != nil && ch.Truth.Drift() != 0 {
			c.reply(ch.Call, answer.Answer{Code: answer.ByClock})
			return
		}
		if ch.Kind == input.Reconcile && ch.Truth.Drift() > 0 && c.awaitsAbove(e) {
			c.reply(ch.Call, answer.Answer{Code: answer.NoParent})
			return
		}
		if len(e.limitChanges()) >= c.cfg.MaxChanges {
			c.reply(ch.Call, answer.Answer{Code: answer.Overloaded, RetryAfter: 1000})
			return
		}
		if ch.Kind == input.Reconcile && ch.Truth.Generation != e.generation {
			c.reply(ch.Call, answer.Answer{Code: answer.Mismatch})
			return
		}
		times, code := c.changeTimes(ch, e.clock())
		if code != answer.OK {
			c.reply(ch.Call, answer.Answer{Code: code})
			return
		}
		if wait := c.resultsFull(e, times.Asked); wait > 0 {
			c.reply(ch.Call, answer.Answer{Code: answer.Overloaded, RetryAfter: Tick(wait)})
			return
		}
		p.times = times
		c.limitUntil(p, e.clock())
		lc := limitChange{RequestID: ch.RequestID, Body: p.body, Limit: ch.Limit, Expected: ch.Expected, ChangeTimes: times}
		if ch.Kind == input.Reconcile {
			lc.Surplus, lc.Truth = notSurplus, truthOf(&ch.Truth)
		}
		if ch.Rescue != nil {
			lc.Surplus, lc.Expected, lc.Rescue = notSurplus, e.version, c.rescueOf(e, ch.Rescue)
		}
		encoded, err := json.Marshal(lc)
		if err != nil {
			c.reply(ch.Call, answer.Answer{Code: answer.Invalid})
			return
		}
		p.encoded = encoded
		e.setLimitChanges(append(e.limitChanges(), p))
		c.check(e)
	})
}

// answerLimit answers a limit change with a decided request id, and reports whether it
// was decided. Callers waiting for all members to apply the change are answered once they
// have.
func (c *limiting) answerLimit(e *entity, p *pendingChange) bool {
	r := e.result(p.requestID)
	switch {
	case r == nil:
		return false
	case r.Body != p.body:
		c.answerAll(p, answer.Answer{Code: answer.Reused})
		return true
	}
	for _, caller := range p.callers {
		c.decidedLimit(e, caller, r)
	}
	return true
}

// answerChanges answers the decided limit changes, after instances of the entity's
// sequence were applied: no proposal of this site outlives these instances. gap says that
// results may have been forgotten before this site heard of them.
func (c *limiting) answerChanges(e *entity, gap bool) {
	clock := e.clock()
	e.setLimitChanges(slices.DeleteFunc(e.limitChanges(), func(p *pendingChange) bool {
		return c.answerLimit(e, p) || c.undecided(p, clock, gap)
	}))
	notProposed(e.limitChanges())
}
