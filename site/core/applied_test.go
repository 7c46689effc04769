package core_test

import (
	"slices"
	"testing"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
)

// behind is a cluster of three sites with 40 of 120 tokens of e out at a and 40 left at
// c. c is cut off, and does not hear that a lowers the limit to 10.
func behind(t *testing.T, tweak func(*core.Config)) *rig {
	t.Helper()
	r := newRig(t, 3, tweak)
	r.create("e", 120)
	r.wantMayExceed(r.change("a", input.SetLimit, "e", 120, "as before"), 0, "b", "c")
	r.wantCode(r.acquire("a", "e", 40, "out"), answer.OK)
	r.cut["c"] = true
	r.wantMayExceed(r.change("a", input.SetLimit, "e", 10, "lower"), 70, "b", "c")
	return r
}

// wantMayExceed checks the answer to a limit change.
func (r *rig) wantMayExceed(got answer.Answer, most core.Tokens, unapplied ...core.SiteID) {
	r.t.Helper()
	r.wantCode(got, answer.OK)
	if got.View().MayExceed != most || !slices.Equal(got.Unapplied(), unapplied) {
		r.t.Errorf("the limit may be exceeded by %d as %v have not applied it; want %d, %v",
			got.View().MayExceed, got.Unapplied(), most, unapplied)
	}
}

// wantViews checks by how many tokens sites report that the limit of e may be exceeded.
func (r *rig) wantViews(most core.Tokens, sites ...core.SiteID) {
	r.t.Helper()
	for _, site := range sites {
		if v := r.view(site, "e"); v.MayExceed != most {
			r.t.Errorf("%s: the limit may be exceeded by %d, want %d: %+v", site, v.MayExceed, most, v)
		}
	}
}

// setLimit asks for a limit change of e that waits until all sites have applied it.
func (r *rig) setLimit(site core.SiteID, limit core.Tokens, id string) input.Call {
	return r.changeAsync(site, input.Change{Kind: input.SetLimit, Name: "e", Limit: limit, RequestID: id, Applied: true})
}

// TestMayExceedBy: until a cut-off site has heard of a lowered limit, the others report
// how many tokens may be out beyond the limit: exactly as many as that site can bring
// about. Restarts do not change the number.
func TestMayExceedBy(t *testing.T) {
	r := behind(t, nil)
	r.wantViews(70, "a", "b")
	r.release("b", "e", 30, "back")
	r.advance(5000)
	r.wantViews(40, "a", "b")
	r.restart("a")
	r.restart("b")
	r.wantViews(40, "a", "b")
	r.wantCode(r.acquire("c", "e", 40, "not heard"), answer.OK)
	if _, _, net := r.books("e"); net != 10+40 {
		t.Errorf("%d are out: the bound is not reached", net)
	}
	clear(r.cut)
	r.advance(12_000)
	r.wantViews(0, "a", "b", "c")
	r.wantCode(r.acquire("c", "e", 1, "heard"), answer.OutOfTokens)
	for _, site := range r.names {
		r.restart(site)
	}
	r.wantViews(0, "a", "b", "c")
	if v := r.view("b", "e"); v.Debt != 40 {
		t.Errorf("%+v", v)
	}
}

// TestMayExceedByNothing: sites that put their tokens into the instance that lowers the
// limit exceed nothing, whether they have applied the instance or not.
func TestMayExceedByNothing(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("e", 120)
	r.wantCode(r.acquire("a", "e", 40, "out"), answer.OK)
	call := r.changeAsync("a", input.Change{Kind: input.SetLimit, Name: "e", Limit: 10, RequestID: "lower"})
	for !r.cut["b"] {
		r.advance(1)
		for _, m := range r.sent {
			if m.Entity == "e" && m.Message.Kind == avantan.Accept {
				r.cut["b"] = true
			}
		}
	}
	r.advance(1000)
	r.wantMayExceed(r.answer(call), 0, "b", "c")
	r.wantViews(0, "a", "c")
	r.wantMayExceed(r.change("a", input.SetLimit, "e", 10, "lower"), 0, "b")
	if v := r.view("b", "e"); v.Limit != 120 {
		t.Errorf("b has heard: %+v", v)
	}
	r.wantCode(r.acquire("b", "e", 1, "early"), answer.OutOfTokens)
}

// TestMayExceedByAgain: a site that has heard of a debt has not heard of a larger debt.
func TestMayExceedByAgain(t *testing.T) {
	r := lowered(t, nil)
	r.wantViews(0, "a", "b", "c")
	r.cut["c"] = true
	r.release("b", "e", 80, "back")
	r.advance(5000)
	r.wantViews(0, "a", "b")
	r.wantMayExceed(r.change("a", input.SetLimit, "e", 4, "lower still"), 16, "b", "c")
	r.wantViews(16, "a", "b")
	r.wantMayExceed(r.change("b", input.SetLimit, "e", 30, "raise"), 0, "a", "c")
	r.wantViews(0, "a", "b", "c")
}

// TestMayExceedByUntilHeard: a site that others hear, and that hears nobody, still goes
// by the old limit.
func TestMayExceedByUntilHeard(t *testing.T) {
	r := behind(t, nil)
	clear(r.cut)
	heard := len(r.sent)
	for range 12_000 {
		r.advance(1)
		r.net = slices.DeleteFunc(r.net, func(s sent) bool { return s.e.To() == "c" })
	}
	if !slices.ContainsFunc(r.sent[heard:], func(e message.Envelope) bool { return e.From() == "c" && e.To() == "a" && e.Entity == "e" }) {
		t.Fatal("c says nothing of e")
	}
	r.wantViews(70, "a", "b")
	r.wantCode(r.acquire("c", "e", 40, "not heard"), answer.OK)
	r.advance(12_000)
	r.wantViews(0, "a", "b", "c")
}

// TestMayExceedByIsLearntLate: a site that catches up learns which others have heard.
func TestMayExceedByIsLearntLate(t *testing.T) {
	r := newRig(t, 4, nil)
	r.create("e", 120)
	r.wantCode(r.acquire("a", "e", 30, "out"), answer.OK)
	r.cut["d"] = true
	r.wantCode(r.change("a", input.SetLimit, "e", 100, "first"), answer.OK)
	r.wantCode(r.change("a", input.SetLimit, "e", 10, "lower"), answer.OK)
	r.wantViews(50, "a", "b", "c")
	clear(r.cut)
	r.cut["b"] = true
	r.advance(12_000)
	r.wantViews(0, "a", "c", "d")
}

// TestWaitApplied: a change that waits for all sites is answered once all have applied
// it, also if it is asked for again, elsewhere, or after restarts.
func TestWaitApplied(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("e", 120)
	call := r.setLimit("a", 90, "lower")
	r.advance(4 * flight)
	r.unanswered(call)
	r.advance(2 * flight)
	r.wantMayExceed(r.answer(call), 0)
	for _, site := range r.names {
		if v := r.view(site, "e"); v.Limit != 90 {
			t.Errorf("%s: %+v", site, v)
		}
	}
	for i, site := range []core.SiteID{"a", "b"} {
		r.restart(site)
		call = r.setLimit(site, 90, "lower")
		r.unanswered(call)
		r.advance(2*flight + core.Tick(i))
		r.wantMayExceed(r.answer(call), 0)
	}
	call = r.setLimit("c", 200, "raise")
	r.advance(1000)
	r.wantMayExceed(r.answer(call), 0)
	if a := r.answer(call); a.View().Limit != 200 || a.View().Version != 3 {
		t.Errorf("%+v", a.View())
	}
}

// TestWaitAppliedInVain: where a site is cut off the change is answered once its time is
// over, and stands. A repeat may wait longer.
func TestWaitAppliedInVain(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("e", 120)
	r.wantCode(r.acquire("a", "e", 40, "out"), answer.OK)
	r.cut["c"] = true
	call := r.setLimit("a", 10, "lower")
	plain := r.changeAsync("a", input.Change{Kind: input.SetLimit, Name: "e", Limit: 10, RequestID: "lower"})
	r.advance(2000)
	r.wantMayExceed(r.answer(plain), 70, "b", "c")
	r.unanswered(call)
	r.advance(2999)
	r.unanswered(call)
	r.advance(1)
	r.wantMayExceed(r.answer(call), 70, "c")
	again := r.setLimit("b", 10, "lower")
	r.advance(1000)
	r.unanswered(again)
	clear(r.cut)
	r.advance(3999)
	r.wantMayExceed(r.answer(again), 0)
	if v := r.view("c", "e"); v.Limit != 10 {
		t.Errorf("%+v", v)
	}
}

// TestWaitAppliedEnds: waiting changes are answered when the site stops and when the
// entity is deleted. No more than MaxChanges wait.
func TestWaitAppliedEnds(t *testing.T) {
	r := behind(t, func(c *core.Config) { c.MaxChanges = 2 })
	first, second, third := r.setLimit("a", 10, "lower"), r.setLimit("a", 10, "lower"), r.setLimit("a", 10, "lower")
	r.wantMayExceed(r.answer(third), 70, "c")
	r.unanswered(first)
	r.step("a", input.Stop{})
	r.wantMayExceed(r.answer(first), 70, "c")
	r.wantMayExceed(r.answer(second), 70, "c")
	r.wantMayExceed(r.answer(r.setLimit("a", 10, "lower")), 70, "c")

	last := r.setLimit("b", 10, "lower")
	r.wantCode(r.change("b", input.DeleteEntity, "e", 0, "delete"), answer.OK)
	r.wantMayExceed(r.answer(last), 70, "c")
	mismatch := r.changeAsync("b", input.Change{Kind: input.SetLimit, Name: "e", Limit: 1, RequestID: "gone", Applied: true})
	r.wantCode(r.answer(mismatch), answer.NotFound)
	wrong := r.changeAsync("b", input.Change{Kind: input.CreateEntity, Name: "f", Limit: 1, RequestID: "f", Applied: true})
	r.wantCode(r.answer(wrong), answer.Invalid)
}

// TestWaitAppliedAlone: a site without others has applied all that it decides.
func TestWaitAppliedAlone(t *testing.T) {
	r := newRig(t, 1, nil)
	r.create("e", 120)
	r.wantCode(r.acquire("a", "e", 40, "out"), answer.OK)
	r.wantMayExceed(r.answer(r.setLimit("a", 10, "lower")), 0)
	if v := r.view("a", "e"); v.Debt != 30 {
		t.Errorf("%+v", v)
	}
}
