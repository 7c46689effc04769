package core

import (
	"slices"

	"github.com/samya-db/samya/internal/portion"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
)

// remembering knows the requests that were answered, and the acquires that wait.
type remembering struct {
	*common
	*reading
	requests requestTable
	// waiting finds the acquires that wait, by request and by caller.
	waiting      map[attempt.Key]*waiting
	waitingCalls map[input.Call]*waiting
	// arrivals counts the acquires that ever waited; charges counts the entities charged
	// by waiting acquires, waitingParts their parts.
	arrivals              uint64
	charges, waitingParts int
	// waitingOf counts each tenant's waiting acquires.
	waitingOf portion.Counts
}

// definitive reports whether a request without a record never ran here: no record is
// forgotten from the earliest time at which the request may have run, or from later.
func (c *remembering) definitive(a *message.ClaimAsk) bool {
	return c.requests.lost < a.NotAfter-c.cfg.RequestHorizon()
}

// roomForAsked reports whether the table has room for a request that a member asks about.
func (c *remembering) roomForAsked() bool {
	return c.requests.size() < c.cfg.MaxRequests+max(1, c.cfg.MaxRequests/askedPart)
}

// recordAsked records a request that another site asked about, or this site asked others
// about, and that has no record here. The caller fills in kind, state, attempt and
// tokens, and the entity's generation if it is known; 0 stands for the present entity's
// generation.
func (c *remembering) recordAsked(a *message.ClaimAsk, r *stored.Request) {
	r.Key, r.Body = a.Key, a.Body
	if e := c.space.find(a.Entity); e != nil && (r.Generation == 0 || r.Generation == e.generation) {
		r.Generation, r.Left = e.generation, e.usable()
	} else {
		r.Tenant = c.cfg.tenantOf(a.Entity)
	}
	c.record(*r, c.takeFor(a.Entity, 1))
}

// superseded answers the callers of an acquire after a later attempt has come.
func (c *remembering) superseded(w *waiting) {
	for _, call := range w.calls {
		delete(c.waitingCalls, call)
		c.reply(call, answer.Answer{Code: answer.Superseded})
	}
	w.calls = w.calls[:0]
}

// until is the tick at which a waiting acquire expires.
func (c *remembering) until(wait Tick, t *input.Tries) Tick {
	if t.NotAfter != 0 {
		wait = min(wait, Tick(max(0, t.NotAfter-c.now.Wall)))
	}
	return c.now.Tick + wait
}

// full reports whether no more acquires of entity may wait for the entity of at.
func (c *remembering) full(at *charged, entity string) bool {
	q := at.of.queue
	return q.len() >= c.cfg.MaxWaiting || q.asked() > maxQueued-at.tokens || c.queueFullFor(q, entity)
}

// recordAgain records a new state of a request that has a record.
func (c *remembering) recordAgain(old *remembered, r stored.Request) {
	r.Tenant = c.requests.held.Name(old.tenant)
	c.requests.held.More(old.tenant, 1)
	c.record(r, old.tenant)
}

// record records a request that was counted in a tenant's slot.
func (c *remembering) record(r stored.Request, tenant portion.Slot) {
	c.requests.add(&r, tenant)
	c.out.Records.Block.Records = append(c.out.Records.Block.Records, r)
}

// recordFleeting is record for a request that need not be durable.
func (c *remembering) recordFleeting(r *stored.Request, tenant portion.Slot) {
	c.requests.add(r, tenant)
	c.requests.fleeting++
}

// enlist counts an acquire as waiting; join has it wait for an entity.
func (c *remembering) enlist(w *waiting) {
	c.arrivals++
	w.arrived = c.arrivals
	c.waiting[w.key] = w
	c.charges += len(w.charge)
	c.waitingParts += len(w.parts)
	w.tenant = c.takeFor(w.entity, 1+len(w.parts))
	w.waits = c.waitingOf.Take(c.cfg.tenantOf(w.entity), 1)
}

// Arrival numbers the acquire that a caller waits for, from 1, in the order in which
// acquires began to wait; 0 if the caller waits for none.
func (c *remembering) Arrival(call input.Call) uint64 {
	if w := c.waitingCalls[call]; w != nil {
		return w.arrived
	}
	return 0
}

func (c *remembering) delist(w *waiting) {
	delete(c.waiting, w.key)
	c.charges -= len(w.charge)
	c.waitingParts -= len(w.parts)
	c.requests.held.Give(w.tenant, 1+len(w.parts))
	c.waitingOf.Give(w.waits, 1)
}

// join has an acquire wait for an entity, behind the acquires that already do.
func (c *remembering) join(w *waiting, at *charged) {
	e := at.of
	if e.queue == nil {
		e.queue = new(queue)
	}
	w.at, w.needs = e, at.tokens
	if e.children > 0 {
		if e.queue.of == nil {
			e.queue.of = new(portion.Counts)
		}
		w.queued = e.queue.of.Take(c.cfg.tenantOf(w.entity), 1)
	}
	e.queue.push(w)
}

// ended answers all callers of an acquire that waited.
func (c *remembering) ended(w *waiting, a answer.Answer) {
	c.delist(w)
	for _, call := range w.calls {
		delete(c.waitingCalls, call)
		c.reply(call, a)
	}
}

// cancel drops a call that nobody waits for any more.
func (c *remembering) cancel(call input.Call) {
	w, ok := c.waitingCalls[call]
	if !ok {
		return
	}
	delete(c.waitingCalls, call)
	w.calls = slices.DeleteFunc(w.calls, func(x input.Call) bool { return x == call })
	if len(w.calls) == 0 {
		c.dropWaiting(w)
	}
}

// dropWaiting takes an acquire out of its queue without an answer. That frees no tokens:
// others are served only if they waited for that acquire.
func (c *remembering) dropWaiting(w *waiting) {
	c.delist(w)
	held := w.at.queue.hold.by == w
	if w.at.queue.remove(w); held {
		c.later(w.at)
	}
	c.reading.queueMoved(w.at)
}
