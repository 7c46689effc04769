package core

// Tokens of a bucket or sliding window come back singly, by the clock. A large acquire would
// wait in vain while small acquires take each token. So the site saves tokens for a waiting
// acquire, if enough tokens come back here within its time. All other acquires wait meanwhile,
// or are refused. Nothing is lost: a bucket with saved tokens is not full.
//
// The next acquire is the first by the start of its wait less the time until its tokens are
// back. Acquires of equal size are served in the order of their arrival. A larger acquire
// begins earlier. Otherwise its time would be over first, if as many acquires wait as can be
// served in time. If the tokens go elsewhere meanwhile, the site saves nothing for holdPart
// times as long.

// mostSaved is the number of places, from the longest waiting acquire on, that are looked at for
// the acquire to save for.
const mostSaved = 64

// save begins to save tokens for a waiting acquire, if they are not saved yet.
func (c *admitting) save(e *entity) {
	r, q := rateOf(e), e.queue
	if r == nil || r.flow == nil || q.len() == 0 || q.saved() != nil || c.now.Tick < q.hold.rests {
		return
	}
	var by *waiting
	var takes Tick
	first := q.oldest().place
	for _, w := range q.places[first:min(len(q.places), first+mostSaved)] {
		if w == nil {
			continue
		}
		in, ok := c.hasIn(e, w.needs+e.books.Left()-e.usable())
		if ok && c.now.Tick+in <= w.until && (by == nil || w.since+takes < by.since+in) {
			by, takes = w, in
		}
	}
	if by != nil {
		end := c.now.Tick + takes
		q.hold = hold{by: by, until: end, again: q.hold.again, saves: true, rests: end + holdPart*takes}
	}
}

// handsOut is the number of tokens that the site may hand out to an acquire that comes now: none
// while they are saved, or while acquires that wait come first to tokens that come back.
func (c *asking) handsOut(e *entity) Tokens {
	if e.queue.saves(0) || e.queue.len() > 0 && c.replenishes(e) {
		return min(0, e.usable())
	}
	return e.usable()
}
