package core

import (
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

func (c *admitting) acquire(a *input.Acquire) {
	if !a.Valid() {
		c.reply(a.Call, answer.Answer{Code: answer.Invalid})
		return
	}
	r := acquireRequest(a)
	until := r.until(c.now, a.Wait)
	if !a.DryRun && c.repeating.repeated(a.Call, &r, until) {
		return
	}
	e := c.space.find(a.Entity)
	switch {
	case c.roster.leaves:
		c.reply(a.Call, answer.Answer{Code: answer.Draining})
		return
	case e == nil:
		c.reply(a.Call, answer.Answer{Code: answer.NotFound})
		return
	}
	if !a.DryRun && (c.remembering.tableFull(a.Call, e, 0) || c.leasing.barred(a.Call, &r)) {
		return
	}
	var room [MaxDepth]charged
	ch := e.charge(room[:0], a.Tokens)
	c.begun(a.Call, &r, ch, turn{mayWait: a.Wait > 0, until: until}, a.DryRun)
}

func (c *admitting) acquireAll(a *input.AcquireAll) {
	if !a.Valid() {
		c.reply(a.Call, answer.Answer{Code: answer.Invalid})
		return
	}
	r := allRequest(a)
	until := r.until(c.now, a.Wait)
	if c.repeating.repeated(a.Call, &r, until) {
		return
	}
	switch ch := c.charging.chargeOf(&r); {
	case c.roster.leaves:
		c.reply(a.Call, answer.Answer{Code: answer.Draining})
	case ch == nil:
		c.reply(a.Call, answer.Answer{Code: answer.NotFound, Lacking: c.charging.missing(a.Parts)})
	case c.remembering.tableFull(a.Call, ch[0].of, len(r.parts)):
	default:
		c.begun(a.Call, &r, ch, turn{mayWait: a.Wait > 0, until: until}, false)
	}
}
