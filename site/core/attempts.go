package core

import (
	"github.com/samya-db/samya/site/core/answer"
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

// repeated answers a request that is not to run now, and reports whether it did: its id was
// seen before, or its attempt may not run. A later attempt takes over the outcome of an
// earlier attempt at this site; if that was undone, it runs anew. until is the tick at which
// a waiting acquire expires.
func (c *repeating) repeated(call input.Call, r *request, until Tick) bool {
	at := r.tries.Number()
	if r.tries.Acked > 0 {
		c.requests.acknowledge(&r.key, r.tries.Acked)
	}
	old, found := c.requests.find(r.key)
	if found && old.state == stored.Undone && old.body == r.body && at > old.attempt {
		found = false
	}
	var w *waiting
	body, last := old.body, old.attempt
	if !found {
		if w = c.waiting[r.key]; w == nil && c.requests.acknowledged(&r.key) {
			// A late duplicate.
			c.reply(call, answer.Answer{Code: answer.Superseded})
			return true
		}
		if w == nil {
			return !c.asking.placed(call, r, nil)
		}
		body, last = w.body, w.tries.Number()
	}
	switch {
	case body != r.body:
		c.reply(call, answer.Answer{Code: answer.Reused})
	case at < last:
		c.reply(call, answer.Answer{Code: answer.Superseded})
	case at > last && !c.asking.placed(call, r, w):
	case w == nil:
		if at > last {
			c.asking.takeOver(r, &old)
		}
		a := old.answer()
		if old.state == stored.Refused {
			a.Lacking = c.charging.lackingIn(r, old.generation)
		}
		if l, ok := c.leasing.leaseOf(r.key); ok && old.kind == stored.LeasedRequest {
			a.Details = &answer.Details{Lease: c.leasing.leaseView(l)}
		}
		c.reply(call, a)
	default:
		c.remembering.rejoin(w, call, r, until)
	}
	return true
}
