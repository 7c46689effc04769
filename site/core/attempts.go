package core

import (
	"slices"

	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
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

// repeated answers a request with an id seen before, and reports whether the request is
// done with. A later attempt takes over the outcome of an earlier attempt at this site;
// if that was undone, it runs anew.
func (c *repeating) repeated(call input.Call, r *request, wait Tick) bool {
	if old, ok := c.requests.find(r.key); ok {
		switch at := r.tries.Number(); {
		case old.body != r.body:
			c.reply(call, answer.Answer{Code: answer.Reused})
		case at < old.attempt:
			c.reply(call, answer.Answer{Code: answer.Superseded})
		case at == old.attempt:
			c.again(call, r, &old)
		case old.state == stored.Undone:
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
func (c *repeating) repeatedWaiting(call input.Call, r *request, wait Tick) bool {
	w, ok := c.waiting[r.key]
	if !ok {
		return false
	}
	switch at := r.tries.Number(); {
	case w.body != r.body:
		c.reply(call, answer.Answer{Code: answer.Reused})
	case at < w.tries.Number():
		c.reply(call, answer.Answer{Code: answer.Superseded})
	case at > w.tries.Number():
		if !c.placed(call, r) {
			return true
		}
		c.remembering.superseded(w)
		r.tries.Tried = c.queries.union(w.tries.Tried, r.tries.Tried)
		w.tries, w.until = r.tries, max(w.until, c.remembering.until(wait, &r.tries))
		w.at.queue.fix(w)
		w.calls = append(w.calls[:0], call)
		c.waitingCalls[call] = w
	case len(w.calls) >= MaxCallers:
		// Not Overloaded: the acquire waits, and may be granted. A caller that took it
		// for undone would ask another site, which would grant it as well.
		c.reply(call, answer.Answer{Code: answer.Unknown})
	default:
		w.calls = append(w.calls, call)
		c.waitingCalls[call] = w
	}
	return true
}

// takeOver records the outcome of an earlier attempt for a later attempt. From then on no
// site can undo it by asking about the earlier attempts only.
func (c *repeating) takeOver(r *request, old *remembered) {
	c.remembering.recordAgain(old, stored.Request{
		Key: r.key, Body: old.body, Kind: old.kind, State: old.state, Attempt: r.tries.Number(),
		Generation: old.generation, Tokens: old.tokens, Left: old.left, Parts: c.requests.parts[r.key],
	})
	// A release that is done or given up has nothing to ask: asking sites learn its
	// outcome. The site of a lease is asked already.
	if len(r.tries.Tried) > 0 && (old.kind == stored.AcquireRequest || old.kind == stored.LeasedRequest || old.kind == stored.AllRequest || old.kind == stored.ReleaseRequest && old.state == stored.Parked) {
		c.asking.claim(r, old.generation, old.state)
	}
}

// placed places a request among its attempts, refuses it unless it may run now, and lists
// in its tries the sites to be asked.
func (c *repeating) placed(call input.Call, r *request) bool {
	t := &r.tries
	if t.NotAfter == 0 && t.Attempt <= attempt.First && len(t.Tried) == 0 {
		return true
	}
	first := t.Attempt <= attempt.First
	switch tried, ok := c.queries.tried(t, c.cfg.Self); {
	case !ok, first && len(tried) > 0, !first && t.NotAfter == 0, t.NotAfter > c.now.Wall+c.cfg.RequestHorizon():
		c.reply(call, answer.Answer{Code: answer.Invalid})
	case t.NotAfter != 0 && t.NotAfter < c.now.Wall:
		c.reply(call, answer.Answer{Code: answer.Expired})
	case slices.ContainsFunc(tried, func(s SiteID) bool { return !c.asking.roomForClaim(c.queries.peer(s)) }):
		c.reply(call, answer.Answer{Code: answer.Overloaded, RetryAfter: 1000})
	default:
		t.Tried = tried
		return true
	}
	return false
}

// again replies the answer remembered by a record.
func (c *repeating) again(call input.Call, r *request, old *remembered) {
	a := old.answer()
	if old.state == stored.Refused {
		a.Lacking = c.charging.lackingIn(r, old.generation)
	}
	if l, ok := c.leasing.leaseOf(r.key); ok && old.kind == stored.LeasedRequest {
		a.Details = &answer.Details{Lease: c.leasing.leaseView(l)}
	}
	c.reply(call, a)
}
