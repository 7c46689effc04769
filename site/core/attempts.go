package core

import (
	"slices"
)

// repeating handles repeated requests: for clients that try again, and for other sites
// that ask about attempts here.
type repeating struct {
	*common
	*charging
	*remembering
	*asking
	*leasing
}

// firstAttempt is the number of the first attempt of a request.
const firstAttempt Attempt = 1 << 8

// repeated answers a request with an id seen before, and reports whether the request is
// done with. A later attempt takes over the outcome of an earlier attempt at this site;
// if that was undone, it runs anew.
func (c *repeating) repeated(call Call, r *request, wait Tick) bool {
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

// repeatedWaiting is repeated for a request that waits.
func (c *repeating) repeatedWaiting(call Call, r *request, wait Tick) bool {
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
		// Not Overloaded: the acquire waits, and may be granted. A caller that took it
		// for undone would ask another site, which would grant it as well.
		c.reply(call, Answer{Code: Unknown})
	default:
		w.calls = append(w.calls, call)
		c.waitingCalls[call] = w
	}
	return true
}

// takeOver records the outcome of an earlier attempt for a later attempt. From then on no
// site can undo it by asking about the earlier attempts only.
func (c *repeating) takeOver(r *request, old *remembered) {
	c.recordAgain(old, RequestRecord{
		Key: r.key, Body: old.body, Kind: old.kind, State: old.state, Attempt: r.tries.attempt(),
		Generation: old.generation, Tokens: old.tokens, Left: old.left, Parts: c.requests.parts[r.key],
	})
	// A release that is done or given up has nothing to ask: asking sites learn its
	// outcome. The site of a lease is asked already.
	if len(r.tries.Tried) > 0 && (old.kind == AcquireRequest || old.kind == LeasedRequest || old.kind == AllRequest || old.kind == ReleaseRequest && old.state == Parked) {
		c.claim(r, old.generation, old.state)
	}
}

// placed places a request among its attempts, refuses it unless it may run now, and lists
// in its tries the sites to be asked.
func (c *repeating) placed(call Call, r *request) bool {
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

// again replies the answer remembered by a record.
func (c *repeating) again(call Call, r *request, old *remembered) {
	a := old.answer()
	if old.state == Refused {
		a.Lacking = c.lackingIn(r, old.generation)
	}
	if l, ok := c.leaseOf(r.key); ok && old.kind == LeasedRequest {
		a.Details = &Details{Lease: c.leaseView(l)}
	}
	c.reply(call, a)
}
