package core_test

import (
	"testing"

	"github.com/samya-db/samya/internal/race"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
)

// begun counts the redistributions begun, by trigger.
func (r *rig) begun() map[string]int {
	n := make(map[string]int)
	for _, e := range r.events {
		if e.Kind == event.RedistributionStarted {
			n[e.Trigger]++
		}
	}
	return n
}

// drained creates an entity, each tokens per site, and has all of them out.
func (r *rig) drained(entity string, each core.Tokens) {
	r.t.Helper()
	r.create(entity, each*core.Tokens(len(r.names)))
	for i, site := range r.names {
		r.wantCode(r.acquire(site, entity, each, id("all", i)), answer.OK)
	}
}

func total(n map[string]int) int {
	sum := 0
	for _, k := range n {
		sum += k
	}
	return sum
}

// TestADroughtIsShownOnce: an instance has shown that there are no tokens. Acquires are
// refused at once and nobody is asked, as long as all others tell that they have none.
// Tokens released elsewhere are then fetched without an acquire waiting for them.
func TestADroughtIsShownOnce(t *testing.T) {
	variants(t, func(t *testing.T, choose func(*core.Config)) {
		t.Helper()
		r := newRig(t, 3, choose)
		r.drained("e", 3)
		first := r.acquireAsync("a", "e", 1, "first", 60_000)
		r.advance(4000)
		r.wantCode(r.answer(first), answer.OutOfTokens)
		if n := r.count(event.GaveUp); n == 0 {
			t.Error("nobody gave up")
		}
		// The exhaustion is young no more.
		r.advance(3000)
		before := total(r.begun())
		for i := range 300 {
			a := r.answer(r.acquireAsync("a", "e", 1, id("m", i), 60_000))
			r.wantCode(a, answer.OutOfTokens)
			if a.RetryAfter < 500 || a.RetryAfter > 8000 {
				t.Fatalf("try again after %d ms", a.RetryAfter)
			}
			r.advance(100)
		}
		if total(r.begun()) != before {
			t.Errorf("in an exhaustion %v were begun", r.begun())
		}
		r.wantCode(r.release("b", "e", 1, "back"), answer.OK)
		r.advance(2500)
		r.wantCode(r.answer(r.acquireAsync("a", "e", 1, "late", 0)), answer.OK)
	})
}

// TestAYoungExhaustion: in an exhaustion that has just begun small acquires wait a moment for
// releases, no more of them than are asked for in a second. Large acquires are refused at
// once. Earlier acquires go on waiting in the same way.
func TestAYoungExhaustion(t *testing.T) {
	variants(t, func(t *testing.T, choose func(*core.Config)) {
		t.Helper()
		r := newRig(t, 3, choose)
		r.drained("e", 3000)
		large := r.acquireAsync("a", "e", 10, "large", 60_000)
		small := r.acquireAsync("a", "e", 9, "small", 60_000)
		for r.count(event.GaveUp) == 0 {
			r.advance(10)
		}
		r.wantCode(r.answer(large), answer.OutOfTokens)
		r.unanswered(small)
		r.wantCode(r.answer(r.acquireAsync("a", "e", 10, "another large", 60_000)), answer.OutOfTokens)
		// An acquire each 10 ms is 100 in a second: more do not wait.
		var waiting []input.Call
		refused := 0
		for i := range 140 {
			call := r.acquireAsync("a", "e", 1, id("one", i), 60_000)
			if _, ok := r.answers[call]; ok {
				refused++
			} else {
				waiting = append(waiting, call)
			}
			r.advance(10)
		}
		if n := len(waiting); n < 60 || refused == 0 {
			t.Errorf("%d wait, %d are refused", n, refused)
		}
		r.wantCode(r.release("a", "e", 10, "back"), answer.OK)
		r.wantCode(r.answer(small), answer.OK)
		r.wantCode(r.answer(waiting[0]), answer.OK)
		r.unanswered(waiting[1])
		r.advance(2500)
		for _, call := range waiting[1:] {
			r.wantCode(r.answer(call), answer.OutOfTokens)
		}
	})
}

// TestTheNextExhaustionIsNotYoung: in an exhaustion soon after another exhaustion nobody waits.
func TestTheNextExhaustionIsNotYoung(t *testing.T) {
	variants(t, func(t *testing.T, choose func(*core.Config)) {
		t.Helper()
		r := newRig(t, 3, choose)
		r.drained("e", 3000)
		first := r.acquireAsync("a", "e", 1, "first", 60_000)
		r.advance(2000)
		r.unanswered(first)
		r.advance(1000)
		r.wantCode(r.answer(first), answer.OutOfTokens)
		// After a silence the exhaustion is not believed any more, and shown again.
		r.advance(60_000)
		gaveUp := r.count(event.GaveUp)
		second := r.acquireAsync("a", "e", 1, "second", 60_000)
		for r.count(event.GaveUp) == gaveUp {
			r.advance(10)
		}
		third := r.acquireAsync("a", "e", 1, "third", 60_000)
		r.wantCode(r.answer(third), answer.OutOfTokens)
		r.advance(2500)
		r.wantCode(r.answer(second), answer.OutOfTokens)
	})
}

// TestGainsAreToldAtOnce: where all have little, a site that suddenly has a good deal
// more says so at once. Otherwise others would refuse for a second acquires that this
// site could serve.
func TestGainsAreToldAtOnce(t *testing.T) {
	variants(t, func(t *testing.T, choose func(*core.Config)) {
		t.Helper()
		r := newRig(t, 3, choose)
		r.drained("e", 3000)
		for i := range 20 {
			for _, site := range r.names {
				r.acquireAsync(site, "e", 1, id("busy "+string(site), i), 500)
			}
			r.advance(500)
		}
		refused := r.acquireAsync("a", "e", 1, "refused", 5000)
		r.wantCode(r.answer(refused), answer.OutOfTokens)
		r.wantCode(r.release("b", "e", 270, "back"), answer.OK)
		r.advance(50)
		served := r.acquireAsync("a", "e", 1, "served", 5000)
		r.advance(500)
		r.wantCode(r.answer(served), answer.OK)
	})
}

// TestProof: where a proof is enough nobody waits in a young exhaustion. The proof is
// believed though others tell of many tokens since.
func TestProof(t *testing.T) {
	for admission, waits := range map[string]bool{"proof": false, "wait": true} {
		t.Run(admission, func(t *testing.T) {
			variants(t, func(t *testing.T, choose func(*core.Config)) {
				t.Helper()
				r := newRig(t, 3, func(c *core.Config) {
					choose(c)
					c.Admission = admission
				})
				r.drained("e", 3000)
				first := r.acquireAsync("a", "e", 9, "first", 60_000)
				for r.count(event.GaveUp) == 0 {
					r.advance(10)
				}
				next := r.acquireAsync("a", "e", 1, "next", 60_000)
				for _, call := range []input.Call{first, next} {
					if _, answered := r.answers[call]; answered == waits {
						t.Errorf("small acquires wait: %v, want %v", !answered, waits)
					}
				}
				r.advance(5000)
				r.wantCode(r.answer(first), answer.OutOfTokens)
				r.cut["a"] = true // a hears only the words below
				r.wantCode(r.release("b", "e", 1000, "many"), answer.OK)
				r.step("a", input.Deliver{From: "b", Messages: []message.Envelope{{Gossip: &message.Gossip{From: "b", To: "a", Summaries: []message.Summary{
					{Entity: "e", Generation: r.view("b", "e").Generation, Left: 1000, Net: 2000},
				}}}}})
				late := r.acquireAsync("a", "e", 1000, "late", 60_000)
				if _, answered := r.answers[late]; answered == waits {
					t.Errorf("waits while others tell of many: %v, want %v", !answered, waits)
				}
			})
		})
	}
}

// TestADroughtEndsInSilence: a site that does not hear from the others does not go on
// believing that they have nothing.
func TestADroughtEndsInSilence(t *testing.T) {
	r := newRig(t, 3, nil)
	r.drained("e", 3)
	r.acquireAsync("a", "e", 1, "first", 60_000)
	r.advance(2000)
	r.cut["a"] = true
	r.wantCode(r.release("b", "e", 2, "back"), answer.OK)
	r.advance(10_000)
	r.cut["a"] = false
	call := r.acquireAsync("a", "e", 2, "again", 20_000)
	r.unanswered(call)
	r.advance(5000)
	r.wantCode(r.answer(call), answer.OK)
}

// TestADroughtDoesNotOutliveSilence: after a silence of the others, a site does not go
// back to an exhaustion because one or more of them tell again. It asks them for their
// tokens.
func TestADroughtDoesNotOutliveSilence(t *testing.T) {
	for _, sites := range []int{2, 3} {
		variants(t, func(t *testing.T, choose func(*core.Config)) {
			t.Helper()
			r := newRig(t, sites, choose)
			r.drained("e", 100)
			first := r.acquireAsync("a", "e", 1, "first", 60_000)
			r.advance(3000)
			r.wantCode(r.answer(first), answer.OutOfTokens)
			// Nobody tells of an entity without demand.
			r.advance(60_000)
			r.wantCode(r.release("b", "e", 51, "back"), answer.OK)
			r.wantCode(r.acquire("b", "e", 1, "again"), answer.OK)
			r.advance(3000)
			call := r.acquireAsync("a", "e", 50, "late", 20_000)
			r.advance(10_000)
			r.wantCode(r.answer(call), answer.OK)
		})
	}
}

// TestADroughtIsShownAnewAfterSilence: an acquire that comes after a silence is not left
// to wait because all sites asked say that they have nothing.
func TestADroughtIsShownAnewAfterSilence(t *testing.T) {
	variants(t, func(t *testing.T, choose func(*core.Config)) {
		t.Helper()
		r := newRig(t, 3, choose)
		r.drained("e", 100)
		for i := range 2 {
			call := r.acquireAsync("a", "e", 1, id("late", i), 60_000)
			r.advance(4000)
			r.wantCode(r.answer(call), answer.OutOfTokens)
			r.advance(60_000)
		}
	})
}

// TestNoStorm: five sites refuse acquires all the time while a few tokens come back
// everywhere. All sites together begin less than one redistribution a second, and no
// token stays where nobody asks for it.
func TestNoStorm(t *testing.T) {
	race.OneGoroutine(t)
	variants(t, func(t *testing.T, choose func(*core.Config)) {
		t.Helper()
		r := newRig(t, 5, choose)
		r.drained("e", 200)
		const seconds = 600
		refused := 0
		for i := range 10 * seconds {
			for j, site := range r.names {
				call := r.acquireAsync(site, "e", 1, id("x", 5*i+j), 5000)
				if a, ok := r.answers[call]; ok && a.Code == answer.OutOfTokens {
					refused++
				}
				// Every tenth token comes back, at one site after the other.
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
