package core

// endHold ends a hold whose time is over, and serves the acquires that waited for it.
func (c *admitting) endHold(e *entity) {
	if e.queue.holdIsOver(c.now.Tick) {
		e.unhold()
		c.serveQueue(e)
	}
}

// serveQueue grants all acquires that the tokens left can serve, in the order of arrival.
// An acquire that needs more than the tokens left does not keep back later acquires,
// unless it holds. An acquire that also lacks tokens of other entities goes on to wait
// for them.
func (c *admitting) serveQueue(e *entity) {
	for waited := e.queue.released(); ; {
		w := e.queue.fits(e.usable())
		if w == nil || e.queue.holds(w.arrived) {
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
		c.remembering.ended(w, c.refuse(&w.request, x))
		return
	}
	switch v := decide(c, &w.request, w.charge, t); {
	case v.over != nil:
		c.remembering.ended(w, c.refuseExcess(&w.request, v.over))
	case v.refusing != nil:
		c.demandRefused(v.refusing)
		c.remembering.ended(w, c.refuse(&w.request, v.refusing))
	case v.granted():
		c.remembering.ended(w, c.grant(&w.request, w.charge))
		for e := range w.charge.entities() {
			if e != t.at {
				c.later(e)
			}
		}
	case c.remembering.full(v.waits, w.entity):
		c.remembering.ended(w, c.crowded(&w.request, w.charge, v.waits))
	default:
		c.remembering.join(w, v.waits)
		c.later(v.waits.of)
	}
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
