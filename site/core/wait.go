package core

import "github.com/samya-db/samya/site/core/input"

// maxQueued bounds the tokens asked for by all acquires waiting for an entity: sums over
// the largest possible number of sites stay far from overflow.
const maxQueued = 1 << 56

// maxCharges bounds the entities charged by all waiting acquires, as a multiple of the
// bound on waiting acquires.
const maxCharges = MaxDepth

// enqueue has an acquire wait at an entity.
func (c *admitting) enqueue(call input.Call, r *request, ch charge, at *charged, until Tick) {
	w := &waiting{
		request: *r, until: until, charge: append(charge(nil), ch...), calls: []input.Call{call},
	}
	if c.assessing.emptyFor(at.of) > 0 && !at.of.noQuorum() && !c.endsBy(at.of, at.tokens, w.until) {
		w.until = min(w.until, c.now.Tick+keepWaiting)
	}
	c.remembering.enlist(w)
	c.waitingCalls[call] = w
	c.remembering.join(w, at)
	c.save(at.of)
	c.check(at.of)
}

// endHold ends a hold whose time is over, and serves the acquires that waited for it.
func (c *admitting) endHold(e *entity) {
	if e.queue.holdIsOver(c.now.Tick) {
		e.queue.hold.by, e.queue.hold.over = nil, true
		c.serveQueue(e)
	}
}

// serveQueue grants all acquires that the tokens left can serve, in the order of arrival.
// An acquire that needs more than the tokens left does not keep back later acquires,
// unless it holds. An acquire that also lacks tokens of other entities goes on to wait
// for them.
func (c *admitting) serveQueue(e *entity) {
	for waited := e.queue.released(); ; {
		w := e.queue.serves(e.usable())
		if w == nil || e.queue.holds(w.arrived) {
			c.save(e)
			return
		}
		if e.queue.hold.by == w {
			// The hold was not in vain.
			e.queue.hold, waited = hold{}, true
		}
		e.queue.remove(w)
		c.resume(w, turn{at: e, mayWait: true, waited: waited, until: w.until})
	}
}

// resume decides about an acquire that was taken out of its queue.
func (c *admitting) resume(w *waiting, t turn) {
	t.arrived = w.arrived
	if w.until <= c.now.Tick {
		// No later check would end its waiting for another entity in time.
		t.mayWait, t.content = false, true
	}
	if x := w.charge.find(t.at); x != nil && c.charging.free(x.of) < min(w.least, x.tokens) {
		// Others were asked for this entity's tokens, so the refusal names it.
		c.ended(w, &verdict{refusing: x})
		return
	}
	switch v := decide(c, &w.request, w.charge, &t); {
	case v.waits != nil:
		c.remembering.join(w, v.waits)
		c.later(v.waits.of)
	default:
		if v.refusing != nil {
			c.demandRefused(v.refusing)
		}
		c.ended(w, &v)
		if v.granted() && !v.crowded {
			for e := range w.charge.entities() {
				if e != t.at {
					c.later(e)
				}
			}
		}
	}
}

// ended carries out a verdict about an acquire that waited, and answers its callers.
func (c *admitting) ended(w *waiting, v *verdict) {
	c.remembering.ended(w, c.conclude(v, &w.request, w.charge))
}

// expireQueue ends the waiting of the acquires whose time is up, and a hold whose time is
// up.
func (c *admitting) expireQueue(e *entity) {
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
func (c *admitting) endWaiting(e *entity, ws []*waiting) {
	for _, w := range ws {
		c.resume(w, turn{at: e, content: true, mayWait: w.until > c.now.Tick, until: w.until})
	}
	if len(ws) > 0 {
		c.serveQueue(e)
	}
}
