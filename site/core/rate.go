package core

import (
	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/stored"
)

// The tokens of a rate quota come back by the clock, not by releases: so many may be
// granted in each window. Its books are as any other entity's. At the start of a window
// the tokens out return to the tokens left, so a site grants its escrow again.
//
// The clocks of sites differ, so sites are in different windows for a while. Tokens that a
// site has not used in its window may be used elsewhere in that window or a later one. In
// an earlier window the site may have granted the same tokens already: there they count
// as out, and come back only once the window of the giver begins ("late").
//
// A window begins late if nobody looks at the entity. That harms nobody: fewer tokens
// come back. Nor does a clock that is set back, as windows never go back.

// rate is the state of a rate quota.
type rate struct {
	stored.Rate
	calendar *rates.Calendar
	// ends is the end of the window by the wall clock; 0 before the first look.
	ends int64
}

// newRate restores the state of a rate quota; nil for other entities.
func newRate(r *stored.Rate) *rate {
	if r.Terms.None() {
		return nil
	}
	return &rate{Rate: *r, calendar: rates.NewCalendar(&r.Terms)}
}

// beginRate makes a created entity a rate quota, unless it has no period.
func (c *common) beginRate(e *entity, t rates.Terms) {
	if r := newRate(&stored.Rate{Terms: t}); r != nil {
		r.Window, r.ends = r.calendar.At(c.now.Wall)
		e.rarely().rate = r
	}
}

// rateOf is the state of a rate quota; nil for other entities.
func rateOf(e *entity) *rate {
	if e.seldom == nil {
		return nil
	}
	return e.seldom.rate
}

// windowOf is the number of the site's window; 0 for other entities than rate quotas.
func windowOf(e *entity) int64 {
	if r := rateOf(e); r != nil {
		return r.Window
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

// rollsIn is the time until the window ends, at least 1.
func (r *rate) rollsIn(wall int64) Tick { return Tick(max(1, r.ends-wall)) }

// windowDue reports whether another window is to begin.
func (c *common) windowDue(e *entity) bool {
	r := rateOf(e)
	if r == nil || c.now.Wall < r.ends || !c.serves(e) || c.roster.leaves || e.handoff() != nil && e.handoff().Open() {
		return false
	}
	window, ends := r.calendar.At(c.now.Wall)
	if window <= r.Window {
		r.ends = ends
		return false
	}
	return true
}

// openWindow begins the window that is due, and marks the entity. At a site that leaves no
// window begins: tokens out that are on their way to an heir must not come back here too.
func (c *common) openWindow(e *entity) {
	if !c.windowDue(e) {
		return
	}
	r := rateOf(e)
	window, ends := r.calendar.At(c.now.Wall)
	r.ends = ends
	back := r.comesBack(e, window)
	if r.Window = window; window >= r.Opens {
		r.Late, r.Opens = 0, 0
	}
	c.keepWhole(e, e.books.Return(back))
	if e.exhaustion != nil {
		// Other sites have their tokens again, too.
		*e.exhaustion = exhaustion{}
	}
	c.dirtyBooks(e)
	c.dirtyRecord(e)
	c.later(e)
}

// endsBy reports whether the window of an entity ends before a time: then an acquire that
// waits until that time may get tokens.
func (c *common) endsBy(e *entity, until Tick) bool {
	return rateOf(e) != nil && !c.roster.leaves && c.now.Tick+rateOf(e).rollsIn(c.now.Wall) < until
}

// comesBack is the number of tokens out that come back as a window begins.
func (r *rate) comesBack(e *entity, window int64) Tokens {
	if window >= r.Opens {
		return max(0, e.books.Net())
	}
	return max(0, e.books.Net()-r.Late)
}

// showWindow has a view show the window that is due, which nobody may have begun yet.
func (c *common) showWindow(e *entity, v *answer.View) {
	if !c.windowDue(e) {
		return
	}
	r := rateOf(e)
	window, ends := r.calendar.At(c.now.Wall)
	back := r.comesBack(e, window)
	v.Left, v.Usable, v.Net, v.Ends = v.Left+back, v.Usable+back, v.Net-back, ends
}

// handsOver is the window to tell with a bequest: tokens out may be late, and must not come
// back earlier at the heir.
func (r *rate) handsOver() int64 {
	if r == nil {
		return 0
	}
	return max(r.Window, r.Opens)
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
	if rateOf(e) == nil || tokens <= 0 || window <= rateOf(e).Window {
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
	if r := rateOf(e); r != nil && tokens > 0 && opens > r.Window {
		r.Late, r.Opens = r.Late+tokens, max(r.Opens, opens)
		c.dirtyRecord(e)
	}
}
