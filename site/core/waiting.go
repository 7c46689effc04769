package core

import (
	"slices"

	"github.com/samya-db/samya/internal/portion"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

// superseded answers the callers of an acquire after a later attempt has come.
func (c *remembering) superseded(w *waiting) {
	for _, call := range w.calls {
		delete(c.waitingCalls, call)
		c.reply(call, answer.Answer{Code: answer.Superseded})
	}
	w.calls = w.calls[:0]
}

// rejoin has a repeat of an acquire wait with it. A later attempt waits instead of the
// earlier ones.
func (c *remembering) rejoin(w *waiting, call input.Call, r *request, until Tick) {
	switch {
	case r.tries.Number() > w.tries.Number():
		c.superseded(w)
		w.tries, w.until = r.tries, max(w.until, until)
		w.at.queue.fix(w)
	case len(w.calls) >= MaxCallers:
		// Not Overloaded: the acquire waits, and may be granted. A caller that took it
		// for undone would ask another site, which would grant it as well.
		c.reply(call, answer.Answer{Code: answer.Unknown})
		return
	}
	w.calls = append(w.calls, call)
	c.waitingCalls[call] = w
}

// enlist counts an acquire as waiting; join has it wait for an entity.
func (c *remembering) enlist(w *waiting) {
	c.arrivals++
	w.arrived = c.arrivals
	if w.trace != nil {
		w.span, w.began = child(c.common, w.trace), c.now.Nanos
	}
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
	w.at, w.needs, w.since = e, at.tokens, c.now.Tick
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
	waited(c.common, w, outcomeOf(&a))
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
	waited(c.common, w, "given up")
	held := w.at.queue.hold.by == w
	if w.at.queue.remove(w); held {
		c.later(w.at)
	}
	c.reading.queueMoved(w.at)
}
