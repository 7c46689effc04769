package core

import "slices"

// firstAttempt is the number of the first attempt of a request.
const firstAttempt Attempt = 1 << 8

// attempt is the number of the attempt, also of a first one that has none.
func (t *Tries) attempt() Attempt { return max(t.Attempt, firstAttempt) }

// repeated answers a request whose id was seen before, and reports whether that is
// all. A later attempt takes over what an earlier one at this site has come to; if
// that was undone, it runs anew.
func (c *Core) repeated(call Call, r *request, wait Tick) bool {
	if old, ok := c.requests.find(r.key); ok {
		switch at := r.tries.attempt(); {
		case old.body != r.body:
			c.reply(call, Answer{Code: Reused})
		case at < old.attempt:
			c.reply(call, Answer{Code: Superseded})
		case at == old.attempt:
			c.again(call, r, &old)
		case old.state == Undone:
			return c.repeatedWaiting(call, r, wait)
		case c.placed(call, r):
			c.takeOver(r, &old)
			c.again(call, r, &old)
		}
		return true
	}
	return len(c.waiting) > 0 && c.repeatedWaiting(call, r, wait)
}

// repeatedWaiting does the same for one that waits.
func (c *Core) repeatedWaiting(call Call, r *request, wait Tick) bool {
	w, ok := c.waiting[r.key]
	if !ok {
		return false
	}
	switch at := r.tries.attempt(); {
	case w.body != r.body:
		c.reply(call, Answer{Code: Reused})
	case at < w.tries.attempt():
		c.reply(call, Answer{Code: Superseded})
	case at > w.tries.attempt():
		if !c.placed(call, r) {
			return true
		}
		c.superseded(w)
		r.tries.Tried = c.owed.union(w.tries.Tried, r.tries.Tried)
		w.tries, w.until = r.tries, max(w.until, c.until(wait, &r.tries))
		w.at.queue.fix(w)
		w.calls = append(w.calls[:0], call)
		c.waitingCalls[call] = w
	case len(w.calls) >= MaxCallers:
		// Not Overloaded: the acquire waits, and may be granted. Who takes it for one
		// that has done nothing asks another site, which would grant it as well.
		c.reply(call, Answer{Code: Unknown})
	default:
		w.calls = append(w.calls, call)
		c.waitingCalls[call] = w
	}
	return true
}

// superseded answers those who wait for an acquire that another attempt has come
// after.
func (c *Core) superseded(w *waiting) {
	for _, call := range w.calls {
		delete(c.waitingCalls, call)
		c.reply(call, Answer{Code: Superseded})
	}
	w.calls = w.calls[:0]
}

// takeOver records that a later attempt has the outcome of an earlier one, which
// no site can undo from then on by asking about the earlier ones only.
func (c *Core) takeOver(r *request, old *remembered) {
	c.recordAgain(old, RequestRecord{
		Key: r.key, Body: old.body, Kind: old.kind, State: old.state, Attempt: r.tries.attempt(),
		Generation: old.generation, Tokens: old.tokens, Left: old.left, Parts: c.requests.parts[r.key],
	})
	// A release that is done or given up has nothing to ask: who asks here is told.
	// The site of a lease is asked already.
	if len(r.tries.Tried) > 0 && (old.kind == AcquireRequest || old.kind == LeasedRequest || old.kind == AllRequest || old.kind == ReleaseRequest && old.state == Parked) {
		c.claim(r, old.generation, old.state)
	}
}

// placed looks at where a request stands among its attempts, refuses it unless it
// may run now, and has its tries name the sites that must be asked.
func (c *Core) placed(call Call, r *request) bool {
	t := &r.tries
	if t.NotAfter == 0 && t.Attempt <= firstAttempt && len(t.Tried) == 0 {
		return true
	}
	first := t.Attempt <= firstAttempt
	switch tried, ok := c.owed.tried(t, c.cfg.Self); {
	case !ok, first && len(tried) > 0, !first && t.NotAfter == 0, t.NotAfter > c.now.Wall+c.cfg.RequestHorizon():
		c.reply(call, Answer{Code: Invalid})
	case t.NotAfter != 0 && t.NotAfter < c.now.Wall:
		c.reply(call, Answer{Code: Expired})
	case slices.ContainsFunc(tried, func(s SiteID) bool { return !c.roomForClaim(c.owed.peer(s)) }):
		c.reply(call, Answer{Code: Overloaded, RetryAfter: 1000})
	default:
		t.Tried = tried
		return true
	}
	return false
}

// until is until when an acquire may wait.
func (c *Core) until(wait Tick, t *Tries) Tick {
	if t.NotAfter != 0 {
		wait = min(wait, Tick(max(0, t.NotAfter-c.now.Wall)))
	}
	return c.now.Tick + wait
}

// again gives the answer that a record remembers.
func (c *Core) again(call Call, r *request, old *remembered) {
	a := old.answer()
	if old.state == Refused {
		a.Lacking = c.lackingIn(r, old.generation)
	}
	if l, ok := c.leaseOf(r.key); ok && old.kind == LeasedRequest {
		a.Details = &Details{Lease: c.leaseView(l)}
	}
	c.reply(call, a)
}

// answer is the answer that a record remembers.
func (r *remembered) answer() Answer {
	switch r.state {
	case Refused:
		if r.tokens > 0 {
			return Answer{Code: ExceedsLimit, Tokens: r.tokens - beyond(0), Left: r.left}
		}
		return Answer{Code: OutOfTokens, Left: r.left}
	case Undone:
		return Answer{Code: Superseded}
	}
	if r.kind == CommitRequest {
		return Answer{Code: OK, Tokens: r.tokens, Returned: r.left}
	}
	return Answer{Code: OK, Tokens: r.tokens, Left: r.left, Parked: r.state == Parked || r.state == Dropped}
}

// keepRequests is how long records are kept now: without an end while a member is
// out of reach that may have to ask about them, as long as there is room.
func (c *Core) keepRequests() Tick {
	if c.owed.absent && c.requests.size() < c.cfg.MaxRequests/2 {
		return c.now.Tick
	}
	return Tick(c.cfg.Retention)
}
