package core

import (
	"slices"

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
		c.acquireKey(a, &r)
		return
	case isTemplate(e):
		c.reply(a.Call, answer.Answer{Code: answer.OfKey})
		return
	case unshareable(e, a.Lease):
		c.reply(a.Call, answer.Answer{Code: answer.Unshareable})
		return
	case !a.DryRun && (!c.forgets(&r, e) && c.remembering.tableFull(a.Call, e, 0) || c.leasing.barred(a.Call, &r)):
		return
	}
	var room [MaxDepth]charged
	ch := e.charge(room[:0], a.Tokens)
	c.begun(a.Call, &r, ch, &turn{mayWait: a.Wait > 0, until: until}, a.DryRun)
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
	ks, ch, found := c.keying.keysIn(&r)
	switch {
	case c.roster.leaves:
		c.reply(a.Call, answer.Answer{Code: answer.Draining})
	case !found:
		c.reply(a.Call, answer.Answer{Code: answer.NotFound, Lacking: c.charging.missing(a.Parts)})
	case slices.ContainsFunc(ch, func(x charged) bool { return isTemplate(x.of) }):
		c.reply(a.Call, answer.Answer{Code: answer.OfKey})
	case !c.forgets(&r, r.named[0]) && c.remembering.tableFull(a.Call, r.named[0], len(r.parts)):
	case len(ks) > 0:
		c.acquireKeys(a.Call, &r, ks, ch)
	default:
		c.begun(a.Call, &r, ch, &turn{mayWait: a.Wait > 0, until: until}, false)
	}
}
