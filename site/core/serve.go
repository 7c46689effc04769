package core

import (
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// request is an acquire or release as it is remembered.
type request struct {
	key  attempt.Key
	body uint64
	kind stored.RequestKind
	// entity is the name of the entity that the request names.
	entity string
	// tokens is the number of tokens asked for, least the fewest to be content with.
	tokens, least Tokens
	lease         *input.LeaseTerms
	// tries has in Tried, once the request is placed, the sites to be asked.
	tries input.Tries
	// home is the lease of another site that a release names.
	home attempt.Key
	// parts are the parts of an AllRequest; entity is then the first part's entity and
	// tokens the sum.
	parts []input.Part
}

func acquireRequest(a *input.Acquire) request {
	r := request{
		key: a.Request, kind: stored.AcquireRequest, entity: a.Entity, tokens: a.Tokens, least: a.Tokens, lease: a.Lease, tries: a.Tries,
	}
	if a.Least > 0 {
		r.least = a.Least
	}
	if a.Lease != nil {
		r.kind = stored.LeasedRequest
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

func (c *admitting) acquire(a *input.Acquire) {
	if !a.Valid() {
		c.reply(a.Call, answer.Answer{Code: answer.Invalid})
		return
	}
	r := acquireRequest(a)
	if !a.DryRun && (c.repeating.repeated(a.Call, &r, a.Wait) || !c.repeating.placed(a.Call, &r)) {
		return
	}
	e := c.space.find(a.Entity)
	switch {
	case c.roster.leaves:
		c.reply(a.Call, answer.Answer{Code: answer.Draining})
		return
	case e == nil:
		c.reply(a.Call, answer.Answer{Code: answer.NotFound})
		return
	}
	var room [MaxDepth]charged
	switch ch := e.charge(room[:0], a.Tokens); {
	case a.DryRun:
		c.dryRun(ch, a.Call, &r)
	case c.remembering.tableFull(a.Call, e, 0), c.leasing.barred(a.Call, &r):
	default:
		c.begun(a.Call, &r, ch, a.Wait)
	}
}

// begun grants or refuses an acquire seen for the first time, or lets it wait.
func (c *admitting) begun(call input.Call, r *request, ch charge, wait Tick) {
	for i := range ch {
		// An acquire of more than a limit leaves no trace.
		if e := ch[i].of; c.replenishes(e) && ch.exceeds(r) == nil {
			c.replenish(e)
			c.serveQueue(e)
		}
		if e := ch[i].of; e.queue.holdIsOver(c.now.Tick) && ch.exceeds(r) == nil {
			c.endHold(e)
		}
	}
	if c.stopping {
		wait = 0
	}
	switch v := decide(c, r, ch, turn{mayWait: wait > 0, until: c.remembering.until(wait, &r.tries)}); {
	case v.over != nil:
		c.reply(call, c.refuseExcess(r, v.over))
	case v.refusing != nil && c.stopping:
		c.reply(call, answer.Answer{Code: answer.Stopping, Left: v.refusing.of.usable()})
	case v.refusing != nil:
		c.reply(call, c.refuse(r, v.refusing))
		c.demandRefused(v.refusing)
	case v.granted():
		c.concludeGranted(call, r, ch)
	case c.remembering.full(v.waits, r.entity) || c.remembering.waitingFull(ch[0].of) || c.charges > maxCharges*c.cfg.MaxWaitingAll-len(ch):
		c.reply(call, c.crowded(r, ch, v.waits))
	default:
		c.enqueue(call, r, ch, v.waits, wait)
	}
}

// enqueue has an acquire wait at an entity.
func (c *admitting) enqueue(call input.Call, r *request, ch charge, at *charged, wait Tick) {
	w := &waiting{
		request: *r, until: c.remembering.until(wait, &r.tries), named: c.charging.named(r), charge: append(charge(nil), ch...), calls: []input.Call{call},
	}
	if c.assessing.emptyFor(at.of) > 0 && !at.of.noQuorum() && !c.endsBy(at.of, at.tokens, w.until) {
		w.until = min(w.until, c.now.Tick+keepWaiting)
	}
	c.remembering.enlist(w)
	c.waitingCalls[call] = w
	c.remembering.join(w, at)
	c.check(at.of)
}

func (c *admitting) concludeGranted(call input.Call, r *request, ch charge) {
	c.reply(call, c.grant(r, ch))
	for i := range ch {
		c.assessing.checkTrigger(ch[i].of)
	}
}

// dryRun tells how many tokens an acquire would get now if it did not wait.
func (c *admitting) dryRun(ch charge, call input.Call, r *request) {
	switch v := decide(c, r, ch, turn{}); {
	case v.over != nil:
		c.reply(call, exceeded(v.over))
	case v.refusing != nil:
		c.reply(call, c.outOfTokens(v.refusing))
	default:
		c.reply(call, answer.Answer{Tokens: ch[0].tokens, Left: ch[0].of.usable()})
	}
}

// maxQueued bounds the tokens asked for by all acquires waiting for an entity: sums over
// the largest possible number of sites stay far from overflow.
const maxQueued = 1 << 56

// maxCharges bounds the entities charged by all waiting acquires, as a multiple of the
// bound on waiting acquires.
const maxCharges = MaxDepth
