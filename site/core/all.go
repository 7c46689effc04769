package core

import (
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

func allRequest(a *input.AcquireAll) request {
	r := request{
		key: a.Request, kind: stored.AllRequest, entity: a.Parts[0].Entity, parts: a.Parts, tries: a.Tries,
		body: bodyHash(stored.AllRequest, "", Tokens(len(a.Parts))),
	}
	for _, p := range a.Parts {
		r.body = mixBody(mixBody(r.body, textHash(p.Entity)), uint64(p.Tokens))
		r.tokens += p.Tokens
	}
	r.least = r.tokens
	return r
}

func (c *admitting) acquireAll(a *input.AcquireAll) {
	if !a.Valid() {
		c.reply(a.Call, answer.Answer{Code: answer.Invalid})
		return
	}
	r := allRequest(a)
	if c.repeating.repeated(a.Call, &r, a.Wait) || !c.repeating.placed(a.Call, &r) {
		return
	}
	switch ch := c.charging.chargeOf(&r); {
	case c.roster.leaves:
		c.reply(a.Call, answer.Answer{Code: answer.Draining})
	case ch == nil:
		c.reply(a.Call, answer.Answer{Code: answer.NotFound, Lacking: c.charging.missing(a.Parts)})
	case c.remembering.tableFull(a.Call, ch[0].of, len(r.parts)):
	default:
		c.begun(a.Call, &r, ch, a.Wait)
	}
}
