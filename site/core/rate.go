package core

import (
	"fmt"

	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/keys"
	"github.com/samya-db/samya/site/core/stored"
)

// The tokens of a rate quota come back by the clock, not by releases. Its books are as any
// other entity's: a site grants the tokens left of its escrow, and as time passes tokens out
// return to the tokens left (replenish). Package rates knows when: at the start of a window
// all of them, in a bucket evenly, and in a sliding window each a period after its grant.
//
// The clocks of sites differ, so sites are in different windows for a while. Tokens that a
// site has not used in its window may be used elsewhere in that window or a later one. In
// an earlier window the site may have granted the same tokens already: there they count
// as out, and come back only once the window of the giver begins ("late"). Buckets and
// sliding windows need no tags: a token that was granted comes back at a site before any
// site may grant it again, and the clocks of sites run equally fast.
//
// Tokens come back late if nobody looks at the entity. That harms nobody: fewer tokens
// come back. Nor does a clock that is set back, as windows never go back, and buckets go
// by a clock that is never set.
//
// The grants of a volatile rate quota are not durable. A site that starts anew takes all
// its tokens for granted.

// rate is the state of a rate quota.
type rate struct {
	stored.Rate
	// calendar has the windows, flow tells when other tokens come back; the other is nil.
	calendar *rates.Calendar
	flow     rates.Flow
	// ends is the end of the window by the wall clock; 0 before the first look.
	ends int64
	// keys are the keys of a template; nil for other rate quotas, and before the first Pass of
	// this life. See keyed.go.
	keys *keys.Table
	// restored says that the entity is from an earlier life, and no window has begun since.
	restored bool
	// held are the tokens of leases of share, a part of the tokens out.
	held Tokens
}

// newRate restores the state of a rate quota; nil for other entities.
func newRate(r *stored.Rate) *rate {
	if r.Terms.None() {
		return nil
	}
	q := &rate{Rate: *r, flow: rates.NewFlow(&r.Terms)}
	if q.flow == nil {
		q.calendar = rates.NewCalendar(&r.Terms)
	}
	return q
}

// beginRate makes a created entity a rate quota, unless it has no period.
func (c *common) beginRate(e *entity, t rates.Terms) {
	r := newRate(&stored.Rate{Terms: t})
	if r == nil {
		return
	}
	if e.rarely().rate = r; r.calendar != nil {
		r.Window, r.ends = r.calendar.At(c.now.Wall)
	}
}

// restoreRate makes a restored entity a rate quota, unless it has no period. Nobody knows
// which grants of a volatile rate quota were not durable.
func restoreRate(e *entity, from *stored.Rate) error {
	if err := from.Validate(); err != nil {
		return fmt.Errorf("entity %q: %w", e.name, err)
	}
	r := newRate(from)
	if r == nil {
		return nil
	}
	e.rarely().rate, r.restored = r, true
	if !r.Terms.Volatile || e.books.Left() <= 0 {
		return nil
	}
	if _, err := e.books.Shift(e.books.Left()); err != nil {
		return fmt.Errorf("entity %q: %w", e.name, err)
	}
	return nil
}

// rateOf is the state of a rate quota; nil for other entities.
func rateOf(e *entity) *rate {
	if e.seldom == nil {
		return nil
	}
	return e.seldom.rate
}

// windowOf is the number of the site's window; 0 for entities without windows.
func windowOf(e *entity) int64 {
	if r := rateOf(e); r != nil {
		return r.Window
	}
	return 0
}

// markOf stands for tokens that a site grants now; 0 for other entities than rate quotas.
func markOf(e *entity) int64 {
	if r := rateOf(e); r != nil && r.flow != nil {
		return r.flow.Mark()
	}
	return windowOf(e)
}

// marksAbove are the marks of the rate quotas above an entity.
func marksAbove(e *entity) (marks []stored.Mark) {
	for a := range e.parent().chain() {
		if rateOf(a) != nil {
			marks = append(marks, stored.Mark{Generation: a.generation, Window: markOf(a)})
		}
	}
	return marks
}

// windowed reports whether a rate quota of a generation, above an entity, has windows: their
// numbers hold over a start.
func windowed(e *entity, generation uint64) bool {
	for a := range e.chain() {
		if a.generation == generation {
			return rateOf(a) != nil && rateOf(a).flow == nil
		}
	}
	return false
}

// windowedMarks are those marks of rate quotas above an entity that hold over a start.
func windowedMarks(e *entity, marks []stored.Mark) (hold []stored.Mark) {
	for _, m := range marks {
		if windowed(e, m.Generation) {
			hold = append(hold, m)
		}
	}
	return hold
}

// foreignMark stands for tokens of another site, or of an earlier life: when they come back
// is not known.
func foreignMark(e *entity) int64 {
	if r := rateOf(e); r != nil && r.flow != nil {
		return rates.Void
	}
	return 0
}

// termsOf are the terms of a rate quota; zero for other entities.
func termsOf(e *entity) rates.Terms {
	if r := rateOf(e); r != nil {
		return r.Terms
	}
	return rates.Terms{}
}

// volatile reports whether grants of an entity need not be durable.
func volatile(e *entity) bool {
	r := rateOf(e)
	return r != nil && r.Terms.Volatile
}

// rollsIn is the time until the window ends, at least 1.
func (r *rate) rollsIn(wall int64) Tick { return Tick(max(1, r.ends-wall)) }

// pass has the clocks of an entity, and of its keys, note the time and the books. It is called
// after each change of the books.
func (r *rate) pass(e *entity, now Tick) {
	if r.Terms.Keys {
		r.shareKeys(e, now)
	}
	if r.flow != nil {
		r.flow.Pass(uint64(now), int64(e.books.Left()+r.unheld(e)), int64(r.unheld(e)))
	}
}

// hasIn is the time until an entity has so many tokens left by its clock alone, at least 1;
// false if it never has.
func (c *common) hasIn(e *entity, tokens Tokens) (Tick, bool) {
	r := rateOf(e)
	if r == nil || c.roster.leaves {
		return 0, false
	}
	if r.calendar != nil {
		return r.rollsIn(c.now.Wall), true
	}
	r.pass(e, c.now.Tick)
	in, ok := r.flow.Until(int64(tokens-e.books.Left()) - r.flow.Due())
	return max(1, Tick(in)), ok
}

// endsBy reports whether an entity may have tokens for an acquire by its clock before a
// time: then the acquire may wait until that time.
func (c *common) endsBy(e *entity, tokens Tokens, until Tick) bool {
	in, ok := c.hasIn(e, tokens)
	return ok && c.now.Tick+in < until
}

// wakeOfRate is the time at which an entity that somebody watches or waits for is to be
// looked at for its clock; 0 for never.
func (c *common) wakeOfRate(e *entity) Tick {
	r := rateOf(e)
	switch {
	case r == nil:
		return 0
	case r.Terms.Keys:
		return r.wakeOfKeys(c.now)
	case e.queue.len() == 0 && e.watch == nil:
		return 0
	case r.calendar != nil:
		return c.now.Tick + r.rollsIn(c.now.Wall)
	case e.queue.len() > 0:
		needs := e.queue.fewest()
		if by := e.queue.saved(); by != nil {
			needs = by.needs
		}
		if in, ok := c.hasIn(e, needs); ok {
			return c.now.Tick + in
		}
	case e.books.Net() > 0:
		return c.now.Tick + showEvery
	}
	return 0
}

// wakeOfKeys is the time at which keys of a template are to be forgotten; 0 for never.
func (r *rate) wakeOfKeys(now input.Now) Tick {
	switch {
	case r.keyCount() == 0:
		return 0
	case r.calendar != nil:
		return now.Tick + r.rollsIn(now.Wall)
	}
	return max(now.Tick+1, Tick((r.keys.Due()+999_999)/1_000_000)) //nolint:gosec // above 0
}

// showEvery is the time in milliseconds after which a watcher of a bucket sees the tokens
// that have come back.
const showEvery = 1000

// replenishes reports whether tokens of an entity are to come back now: another window is
// to begin, or tokens are due.
func (c *common) replenishes(e *entity) bool {
	r := rateOf(e)
	switch {
	case r == nil || r.calendar != nil && c.now.Wall < r.ends || !c.serves(e) || c.roster.leaves || e.handoff() != nil && e.handoff().Open():
		return false
	case r.flow != nil:
		r.pass(e, c.now.Tick)
		return r.flow.Due() > 0
	}
	window, ends := r.calendar.At(c.now.Wall)
	if window <= r.Window {
		r.ends = ends
		return false
	}
	return true
}

// replenish has tokens come back that are to, and marks the entity. At a site that leaves no
// tokens come back: tokens out that are on their way to an heir must not come back here too.
func (c *common) replenish(e *entity) {
	switch {
	case !c.replenishes(e):
		return
	case rateOf(e).flow != nil:
		c.keepWhole(e, e.books.Return(Tokens(rateOf(e).flow.Take())))
		c.movedBooks(e)
	default:
		c.openWindow(e)
	}
	c.later(e)
}

// openWindow begins the window that is due.
func (c *common) openWindow(e *entity) {
	r := rateOf(e)
	window, ends := r.calendar.At(c.now.Wall)
	r.ends = ends
	back := r.comesBack(e, window)
	if r.Window = window; window >= r.Opens {
		r.Late, r.Opens = 0, 0
	}
	if r.restored = false; r.keys != nil {
		c.space.keys -= r.keys.Len()
		r.keys.Roll()
	}
	r.Ended.Begin(window)
	c.keepWhole(e, e.books.Return(back))
	if e.exhaustion != nil {
		// Other sites have their tokens again, too.
		*e.exhaustion = exhaustion{}
	}
	c.dirtyBooks(e)
	c.dirtyRecord(e)
}

// movedBooks notes changed books of a request. Books that are not durable need not be
// written, unless they change otherwise.
func (c *common) movedBooks(e *entity) {
	if !volatile(e) {
		c.dirtyBooks(e)
		return
	}
	c.touchBooks(e)
}

// comesBack is the number of tokens out that come back as a window begins.
func (r *rate) comesBack(e *entity, window int64) Tokens {
	out := r.unheld(e) - r.Ended.Out(window)
	if window >= r.Opens {
		return max(0, out)
	}
	return max(0, out-r.Late)
}

// showRate has a view show the tokens that are to come back, as if they had.
func (c *common) showRate(e *entity, v *answer.View) {
	if !c.replenishes(e) {
		return
	}
	r := rateOf(e)
	var back Tokens
	if r.flow != nil {
		back = Tokens(r.flow.Due())
	} else {
		var window int64
		window, v.Ends = r.calendar.At(c.now.Wall)
		back = r.comesBack(e, window)
	}
	v.Left, v.Usable, v.Net = v.Left+back, v.Usable+back, v.Net-back
}

// handsOver is the window to tell with a bequest: tokens out may be late, and must not come
// back earlier at the heir.
func (r *rate) handsOver() int64 {
	if r == nil {
		return 0
	}
	return max(r.Window, r.Opens, r.Ended.Until())
}

// handedOver follows up on tokens out that went to an heir. The rest may be late as far as
// it was.
func (c *common) handedOver(e *entity) {
	if r := rateOf(e); r != nil && r.Late > e.books.Net() {
		if r.Late = max(0, e.books.Net()); r.Late == 0 {
			r.Opens = 0
		}
		c.dirtyRecord(e)
	}
}

// lateFrom has tokens that came from a site in another window count as out before that
// window.
func (c *common) lateFrom(e *entity, tokens Tokens, window int64) {
	r := rateOf(e)
	if r == nil || tokens <= 0 {
		return
	}
	if r.Terms.Keys && r.calendar != nil {
		window = max(window, r.Window) + 1
	}
	if window <= r.Window {
		return
	}
	_, err := e.books.Shift(tokens)
	c.keepWhole(e, err)
	c.outUntil(e, tokens, window)
}

// afterLoss is the number of windows after which tokens of a lost site may be granted
// again: the lost site's clock may have been ahead by a window.
const afterLoss = 2

// opens is the window in which tokens that a lost site held may be granted again; 0 if the
// change brings none back.
func (r *settledLimit) opens(e *entity) int64 {
	if rateOf(e) == nil || r == nil || r.unretired <= 0 {
		return 0
	}
	return rateOf(e).Window + afterLoss
}

// outUntil has tokens out come back only once a window opens.
func (c *common) outUntil(e *entity, tokens Tokens, opens int64) {
	if r := rateOf(e); r != nil && r.calendar != nil && tokens > 0 && opens > r.Window {
		r.Late, r.Opens = r.Late+tokens, max(r.Opens, opens)
		c.dirtyRecord(e)
	}
}
