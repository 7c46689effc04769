package core

// An acquire is granted whenever the tokens left can serve it. An acquire that they
// cannot serve does not keep back others.
//
// There is an exception, which keeps large acquires from being overtaken for ever where
// many small ones come. While a redistribution counts the longest waiting acquire, other
// acquires that may wait do so until it is granted: for Config.Hold at most, and once an
// acquire. After a hold in vain no other begins for holdPart times as long. Acquires that
// may not wait are granted at once even then. An acquire that has waited for a hold waits
// for none of its other entities: else it waits for one after the other up the tree.

// hold names the acquire that others wait for.
type hold struct {
	// by is the acquire that others wait for, nil for none; until is the tick until which
	// they wait for it.
	by    *waiting
	until Tick
	// again is the tick before which no other hold begins.
	again Tick
	// over says that a hold has ended, and the queue was not served since.
	over bool
	// saves and rests are for tokens that are saved, see save.
	saves bool
	rests Tick
}

// holdPart is the part of the time, as a divisor, in which holds may be in vain.
const holdPart = 10

// holds reports whether an acquire that arrived then, and may wait, has to wait for
// another acquire; 0 is for a new acquire.
func (q *queue) holds(arrived uint64) bool {
	return q != nil && q.hold.by != nil && (arrived == 0 || arrived > q.hold.by.arrived)
}

// holdIsOver reports whether others wait for an acquire although their time is over.
func (q *queue) holdIsOver(now Tick) bool {
	return q != nil && q.hold.by != nil && q.hold.until <= now
}

// keep has others wait for the longest waiting acquire, counted by a redistribution that
// begins, or that the site joins.
func (c *assessing) keep(e *entity) {
	w := e.queue.oldest()
	if w == nil || w.held || e.queue.hold.by != nil || c.now.Tick < e.queue.hold.again {
		return
	}
	w.held = true
	e.queue.hold = hold{by: w, until: c.now.Tick + c.cfg.Hold, again: c.now.Tick + holdPart*c.cfg.Hold, rests: e.queue.hold.rests}
}

// saves reports whether the tokens left are saved for another acquire than the one that arrived
// then; 0 is for a new acquire.
func (q *queue) saves(arrived uint64) bool {
	return q != nil && q.hold.by != nil && q.hold.saves && arrived != q.hold.by.arrived
}

// saved is the acquire that the tokens left are saved for; nil for none.
func (q *queue) saved() *waiting {
	if q == nil || !q.hold.saves {
		return nil
	}
	return q.hold.by
}

// serves is the acquire to be served from the tokens left: the longest waiting one that needs
// at most left tokens, or the one that they are saved for; nil if there is none.
func (q *queue) serves(left Tokens) *waiting {
	by := q.saved()
	switch {
	case by == nil:
		return q.fits(left)
	case by.needs > left:
		return nil
	}
	return by
}

// unhold ends a hold, and reports whether there was one. Tokens stay saved until their time
// is over.
func (e *entity) unhold() bool {
	if e.queue == nil || e.queue.hold.by == nil || e.queue.hold.saves {
		return false
	}
	e.queue.hold.by, e.queue.hold.over = nil, true
	return true
}

// released reports whether a hold has ended since the queue was last served, and forgets
// that.
func (q *queue) released() bool {
	if q == nil || !q.hold.over {
		return false
	}
	q.hold.over = false
	return true
}
