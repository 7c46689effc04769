package core

import (
	"slices"

	"github.com/samya-db/samya/internal/portion"
)

// enlist counts an acquire as waiting; join has it wait for an entity.
func (c *Core) enlist(w *waiting) {
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
func (c *Core) Arrival(call Call) uint64 {
	if w := c.waitingCalls[call]; w != nil {
		return w.arrived
	}
	return 0
}

func (c *Core) delist(w *waiting) {
	delete(c.waiting, w.key)
	c.charges -= len(w.charge)
	c.waitingParts -= len(w.parts)
	c.requests.held.Give(w.tenant, 1+len(w.parts))
	c.waitingOf.Give(w.waits, 1)
}

// join has an acquire wait for an entity, behind the acquires that already do.
func (c *Core) join(w *waiting, at *charged) {
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

// serveQueue grants all acquires that the tokens left can serve, in the order of arrival.
// An acquire that needs more than the tokens left does not keep back later acquires,
// unless it holds. An acquire that also lacks tokens of other entities goes on to wait
// for them.
func (c *Core) serveQueue(e *entity) {
	for {
		w := e.queue.fits(e.usable())
		if w == nil || e.queue.holds(w.arrived) {
			return
		}
		if e.queue.hold.by == w {
			// The hold was not in vain.
			e.queue.hold = hold{}
		}
		e.queue.remove(w)
		c.goOn(w, turn{at: e, mayWait: true})
	}
}

// goOn decides about an acquire that was taken out of its queue.
func (c *Core) goOn(w *waiting, t turn) {
	t.arrived = w.arrived
	if w.until <= c.now.Tick {
		// No later check would end its waiting for another entity in time.
		t.mayWait, t.content = false, true
	}
	if x := w.charge.find(t.at); x != nil && x.of.free() < min(w.least, x.tokens) {
		// Others were asked for this entity's tokens, so the refusal names it.
		c.ended(w, c.refuse(&w.request, x))
		return
	}
	switch at, refusing := c.seek(&w.request, w.charge, t); {
	case refusing != nil:
		c.demandRefused(refusing)
		c.ended(w, c.refuse(&w.request, refusing))
	case at == nil:
		c.ended(w, c.grant(&w.request, w.charge))
		for e := range w.charge.entities() {
			if e != t.at {
				c.later(e)
			}
		}
	case c.full(at, w.entity):
		c.ended(w, c.crowded(&w.request, w.charge, at))
	default:
		c.join(w, at)
		c.later(at.of)
	}
}

// ended answers all callers of an acquire that waited.
func (c *Core) ended(w *waiting, a Answer) {
	c.delist(w)
	for _, call := range w.calls {
		delete(c.waitingCalls, call)
		c.reply(call, a)
	}
}

// expireQueue ends the waiting of the acquires whose time is up, and a hold whose time is
// up.
func (c *Core) expireQueue(e *entity) {
	c.endHold(e)
	var over []*waiting
	for w := e.queue.due(c.now.Tick); w != nil; w = e.queue.due(c.now.Tick) {
		e.queue.remove(w)
		over = append(over, w)
	}
	c.endWaiting(e, over)
}

// endWaiting ends the waiting for an entity of acquires that have left its queue, in the
// order of their arrival. Acquires content with the tokens there are get them; others are
// refused. Acquires with time left may go on to wait for another entity.
func (c *Core) endWaiting(e *entity, ws []*waiting) {
	for _, w := range ws {
		c.goOn(w, turn{at: e, content: true, mayWait: w.until > c.now.Tick})
	}
	if len(ws) > 0 {
		c.serveQueue(e)
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
		c.dropWaiting(w)
	}
}

// dropWaiting takes an acquire out of its queue without an answer. That frees no tokens:
// others are served only if they waited for that acquire.
func (c *Core) dropWaiting(w *waiting) {
	c.delist(w)
	held := w.at.queue.hold.by == w
	if w.at.queue.remove(w); held {
		c.later(w.at)
	}
	c.queueMoved(w.at)
}

// stop answers all callers that wait for tokens. The site has done nothing for them, so
// they may ask another site.
func (c *Core) stop() {
	c.stopping = true
	c.hastenForecasts()
	// The entities' names give a repeatable order.
	c.space.ascend("", func(e *entity) bool {
		for _, w := range e.queue.take(func(*waiting) bool { return true }) {
			c.ended(w, Answer{Code: Stopping, Left: e.usable()})
		}
		c.endAcks(e)
		return true
	})
}
