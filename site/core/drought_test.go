package core_test

import (
	"testing"

	"github.com/samya-db/samya/site/core"
)

// begun counts the redistributions begun, by trigger.
func (r *rig) begun() map[string]int {
	n := make(map[string]int)
	for _, e := range r.events {
		if e.Kind == core.RedistributionStarted {
			n[e.Trigger]++
		}
	}
	return n
}

func total(n map[string]int) int {
	sum := 0
	for _, k := range n {
		sum += k
	}
	return sum
}

// TestADroughtIsShownOnce: once an instance has shown that no tokens are to be
// had, acquires are refused at once and nobody is asked, as long as all others
// tell that they have none. What is released elsewhere is fetched then without
// anybody waiting for it.
func TestADroughtIsShownOnce(t *testing.T) {
	variants(t, func(t *testing.T, choose func(*core.Config)) {
		t.Helper()
		r := newRig(t, 3, choose)
		r.create("e", 9)
		for i, site := range r.names {
			r.wantCode(r.acquire(site, "e", 3, id("all", i)), core.OK)
		}
		first := r.acquireAsync("a", "e", 1, "first", 60_000)
		r.advance(2000)
		r.wantCode(r.answer(first), core.OutOfTokens)
		if n := r.count(core.GaveUp); n == 0 {
			t.Error("nobody gave up")
		}
		before := total(r.begun())
		for i := range 300 {
			a := r.answer(r.acquireAsync("a", "e", 1, id("m", i), 60_000))
			r.wantCode(a, core.OutOfTokens)
			if a.RetryAfter < 500 || a.RetryAfter > 8000 {
				t.Fatalf("try again after %d ms", a.RetryAfter)
			}
			r.advance(100)
		}
		if total(r.begun()) != before {
			t.Errorf("in a drought %v were begun", r.begun())
		}
		r.wantCode(r.release("b", "e", 1, "back"), core.OK)
		r.advance(2500)
		r.wantCode(r.answer(r.acquireAsync("a", "e", 1, "late", 0)), core.OK)
	})
}

// TestADroughtEndsInSilence: a site that does not hear from the others does not
// go on believing that they have nothing.
func TestADroughtEndsInSilence(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("e", 9)
	for i, site := range r.names {
		r.wantCode(r.acquire(site, "e", 3, id("all", i)), core.OK)
	}
	r.acquireAsync("a", "e", 1, "first", 60_000)
	r.advance(2000)
	r.cut["a"] = true
	r.wantCode(r.release("b", "e", 2, "back"), core.OK)
	r.advance(10_000)
	r.cut["a"] = false
	call := r.acquireAsync("a", "e", 2, "again", 20_000)
	r.unanswered(call)
	r.advance(5000)
	r.wantCode(r.answer(call), core.OK)
}

// TestADroughtDoesNotOutliveSilence: once the others have been silent, a site does
// not go back to a drought because they tell again, be it one of them or more: it
// asks them for what they have.
func TestADroughtDoesNotOutliveSilence(t *testing.T) {
	for _, sites := range []int{2, 3} {
		variants(t, func(t *testing.T, choose func(*core.Config)) {
			t.Helper()
			r := newRig(t, sites, choose)
			r.create("e", core.Tokens(100*sites))
			for i, site := range r.names {
				r.wantCode(r.acquire(site, "e", 100, id("all", i)), core.OK)
			}
			first := r.acquireAsync("a", "e", 1, "first", 60_000)
			r.advance(2000)
			r.wantCode(r.answer(first), core.OutOfTokens)
			// Nobody tells of what is not asked for.
			r.advance(60_000)
			r.wantCode(r.release("b", "e", 51, "back"), core.OK)
			r.wantCode(r.acquire("b", "e", 1, "again"), core.OK)
			r.advance(3000)
			call := r.acquireAsync("a", "e", 50, "late", 20_000)
			r.advance(10_000)
			r.wantCode(r.answer(call), core.OK)
		})
	}
}

// TestADroughtIsShownAnewAfterSilence: an acquire that comes after a silence is not
// left to wait because all that are asked say that they have nothing.
func TestADroughtIsShownAnewAfterSilence(t *testing.T) {
	variants(t, func(t *testing.T, choose func(*core.Config)) {
		t.Helper()
		r := newRig(t, 3, choose)
		r.create("e", 300)
		for i, site := range r.names {
			r.wantCode(r.acquire(site, "e", 100, id("all", i)), core.OK)
		}
		for i := range 2 {
			call := r.acquireAsync("a", "e", 1, id("late", i), 60_000)
			r.advance(2000)
			r.wantCode(r.answer(call), core.OutOfTokens)
			r.advance(60_000)
		}
	})
}

// TestNoStorm: five sites refuse acquires all the time while a few tokens come
// back everywhere. Over all of them less than one redistribution a second is
// begun, and no token stays where it is not asked for.
func TestNoStorm(t *testing.T) {
	variants(t, func(t *testing.T, choose func(*core.Config)) {
		t.Helper()
		r := newRig(t, 5, choose)
		r.create("e", 1000)
		for i, site := range r.names {
			r.wantCode(r.acquire(site, "e", 200, id("all", i)), core.OK)
		}
		const seconds = 600
		refused := 0
		for i := range 10 * seconds {
			for j, site := range r.names {
				call := r.acquireAsync(site, "e", 1, id("x", 5*i+j), 5000)
				if a, ok := r.answers[call]; ok && a.Code == core.OutOfTokens {
					refused++
				}
				// Every tenth comes back, one site after the other.
				if (5*i+j)%10 == 0 {
					r.release(r.names[i/10%5], "e", 1, id("r", 5*i+j))
				}
			}
			r.advance(100)
		}
		if total(r.begun()) > seconds {
			t.Errorf("%v begun in %d s", r.begun(), seconds)
		}
		if refused < 9*10*seconds*5/20 {
			t.Errorf("%d refused at once of %d", refused, 10*seconds*5)
		}
	})
}
