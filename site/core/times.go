package core

import (
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

const (
	// legacyChanges and legacyResults are the numbers of results without times kept, of
	// the catalogue and of an entity: an older version kept results by count.
	legacyChanges, legacyResults = 4096, 16
)

// changeTimes returns the times of a change that is asked for now, in a sequence
// with the given clock. The code is not OK if the change may not run.
//
// A sequence's clock may be ahead of this site's, so the times of a change without a
// NotAfter count from the later of the two: a wrong clock stops no such change.
func (c *common) changeTimes(ch *input.Change, clock int64) (stored.ChangeTimes, answer.Code) {
	now := max(c.now.Wall, clock)
	t := stored.ChangeTimes{Asked: now, NotAfter: ch.NotAfter, Keep: now + 2*c.cfg.Retention}
	switch {
	case ch.NotAfter == 0:
		t.NotAfter = now + c.cfg.RequestHorizon()
	case ch.NotAfter < 0 || ch.NotAfter > c.now.Wall+c.cfg.RequestHorizon():
		return t, answer.Invalid
	case ch.NotAfter < now:
		return t, answer.Expired
	}
	return t, answer.OK
}

// limitUntil bounds how long a change is pending: not longer than it may run.
func (c *common) limitUntil(p *pendingChange, clock int64) {
	p.dies = c.now.Tick + Tick(p.times.NotAfter-max(c.now.Wall, clock))
	p.until = min(p.until, p.dies)
}

// lasts reports whether a result of the catalogue still counts.
func (cat *catalogue) lasts(r *stored.Change) bool {
	if r.Change.Keep == 0 {
		return cat.numbered < r.Number+legacyChanges
	}
	return r.Change.Keep >= cat.clock
}

// result finds the result of a request id, as long as it counts.
func (cat *catalogue) result(id string) (stored.Change, bool) {
	if r, ok := cat.changes.find(id); ok && cat.lasts(&r) {
		return r, true
	}
	return stored.Change{}, false
}

// full returns the time in milliseconds for which the table of results has no room for
// another change; 0 if it has room. Young results are not forgotten to make room.
func (cat *catalogue) full(now int64) int64 {
	oldest := cat.changes.len() + len(cat.pending) - cat.c.cfg.MaxResults
	switch {
	case oldest < 0:
		return 0
	case oldest >= cat.changes.len():
		return retryFull
	}
	return fullFor(cat.changes.at(oldest).Change.Keep, now)
}

// retryFull bounds the time in milliseconds after which a change refused by a full table
// is to be repeated.
const retryFull = 30_000

// fullFor is the time for which a table is full that has room once the clock has passed
// keep.
func fullFor(keep, now int64) int64 {
	if keep < now {
		return 0
	}
	return min(max(1000, keep-now), retryFull)
}

// clock is the clock of the entity's sequence. The result of the change asked for last
// outlives the clock, so the results tell.
func (e *entity) clock() int64 {
	var clock int64
	for _, r := range e.limitResults() {
		clock = max(clock, r.Asked)
	}
	return clock
}

// result finds the result of a request id.
func (e *entity) result(id string) *stored.LimitResult {
	results := e.limitResults()
	for i := range results {
		if results[i].RequestID == id {
			return &results[i]
		}
	}
	return nil
}

// forgetResults forgets the results that the entity's clock has passed.
func (e *entity) forgetResults() {
	results, clock := e.limitResults(), e.clock()
	kept, n := results[:0], len(results)
	for i, r := range results {
		if r.Keep >= clock && r.Keep != 0 || r.Keep == 0 && n-i <= legacyResults {
			kept = append(kept, r)
		}
	}
	clear(results[len(kept):])
	e.setLimitResults(kept)
}

// resultsFull is full for the limit changes of an entity.
func (c *common) resultsFull(e *entity, now int64) int64 {
	young, first := len(e.limitChanges()), int64(0)
	for _, r := range e.limitResults() {
		if keep := r.Keep; keep >= now {
			young++
			if first == 0 || keep < first {
				first = keep
			}
		}
	}
	if young < c.cfg.MaxLimitResults {
		return 0
	}
	if first == 0 {
		return retryFull
	}
	return fullFor(first, now)
}
