package core_test

import (
	"testing"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

// observe looks at an entity at a site.
func (r *rig) observe(site core.SiteID, entity string) *answer.Details {
	r.t.Helper()
	call := r.nextCall()
	r.step(site, &input.Observe{Call: call, Entity: entity})
	a := r.answer(call)
	if a.Code != answer.OK {
		r.t.Fatalf("%+v", a)
	}
	return a.Details
}

// TestObserve: the first look at an entity begins the count, and each later look tells what
// was granted, refused and released since, of the entities above too, and which tokens moved.
func TestObserve(t *testing.T) {
	r := newRig(t, 2, nil)
	r.create("org", 100)
	r.below("org/vm", "org", 100)
	r.acquire("a", "org/vm", 3, "before")
	for _, e := range []string{"org", "org/vm"} {
		if o := r.observe("a", e).Observed; o.Since != 0 || o.Tally.Granted != 0 {
			t.Errorf("first look at %s: %+v", e, o)
		}
	}
	r.acquire("a", "org/vm", 10, "one")
	r.release("a", "org/vm", 4, "back")
	r.advance(1000)
	for _, e := range []string{"org", "org/vm"} {
		d := r.observe("a", e)
		if o := d.Observed; o.Since != 1000 || o.Tally.Granted != 10 || o.Tally.Released != 4 || o.Tally.Refused != 0 || d.View.Net != 9 {
			t.Errorf("%s: %+v, net %d", e, o, d.View.Net)
		}
	}
	// The site lacks tokens, and gets them from the other.
	r.observe("b", "org")
	call := r.nextCall()
	r.step("a", &input.Acquire{Call: call, Entity: "org/vm", Tokens: 60, Request: key("many"), Wait: 5000})
	r.advance(2000)
	r.wantCode(r.answer(call), answer.OK)
	came, went := r.observe("a", "org").Observed.Tally, r.observe("b", "org").Observed.Tally
	sum := func(moves []answer.Move) (n core.Tokens) {
		for _, m := range moves {
			switch {
			case m.To == "a" && m.From == "b", m.From == "":
				n += m.Tokens
			default:
				t.Errorf("%+v", m)
			}
		}
		return n
	}
	if came.Granted != 60 || sum(came.Moves) < 13 || len(went.Moves) == 0 {
		t.Errorf("came %+v, went %+v", came, went)
	}
	// Nobody looks for more than a minute: the count ends.
	r.acquire("a", "org/vm", 1, "late")
	r.advance(61_000)
	r.acquire("a", "org/vm", 1, "later")
	if o := r.observe("a", "org/vm").Observed; o.Since != 0 || o.Tally.Granted != 0 {
		t.Errorf("after a long time: %+v", o)
	}
	if o := r.observe("a", "org/vm").Observed; !o.Forecasts || o.Horizon != 30_000 || o.Forecast.High < o.Forecast.Median {
		t.Errorf("forecast: %+v", o)
	}
	// An end ends the count at once.
	r.acquire("a", "org/vm", 1, "last")
	call = r.nextCall()
	r.step("a", &input.Observe{Call: call, Entity: "org/vm", End: true})
	r.wantCode(r.answer(call), answer.OK)
	if o := r.observe("a", "org/vm").Observed; o.Since != 0 || o.Tally.Granted != 0 {
		t.Errorf("after the end: %+v", o)
	}
	call = r.nextCall()
	r.step("a", &input.Observe{Call: call, Entity: "none"})
	r.wantCode(r.answer(call), answer.NotFound)
}

// TestObserveRefusals: an acquire that is refused counts for all entities that it would have
// charged. An acquire of more than the limit is no demand.
func TestObserveRefusals(t *testing.T) {
	r := newRig(t, 1, nil)
	r.create("org", 10)
	r.below("org/vm", "org", 100)
	r.observe("a", "org")
	r.observe("a", "org/vm")
	r.acquire("a", "org/vm", 8, "fits")
	for id, tokens := range map[string]core.Tokens{"refused": 5, "never": 11} {
		call := r.nextCall()
		r.step("a", &input.Acquire{Call: call, Entity: "org/vm", Tokens: tokens, Request: key(id)})
		if a := r.answer(call); a.Code == answer.OK {
			t.Fatalf("%+v", a)
		}
	}
	for _, e := range []string{"org", "org/vm"} {
		if o := r.observe("a", e).Observed.Tally; o.Granted != 8 || o.Refused != 5 {
			t.Errorf("%s: %+v", e, o)
		}
	}
}
