package core_test

import (
	"testing"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

// lowered is a cluster of three sites with 100 of 120 tokens of e out at a, and the limit
// lowered to 10 by a.
func lowered(t *testing.T, tweak func(*core.Config)) *rig {
	t.Helper()
	r := newRig(t, 3, tweak)
	r.create("e", 120)
	r.wantCode(r.answer(r.waitAndAdvance("a", "e", 100, "out")), answer.OK)
	r.wantCode(r.change("a", input.SetLimit, "e", 10, "lower"), answer.OK)
	return r
}

// TestLoweredLimitIsKeptElsewhere: tokens released at another site than they were
// acquired at pay the debt, and are not granted there again.
func TestLoweredLimitIsKeptElsewhere(t *testing.T) {
	for _, protocol := range []string{"majority", "star", "auto"} {
		t.Run(protocol, func(t *testing.T) {
			r := lowered(t, func(c *core.Config) { c.Protocol = protocol })
			r.wantCode(r.release("b", "e", 100, "back"), answer.OK)
			r.wantCode(r.acquire("b", "e", 70, "again"), answer.ExceedsLimit)
			r.wantCode(r.acquire("b", "e", 1, "at once"), answer.OK)
			r.wantCode(r.acquire("b", "e", 10, "beyond the debt"), answer.OutOfTokens)
			r.wantCode(r.acquire("b", "e", 9, "the rest"), answer.OK)
			r.advance(5000)
			for _, site := range r.names {
				if v := r.view(site, "e"); v.Debt != 0 || v.Left != 0 {
					t.Errorf("%s: %+v", site, v)
				}
				r.wantCode(r.answer(r.waitAndAdvance(site, "e", 1, "more "+string(site))), answer.OutOfTokens)
			}
		})
	}
}

// TestLoweredLimitIsKeptInParts: releases at all sites, each too small to pay the debt,
// are not granted again before they pay it together.
func TestLoweredLimitIsKeptInParts(t *testing.T) {
	r := lowered(t, nil)
	for _, site := range r.names {
		r.release(site, "e", 32, "back "+string(site))
		r.wantCode(r.acquire(site, "e", 1, "early "+string(site)), answer.OutOfTokens)
	}
	r.advance(5000)
	if left, _, net := r.books("e"); left != 6 || net != 4 {
		t.Fatalf("%d left, %d out", left, net)
	}
	r.wantCode(r.answer(r.waitAndAdvance("c", "e", 6, "rest")), answer.OK)
	r.wantCode(r.answer(r.waitAndAdvance("b", "e", 1, "more")), answer.OutOfTokens)
}

// TestLoweredLimitIsKeptByWhoHasNotApplied: a site put its tokens into the instance that
// lowers the limit, and does not hear of the decision. It grants no token that comes back
// there, restarts included.
func TestLoweredLimitIsKeptByWhoHasNotApplied(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("e", 120)
	r.wantCode(r.answer(r.waitAndAdvance("a", "e", 100, "out")), answer.OK)
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
	r.wantCode(r.answer(call), answer.OK)
	if v := r.view("b", "e"); v.Limit != 120 || v.Offered == 0 {
		t.Fatalf("b takes no part, or has heard: %+v", v)
	}
	r.release("b", "e", 100, "back")
	r.wantCode(r.acquire("b", "e", 1, "early"), answer.OutOfTokens)
	r.restart("b")
	r.wantCode(r.acquire("b", "e", 1, "restarted"), answer.OutOfTokens)
	clear(r.cut)
	r.advance(30_000)
	if left, offered, net := r.books("e"); left != 10 || offered != 0 || net != 0 {
		t.Errorf("%d left, %d offered, %d out", left, offered, net)
	}
	r.wantCode(r.answer(r.waitAndAdvance("b", "e", 10, "rest")), answer.OK)
}

// TestDebtSurvivesARestart: a site in debt that starts again is in debt.
func TestDebtSurvivesARestart(t *testing.T) {
	r := lowered(t, nil)
	for _, site := range r.names {
		r.restart(site)
	}
	r.release("c", "e", 80, "back")
	r.wantCode(r.acquire("c", "e", 1, "early"), answer.OutOfTokens)
	if v := r.view("c", "e"); v.Debt != 90 {
		t.Errorf("%+v", v)
	}
	r.advance(5000)
	if v := r.view("c", "e"); v.Debt != 10 || v.Left != 0 {
		t.Errorf("%+v", v)
	}
}

// TestDebtIsLearntLate: a site that was cut off while the limit was lowered learns of the
// debt from a snapshot, and its tokens pay the debt.
func TestDebtIsLearntLate(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("e", 120)
	r.wantCode(r.acquire("a", "e", 40, "a"), answer.OK)
	r.wantCode(r.acquire("b", "e", 40, "b"), answer.OK)
	r.cut["c"] = true
	for i, limit := range []core.Tokens{90, 60, 20} {
		r.wantCode(r.change("a", input.SetLimit, "e", limit, id("lower", i)), answer.OK)
	}
	if v := r.view("b", "e"); v.Debt != 100 {
		t.Fatalf("%+v", v)
	}
	r.wantCode(r.acquire("c", "e", 1, "not heard"), answer.OK)
	clear(r.cut)
	r.advance(40_000)
	for _, site := range r.names {
		if v := r.view(site, "e"); v.Debt != 61 || v.Left != 0 {
			t.Errorf("%s: %+v", site, v)
		}
	}
	r.wantCode(r.acquire("c", "e", 1, "heard"), answer.OutOfTokens)
}

// TestRaisePaysTheDebt: a raise goes to the debt first.
func TestRaisePaysTheDebt(t *testing.T) {
	r := lowered(t, nil)
	r.wantCode(r.change("b", input.SetLimit, "e", 60, "some"), answer.OK)
	if v := r.view("c", "e"); v.Debt != 40 || v.Left != 0 {
		t.Errorf("%+v", v)
	}
	r.wantCode(r.change("b", input.SetLimit, "e", 130, "all"), answer.OK)
	if left, _, net := r.books("e"); left != 30 || net != 100 {
		t.Errorf("%d left, %d out", left, net)
	}
	r.wantCode(r.answer(r.waitAndAdvance("c", "e", 30, "rest")), answer.OK)
}

// TestDebtWaitsForAMajority: without a majority, tokens that come back pay nothing. A
// site that has the whole debt aside grants the rest.
func TestDebtWaitsForAMajority(t *testing.T) {
	for _, protocol := range []string{"star", "auto"} {
		t.Run(protocol, func(t *testing.T) {
			r := lowered(t, func(c *core.Config) { c.Protocol = protocol })
			r.cut["a"], r.cut["c"] = true, true
			r.release("b", "e", 50, "back")
			r.wantCode(r.acquire("b", "e", 1, "early"), answer.OutOfTokens)
			r.release("b", "e", 45, "more")
			r.wantCode(r.acquire("b", "e", 6, "too many"), answer.OutOfTokens)
			r.wantCode(r.acquire("b", "e", 5, "the rest"), answer.OK)
			r.advance(60_000)
			clear(r.cut)
			r.advance(10_000)
			if left, offered, net := r.books("e"); left != 0 || offered != 0 || net != 10 {
				t.Errorf("%d left, %d offered, %d out", left, offered, net)
			}
		})
	}
}

// TestOfferOfLessThanNothingIsNotGranted: a site that lacks tokens offers less than
// nothing. Of the tokens that come back to it meanwhile it grants only the tokens beyond
// its lack, since the offer may come back as well.
func TestOfferOfLessThanNothingIsNotGranted(t *testing.T) {
	const out, more = 20, 4
	r := newRig(t, 3, func(c *core.Config) { c.Strategy = "instance" })
	r.create("parent", 9)
	r.create("child", 60)
	r.wantCode(r.acquire("a", "child", out, "out"), answer.OK)
	// It takes the others for down, so it begins nothing itself, and answers them.
	r.step("a", input.Reachable{})
	r.changeAsync("b", input.Change{Kind: input.MoveEntity, Name: "child", Parent: "parent", RequestID: "move"})
	for r.view("a", "parent").Net == 0 {
		r.advance(1)
	}
	r.acquireAsync("b", "parent", more, "short", 20_000)
	for r.view("a", "parent").Offered == 0 {
		r.advance(1)
	}
	r.cut["a"] = true
	offered := r.view("a", "parent").Offered
	if offered >= 0 {
		t.Fatalf("a offers %d", offered)
	}
	r.wantCode(r.release("a", "child", out, "back"), answer.OK)
	r.wantCode(r.acquire("a", "parent", out+offered+1, "too much"), answer.OutOfTokens)
	r.wantCode(r.acquire("a", "parent", out+offered, "all"), answer.OK)
	r.cut["a"] = false
	r.advance(30_000)
	if _, _, net := r.books("parent"); net > 9 {
		t.Errorf("%d of 9 are out", net)
	}
}
