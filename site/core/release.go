package core

func (r *Release) request() request {
	q := request{key: r.Request, kind: ReleaseRequest, tokens: r.Tokens, tries: r.Tries}
	if r.Lease != nil {
		q.kind = ReturnRequest
	}
	q.body = bodyHash(q.kind, r.Entity, r.Tokens)
	if r.Lease != nil {
		q.body = mixBody(mixBody(q.body, textHash(string(r.Lease.Home))), textHash(string(r.Lease.Request[:])))
	}
	return q
}

func (c *Core) release(r *Release) {
	if r.Tokens < 0 || r.Tokens > MaxTokens || r.Tokens == 0 && r.Lease == nil {
		c.reply(r.Call, Answer{Code: Invalid})
		return
	}
	q := r.request()
	if c.repeated(r.Call, &q, r.Entity) {
		return
	}
	c.space.Execute([]string{r.Entity}, func(es []*entity) {
		e := es[0]
		if e == nil {
			c.reply(r.Call, Answer{Code: NotFound})
			return
		}
		if r.Lease != nil && r.Lease.Home == c.cfg.Self {
			c.returnLease(r, &q)
			return
		}
		if c.tableFull(r.Call) {
			return
		}
		if !c.credit(e, r.Tokens) {
			c.reply(r.Call, Answer{Code: Overflow, Left: e.left})
			return
		}
		c.remember(e, &q, Ran, r.Tokens)
		c.reply(r.Call, Answer{Code: OK, Tokens: r.Tokens, Left: e.left})
		c.freed(e)
	})
}

// maxBooks bounds what trusted releases can pile up at a site, far from where
// sums over the most sites there can be would overflow.
const maxBooks = 1 << 56

// credit puts tokens that were out back into the books, and reports whether they
// fit. The caller goes on with freed.
func (c *Core) credit(e *entity, tokens Tokens) bool {
	left, net := e.left+tokens, e.net-tokens
	if left > maxBooks || net < -maxBooks {
		return false
	}
	e.left, e.net = left, net
	c.returned(e, tokens)
	c.dirtyBooks(e)
	return true
}

// freed looks what becomes of tokens that came back.
func (c *Core) freed(e *entity) {
	c.serveQueue(e)
	c.pursue(e)
	c.schedule(e)
}
