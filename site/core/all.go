package core

func (a *AcquireAll) valid() bool {
	if len(a.Parts) < 1 || len(a.Parts) > MaxParts {
		return false
	}
	rest := MaxTokens
	for _, p := range a.Parts {
		if p.Tokens < 1 || p.Tokens > rest {
			return false
		}
		rest -= p.Tokens
	}
	return true
}

func (a *AcquireAll) request() request {
	r := request{
		key: a.Request, kind: AllRequest, entity: a.Parts[0].Entity, parts: a.Parts, tries: a.Tries,
		body: bodyHash(AllRequest, "", Tokens(len(a.Parts))),
	}
	for _, p := range a.Parts {
		r.body = mixBody(mixBody(r.body, textHash(p.Entity)), uint64(p.Tokens))
		r.tokens += p.Tokens
	}
	r.least = r.tokens
	return r
}

func (c *admitting) acquireAll(a *AcquireAll) {
	if !a.valid() {
		c.reply(a.Call, Answer{Code: Invalid})
		return
	}
	r := a.request()
	if c.repeated(a.Call, &r, a.Wait) || !c.placed(a.Call, &r) {
		return
	}
	switch ch := c.chargeOf(&r); {
	case ch == nil:
		c.reply(a.Call, Answer{Code: NotFound, Lacking: c.missing(a.Parts)})
	case c.tableFull(a.Call, ch[0].of, len(r.parts)):
	default:
		c.begun(a.Call, &r, ch, a.Wait)
	}
}
