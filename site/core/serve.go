package core

import "slices"

// request is an acquire or release as it is remembered.
type request struct {
	key  RequestKey
	body uint64
	kind RequestKind
	// tokens are those asked for, least the fewest to be content with.
	tokens, least Tokens
	lease         *LeaseTerms
	// tries has, once the request is placed, the sites to be asked in Tried.
	tries Tries
	// home is the lease of another site that a release names.
	home RequestKey
}

func (a *Acquire) request() request {
	r := request{key: a.Request, kind: AcquireRequest, tokens: a.Tokens, least: a.Tokens, lease: a.Lease, tries: a.Tries}
	if a.Least > 0 {
		r.least = a.Least
	}
	if a.Lease != nil {
		r.kind = LeasedRequest
	}
	r.body = bodyHash(r.kind, a.Entity, a.Tokens)
	if r.least != r.tokens {
		r.body = mixBody(r.body, uint64(r.least))
	}
	if a.Lease != nil {
		r.body = mixBody(mixBody(r.body, uint64(a.Lease.TTL)), textHash(a.Lease.Holder))
	}
	return r
}

func (a *Acquire) valid() bool {
	return a.Tokens >= 1 && a.Tokens <= MaxTokens && a.Least >= 0 && a.Least <= a.Tokens &&
		(a.Lease == nil || a.Lease.TTL >= 1 && a.Lease.TTL <= MaxTTL && KeyOf(a.Lease.ID) == a.Request)
}

func (c *Core) acquire(a *Acquire) {
	if !a.valid() {
		c.reply(a.Call, Answer{Code: Invalid})
		return
	}
	r := a.request()
	if !a.DryRun && (c.repeated(a.Call, &r, a.Entity, a.Wait) || !c.placed(a.Call, &r)) {
		return
	}
	switch e := c.space.find(a.Entity); {
	case e == nil:
		c.reply(a.Call, Answer{Code: NotFound})
	case a.DryRun:
		c.dryRun(e, a.Call, &r)
	case c.tableFull(a.Call), c.barred(a.Call, &r):
	case e.queue.len() == 0 && e.left >= a.Tokens:
		c.conclude(a.Call, c.grant(e, &r, a.Tokens))
		c.look(e)
	default:
		c.short(e, a, r)
	}
}

// dryRun tells what an acquire would be granted now if it did not wait.
func (c *Core) dryRun(e *entity, call Call, r *request) {
	if free := e.free(); free >= r.least {
		c.reply(call, Answer{Tokens: min(free, r.tokens), Left: e.left})
		return
	}
	c.reply(call, Answer{Code: OutOfTokens, Left: e.left, RetryAfter: max(c.emptyFor(e), c.cfg.GiveUp)})
}

// free is what an acquire that comes now and does not wait may have: what is left
// belongs to those that wait, if any do.
func (e *entity) free() Tokens {
	if e.queue.len() > 0 {
		return 0
	}
	return max(0, e.left)
}

// short handles an acquire that the tokens left cannot serve.
func (c *Core) short(e *entity, a *Acquire, r request) {
	if c.stopping {
		c.reply(a.Call, Answer{Code: Stopping, Left: e.left})
		return
	}
	verdict := RefuseNow
	if a.Wait > 0 {
		verdict = c.mods.admission.Short(c.situation(e), a.Tokens, c.emptyFor(e))
	}
	if verdict == RefuseNow {
		if free := e.free(); free >= r.least {
			c.conclude(a.Call, c.grant(e, &r, min(free, r.tokens)))
			c.look(e)
			return
		}
		d := e.itsDrought()
		d.refused = max(d.refused, a.Tokens)
		c.conclude(a.Call, c.refuse(e, &r))
		// The refused demand counts: the next one like it should find tokens.
		c.demanded(e, a.Tokens)
		return
	}
	if e.queue.len() >= c.cfg.MaxWaiting || len(c.waiting) >= c.cfg.MaxWaitingAll ||
		e.queue.asked() > maxQueued-a.Tokens {
		c.reply(a.Call, Answer{Code: QueueFull, Left: e.left, RetryAfter: c.cfg.GiveUp})
		return
	}
	w := &waiting{request: r, until: c.until(a.Wait, &r.tries), entity: e, calls: []Call{a.Call}}
	if e.queue == nil {
		e.queue = new(queue)
	}
	e.queue.push(w)
	c.waiting[r.key] = w
	c.waitingCalls[a.Call] = w
	c.pursue(e)
	c.schedule(e)
}

// maxQueued bounds the tokens that the acquires waiting for one entity ask for
// in all, far from where sums over the most sites there can be would overflow.
const maxQueued = 1 << 56

// tableFull refuses a call if no more requests can be remembered.
func (c *Core) tableFull(call Call) bool {
	if c.requests.len()+len(c.waiting) < c.cfg.MaxRequests {
		return false
	}
	c.reply(call, Answer{Code: Overloaded, RetryAfter: 1000})
	return true
}

// grant moves tokens to the maker of a request, records that and returns the
// answer.
func (c *Core) grant(e *entity, r *request, tokens Tokens) Answer {
	e.left -= tokens
	e.net += tokens
	c.demanded(e, tokens)
	c.dirtyBooks(e)
	c.remember(e, r, Ran, tokens)
	a := Answer{Code: OK, Tokens: tokens, Left: e.left}
	if r.lease != nil {
		a.Details = &Details{Lease: c.lend(e, r, tokens)}
	}
	return a
}

// refuse records that an acquire was refused for want of tokens, so that a
// late duplicate of it cannot be granted unnoticed, and returns the answer.
func (c *Core) refuse(e *entity, r *request) Answer {
	c.remember(e, r, Refused, 0)
	return Answer{Code: OutOfTokens, Left: e.left, RetryAfter: max(c.emptyFor(e), c.cfg.GiveUp)}
}

// remember records what became of a request, and what is to be found out with the
// sites of its earlier attempts.
func (c *Core) remember(e *entity, r *request, state RequestState, tokens Tokens) {
	c.record(RequestRecord{
		Key: r.key, Body: r.body, Kind: r.kind, State: state, Attempt: r.tries.attempt(),
		Generation: e.generation, Tokens: tokens, Left: e.left,
	})
	if len(r.tries.Tried) > 0 {
		c.claim(r, e.name, e.generation, state)
	}
}

func (c *Core) record(r RequestRecord) {
	c.requests.add(r)
	c.out.Records.Block.Records = append(c.out.Records.Block.Records, r)
}

func (c *Core) conclude(call Call, a Answer) { c.reply(call, a) }

// serveQueue grants what the tokens left can serve, strictly in the order of
// arrival: what is left belongs to the acquire that has waited longest.
func (c *Core) serveQueue(e *entity) {
	for e.queue.len() > 0 && e.left >= e.queue.items[0].tokens {
		w := e.queue.pop()
		c.ended(w, c.grant(e, &w.request, w.tokens))
	}
}

// ended answers all callers of an acquire that waited.
func (c *Core) ended(w *waiting, a Answer) {
	delete(c.waiting, w.key)
	for _, call := range w.calls {
		delete(c.waitingCalls, call)
		c.reply(call, a)
	}
}

// expireQueue ends the waiting of the acquires whose time is up.
func (c *Core) expireQueue(e *entity) {
	if e.queue.len() == 0 || e.queue.next > c.now.Tick {
		return
	}
	c.endWaiting(e, func(w *waiting) bool { return w.until <= c.now.Tick })
}

// endWaiting ends the waiting of the acquires that pick chooses, in the order of
// their arrival: with what is there, for those content with that and behind
// nobody who goes on waiting, else with a refusal.
func (c *Core) endWaiting(e *entity, pick func(w *waiting) bool) {
	waits := false
	for _, w := range e.queue.take(func(w *waiting) bool {
		picked := pick(w)
		waits = waits || !picked
		w.behind = waits
		return picked
	}) {
		if !w.behind && e.left >= w.least {
			c.ended(w, c.grant(e, &w.request, min(e.left, w.tokens)))
			continue
		}
		c.ended(w, c.refuse(e, &w.request))
	}
	c.serveQueue(e)
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
		c.dropWaiting(w)
	}
}

// dropWaiting takes an acquire out of its queue without an answer.
func (c *Core) dropWaiting(w *waiting) {
	delete(c.waiting, w.key)
	w.entity.queue.take(func(x *waiting) bool { return x == w })
	c.serveQueue(w.entity)
	c.queueMoved(w.entity)
}

// stop answers all that wait for tokens: nothing was done for them, so another
// site may be asked.
func (c *Core) stop() {
	c.stopping = true
	c.hastenForecasts()
	// In the order of the entities' names, for the sake of a repeatable order.
	c.space.ascend("", func(e *entity) bool {
		for _, w := range e.queue.take(func(*waiting) bool { return true }) {
			c.ended(w, Answer{Code: Stopping, Left: e.left})
		}
		return true
	})
}
