package core

import "slices"

func (c *Core) acquire(a *Acquire) {
	if a.Tokens < 1 || a.Tokens > MaxTokens {
		c.reply(a.Call, Answer{Code: Invalid})
		return
	}
	body := bodyHash(AcquireRequest, a.Entity, a.Tokens)
	if c.repeated(a.Call, a.Request, body, a.Tokens) {
		return
	}
	c.space.Execute([]string{a.Entity}, func(es []*entity) {
		e := es[0]
		switch {
		case e == nil:
			c.reply(a.Call, Answer{Code: NotFound})
		case c.tableFull(a.Call):
		case e.left >= a.Tokens:
			c.grant(e, a.Tokens)
			c.conclude(a.Call, RequestRecord{Key: a.Request, Body: body, Code: OK, Left: e.left}, a.Tokens)
			c.look(e)
		default:
			c.short(e, a, body)
		}
	})
}

// short handles an acquire that the tokens left cannot serve.
func (c *Core) short(e *entity, a *Acquire, body uint64) {
	if c.stopping {
		c.reply(a.Call, Answer{Code: Stopping, Left: e.left})
		return
	}
	verdict := RefuseNow
	empty := c.emptyFor(e)
	if a.Wait > 0 {
		verdict = c.mods.admission.Short(c.situation(e), a.Tokens, empty)
	}
	if verdict == RefuseNow {
		e.drought.refused = max(e.drought.refused, a.Tokens)
		c.refuse([]Call{a.Call}, e, RequestRecord{Key: a.Request, Body: body}, empty)
		// The refused demand counts: the next one like it should find tokens.
		c.demanded(e, a.Tokens)
		return
	}
	if e.queue.len() >= c.cfg.MaxWaiting || len(c.waiting) >= c.cfg.MaxWaitingAll ||
		e.queue.tokens > maxQueued-a.Tokens {
		c.reply(a.Call, Answer{Code: Overloaded, Left: e.left, RetryAfter: c.cfg.GiveUp})
		return
	}
	w := &waiting{
		tokens: a.Tokens, request: a.Request, body: body, until: c.now.Tick + a.Wait,
		entity: e, calls: []Call{a.Call},
	}
	e.queue.push(w)
	c.waiting[a.Request] = w
	c.waitingCalls[a.Call] = w
	c.pursue(e)
	c.schedule(e)
}

// maxQueued bounds the tokens that the acquires waiting for one entity ask for
// in all, far from where sums over the most sites there can be would overflow.
const maxQueued = 1 << 56

// repeated answers a request whose id was seen before, and reports whether it
// was.
func (c *Core) repeated(call Call, key RequestKey, body uint64, tokens Tokens) bool {
	if r, ok := c.requests.find(key); ok {
		ans := Answer{Code: Reused}
		if r.body == body {
			ans = Answer{Code: r.code, Left: r.left}
			if r.code == OK {
				ans.Tokens = tokens
			}
		}
		c.reply(call, ans)
		return true
	}
	if w, ok := c.waiting[key]; ok {
		switch {
		case w.body != body:
			c.reply(call, Answer{Code: Reused})
		case len(w.calls) >= maxCallers:
			c.reply(call, Answer{Code: Overloaded, RetryAfter: c.cfg.GiveUp})
		default:
			w.calls = append(w.calls, call)
			c.waitingCalls[call] = w
		}
		return true
	}
	return false
}

// tableFull refuses a call if no more requests can be remembered.
func (c *Core) tableFull(call Call) bool {
	if c.requests.len()+len(c.waiting) < c.cfg.MaxRequests {
		return false
	}
	c.reply(call, Answer{Code: Overloaded, RetryAfter: 1000})
	return true
}

func (c *Core) grant(e *entity, tokens Tokens) {
	e.left -= tokens
	e.net += tokens
	c.demanded(e, tokens)
	c.dirtyBooks(e)
}

func (c *Core) release(r *Release) {
	if r.Tokens < 1 || r.Tokens > MaxTokens {
		c.reply(r.Call, Answer{Code: Invalid})
		return
	}
	body := bodyHash(ReleaseRequest, r.Entity, r.Tokens)
	if c.repeated(r.Call, r.Request, body, r.Tokens) {
		return
	}
	c.space.Execute([]string{r.Entity}, func(es []*entity) {
		e := es[0]
		if e == nil {
			c.reply(r.Call, Answer{Code: NotFound})
			return
		}
		if c.tableFull(r.Call) {
			return
		}
		left, net := e.left+r.Tokens, e.net-r.Tokens
		if left > maxBooks || net < -maxBooks {
			c.reply(r.Call, Answer{Code: Overflow, Left: e.left})
			return
		}
		e.left, e.net = left, net
		c.returned(e, r.Tokens)
		c.dirtyBooks(e)
		c.conclude(r.Call, RequestRecord{Key: r.Request, Body: body, Code: OK, Left: e.left}, r.Tokens)
		c.serveQueue(e)
		c.pursue(e)
	})
}

// maxBooks bounds what trusted releases can pile up at a site, far from where
// sums over the most sites there can be would overflow.
const maxBooks = 1 << 56

// serveQueue grants what the tokens left can serve, in the order of arrival.
func (c *Core) serveQueue(e *entity) {
	if e.queue.len() == 0 || e.left <= 0 {
		return
	}
	for _, w := range e.queue.take(func(w *waiting) bool {
		if w.tokens > e.left {
			return false
		}
		c.grant(e, w.tokens)
		w.leftAfter = e.left
		return true
	}) {
		c.stopWaiting(w)
		r := RequestRecord{Key: w.request, Body: w.body, Code: OK, Left: w.leftAfter}
		c.remember(r)
		for _, call := range w.calls {
			c.reply(call, Answer{Code: OK, Tokens: w.tokens, Left: r.Left})
		}
	}
}

// conclude records a request's outcome and answers it.
func (c *Core) conclude(call Call, r RequestRecord, tokens Tokens) {
	c.remember(r)
	ans := Answer{Code: r.Code, Left: r.Left}
	if r.Code == OK {
		ans.Tokens = tokens
	}
	c.reply(call, ans)
}

// refuse records that an acquire was refused for want of tokens, so that a
// late duplicate of it cannot be granted unnoticed, and answers its callers.
func (c *Core) refuse(calls []Call, e *entity, r RequestRecord, retryAfter Tick) {
	r.Code, r.Left = OutOfTokens, e.left
	c.remember(r)
	for _, call := range calls {
		c.reply(call, Answer{Code: OutOfTokens, Left: e.left, RetryAfter: max(retryAfter, c.cfg.GiveUp)})
	}
}

func (c *Core) remember(r RequestRecord) {
	c.requests.add(r)
	c.out.Records.Block.Records = append(c.out.Records.Block.Records, r)
}

// expireQueue refuses the waiting acquires whose time is up.
func (c *Core) expireQueue(e *entity) {
	if e.queue.len() == 0 || e.queue.next > c.now.Tick {
		return
	}
	c.refuseWaiting(e, func(w *waiting) bool { return w.until <= c.now.Tick })
}

func (c *Core) refuseWaiting(e *entity, pick func(w *waiting) bool) {
	for _, w := range e.queue.take(pick) {
		c.stopWaiting(w)
		c.refuse(w.calls, e, RequestRecord{Key: w.request, Body: w.body}, c.emptyFor(e))
	}
}

// cancel drops a call that nobody waits for any more.
func (c *Core) cancel(call Call) {
	w, ok := c.waitingCalls[call]
	if !ok {
		return
	}
	delete(c.waitingCalls, call)
	w.calls = slices.DeleteFunc(w.calls, func(x Call) bool { return x == call })
	if len(w.calls) == 0 {
		delete(c.waiting, w.request)
		w.entity.queue.take(func(x *waiting) bool { return x == w })
	}
}

// stop answers all that wait for tokens: nothing was done for them, so another
// site may be asked.
func (c *Core) stop() {
	c.stopping = true
	c.hastenForecasts()
	// In the order of the entities' names, for the sake of a repeatable order.
	c.space.ascend("", func(e *entity) bool {
		for _, w := range e.queue.take(func(*waiting) bool { return true }) {
			c.stopWaiting(w)
			for _, call := range w.calls {
				c.reply(call, Answer{Code: Stopping, Left: e.left})
			}
		}
		return true
	})
}

// stopWaiting forgets an acquire that was taken out of its queue.
func (c *Core) stopWaiting(w *waiting) {
	delete(c.waiting, w.request)
	for _, call := range w.calls {
		delete(c.waitingCalls, call)
	}
}
