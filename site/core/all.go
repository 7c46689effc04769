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

func (c *Core) acquireAll(a *AcquireAll) {
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

// chargeOfAll is the charge of all parts; nil if an entity does not exist.
func (c *Core) chargeOfAll(parts []Part) charge {
	ch, found := make(charge, 0, len(parts)), true
	for _, p := range parts {
		e := c.space.find(p.Entity)
		found = found && e != nil
		ch = ch.add(e, p.Tokens)
	}
	if ch = ch.added(); !found {
		return nil
	}
	return ch
}

// missing is the first entity named by parts that does not exist.
func (c *Core) missing(parts []Part) string {
	for _, p := range parts {
		if c.space.find(p.Entity) == nil {
			return p.Entity
		}
	}
	return ""
}

// recorded returns the parts with their entities' generations.
func (c *Core) recorded(parts []Part) []RecordedPart {
	rs := make([]RecordedPart, 0, len(parts))
	for _, p := range parts {
		e := c.space.find(p.Entity)
		rs = append(rs, RecordedPart{Part: Part{Entity: e.name, Tokens: p.Tokens}, Generation: e.generation})
	}
	return rs
}

// chargeBack is the charge that recorded parts give back, to the entities that still
// exist and their present ancestors.
func (c *Core) chargeBack(parts []RecordedPart) charge {
	var ch charge
	for _, p := range parts {
		if e := c.space.find(p.Entity); e != nil && e.generation == p.Generation {
			ch = ch.add(e, p.Tokens)
		}
	}
	return ch.added()
}
