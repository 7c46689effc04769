package core_test

import (
	"testing"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
)

func TestRaise(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("e", 9)
	r.wantCode(r.answer(r.acquireAsync("b", "e", 50, "x", 20_000)), answer.ExceedsLimit)
	r.wantCode(r.change("a", input.SetLimit, "e", 60, "raise"), answer.OK)
	r.advance(10_000)
	waits := r.acquireAsync("b", "e", 50, "y", 20_000)
	r.advance(2000)
	r.wantCode(r.answer(waits), answer.OK)
	if left, offered, net := r.books("e"); left != 10 || offered != 0 || net != 50 {
		t.Errorf("books %d, %d, %d", left, offered, net)
	}
}

// TestLowerBelowUsage: the debt is explicit, no site that knows of it grants anything,
// and releases elsewhere pay it.
func TestLowerBelowUsage(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("e", 90)
	for i, site := range r.names {
		r.wantCode(r.acquire(site, "e", 30, id("x", i)), answer.OK)
	}
	r.wantCode(r.change("a", input.SetLimit, "e", 30, "lower"), answer.OK)
	r.advance(5000)
	if left, offered, net := r.books("e"); left+offered != -60 || net != 90 {
		t.Fatalf("books %d, %d, %d", left, offered, net)
	}
	for i, site := range r.names {
		r.wantCode(r.acquire(site, "e", 1, id("y", i)), answer.OutOfTokens)
	}
	// 60 of 90 come back, all to a single site: 30 are out, none is left.
	r.release("b", "e", 60, "back")
	r.advance(30_000)
	if left, offered, net := r.books("e"); left != 0 || offered != 0 || net != 30 {
		t.Errorf("after releases: books %d, %d, %d", left, offered, net)
	}
	for _, site := range r.names {
		if v := r.view(site, "e"); v.Left != 0 {
			t.Errorf("%s has %d left", site, v.Left)
		}
		r.wantCode(r.acquire(site, "e", 1, "z"+string(site)), answer.OutOfTokens)
	}
	r.release("c", "e", 5, "more")
	call := r.acquireAsync("a", "e", 5, "last", 30_000)
	r.advance(30_000)
	r.wantCode(r.answer(call), answer.OK)
}

// TestLowerWhileBusy: a lowered limit takes the tokens that sites would keep for
// themselves as well.
func TestLowerWhileBusy(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("e", 9000)
	for i := range 300 {
		r.wantCode(r.acquire("a", "e", 1, id("busy", i)), answer.OK)
		r.advance(20)
	}
	lowered := r.changeAsync("a", input.Change{Kind: input.SetLimit, Name: "e", Limit: 299, RequestID: "lower", Wait: 10_000})
	for _, decided := r.answers[lowered]; !decided; _, decided = r.answers[lowered] {
		r.advance(10)
	}
	r.wantCode(r.answer(lowered), answer.OK)
	r.wantCode(r.acquire("a", "e", 1, "late"), answer.OutOfTokens)
	if v := r.view("a", "e"); v.Left > 0 {
		t.Errorf("%d are left, with 300 of 299 out", v.Left)
	}
}

// TestDebtBacksOff: a debt that nobody can pay does not keep the sites busy, and is paid
// once a site can.
func TestDebtBacksOff(t *testing.T) {
	for name, strategies := range map[string]map[core.SiteID]string{
		"instance": {"a": "instance", "b": "instance", "c": "instance"},
		"transfer": {"a": "transfer", "b": "transfer", "c": "transfer"},
		"both":     {"a": "instance", "b": "transfer", "c": "transfer"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 3, func(c *core.Config) {
				c.Strategy = strategies[c.Self]
				if c.Self == "a" {
					// It begins its instance while the others ask each other.
					c.GiveUp, c.MaxGiveUp = 505, 2005
				}
			})
			r.create("e", 90)
			for i, site := range r.names {
				r.acquire(site, "e", 30, id("x", i))
				r.restart(site)
			}
			r.wantCode(r.change("a", input.SetLimit, "e", 0, "lower"), answer.OK)
			before := r.view("a", "e").Applied
			r.advance(600_000)
			if n := r.view("a", "e").Applied - before; n > 10 {
				t.Errorf("%d instances in ten minutes of debt", n)
			}
			if v := r.view("a", "e"); v.Debt != 90 {
				t.Errorf("%d are owed", v.Debt)
			}
			r.release("b", "e", 90, "back")
			r.advance(2000)
			if v := r.view("c", "e"); v.Debt != 0 || v.Left != 0 {
				t.Errorf("after the release: %+v", v)
			}
		})
	}
}

// TestPendingLimitsAreDecidedInOrder: many limit changes of the same site are decided in
// the order of the calls.
func TestPendingLimitsAreDecidedInOrder(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("e", 9)
	var calls []input.Call
	for i := range 30 {
		calls = append(calls, r.changeAsync("b", input.Change{Kind: input.SetLimit, Name: "e", Limit: core.Tokens(10 + i), RequestID: id("l", i), Wait: 30_000}))
	}
	r.advance(30_000)
	for i, c := range calls {
		if a := r.answer(c); a.Code != answer.OK || a.View().Version != uint64(i+2) || a.View().Limit != core.Tokens(10+i) {
			t.Errorf("limit %d: %+v", i, a)
		}
	}
	if left, _, _ := r.books("e"); left != 39 {
		t.Errorf("%d tokens", left)
	}
}

// TestLeftOutSiteIsAskedAgain: the only tokens are at a site that lags by a decision and
// so misses the instance that asks for all.
func TestLeftOutSiteIsAskedAgain(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("e", 9)
	r.acquire("a", "e", 3, "a")
	r.acquire("b", "e", 3, "b")
	call := r.acquireAsync("a", "e", 3, "x", 10_000)
	r.cut["c"] = true
	r.advance(460)
	delete(r.cut, "c")
	r.advance(3000)
	r.wantCode(r.answer(call), answer.OK)
}

// TestHalfTheSitesAreGone: with a majority that has no tokens, an acquire is refused long
// before its time is up. Without a majority it waits for its time.
func TestHalfTheSitesAreGone(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("e", 9)
	r.acquire("a", "e", 3, "a")
	r.acquire("b", "e", 3, "b")
	r.cut["c"] = true
	call := r.acquireAsync("a", "e", 3, "x", 60_000)
	r.advance(5000)
	r.wantCode(r.answer(call), answer.OutOfTokens)
	r.cut["b"] = true
	r.advance(10_000)
	call = r.acquireAsync("a", "e", 3, "y", 20_000)
	r.advance(19_999)
	r.unanswered(call)
	r.advance(1)
	r.wantCode(r.answer(call), answer.OutOfTokens)
	if n := r.count(event.RedistributionFailed); n == 0 {
		t.Error("no instance failed")
	}
	clear(r.cut)
	r.advance(10_000)
	call = r.acquireAsync("a", "e", 3, "z", 20_000)
	r.advance(10_000)
	r.wantCode(r.answer(call), answer.OK)
}

// TestReachableSpeedsUp: a leader does not sit out its window for sites known to be down.
func TestReachableSpeedsUp(t *testing.T) {
	for name, hint := range map[string]bool{"with a hint": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 3, nil)
			r.create("e", 9)
			r.cut["c"] = true
			if hint {
				r.step("a", input.Reachable{Sites: []core.SiteID{"b"}})
			}
			call := r.acquireAsync("a", "e", 4, "x", 10_000)
			// Two instances: the first asks for the tokens that b can spare.
			r.advance(9 * flight)
			if _, answered := r.answers[call]; answered != hint {
				t.Errorf("answered after four round trips: %v", answered)
			}
			r.advance(2000)
			r.wantCode(r.answer(call), answer.OK)
		})
	}
}

// TestAdmissionRefuse: a bare escrow asks nobody.
func TestAdmissionRefuse(t *testing.T) {
	r := newRig(t, 3, func(c *core.Config) { c.Admission = "refuse" })
	r.create("e", 9)
	sent := len(r.sent)
	r.wantCode(r.answer(r.acquireAsync("a", "e", 4, "x", 10_000)), answer.OutOfTokens)
	if len(r.sent) != sent {
		t.Error("messages are sent")
	}
}

// TestOpenInstanceSurvivesARestart restarts every site at every point of an instance in
// turn: the offers come back or are shared out, never lost.
func TestOpenInstanceSurvivesARestart(t *testing.T) {
	for _, who := range []core.SiteID{"a", "b", "c"} {
		for at := core.Tick(0); at < 7*flight; at += flight / 2 {
			r := newRig(t, 3, nil)
			r.create("e", 9)
			r.acquireAsync("a", "e", 5, "x", 20_000)
			r.advance(at)
			r.restart(who)
			r.cut[who] = true
			r.advance(300)
			delete(r.cut, who)
			r.advance(15_000)
			left, offered, net := r.books("e")
			if left+net != 9 || offered != 0 {
				t.Fatalf("%s restarts after %d ms: %d left, %d offered, %d out", who, at, left, offered, net)
			}
			if net != 5 && who != "a" {
				t.Errorf("%s restarts after %d ms: %d out", who, at, net)
			}
			if n := r.count(event.ProtocolFault); n != 0 {
				t.Fatalf("%s restarts after %d ms: %d faults", who, at, n)
			}
		}
	}
}

// TestIdleSitesWakeSeldom: with nothing to do, sites tell only of the catalogue.
func TestIdleSitesWakeSeldom(t *testing.T) {
	r := newRig(t, 3, nil)
	for i := range 50 {
		r.create(id("e", i), 9)
	}
	r.advance(10_000)
	before := len(r.sent)
	r.advance(100_000)
	for _, e := range r.sent[before:] {
		if e.Entity != "" || e.Message.Kind != avantan.Applied {
			t.Fatalf("%+v", e)
		}
	}
	if n := len(r.sent) - before; n > 3*2*21 {
		t.Errorf("%d messages in 100 s", n)
	}
}

// TestLimitsAreLearntLate: sites that were cut off learn of changed limits when they are
// back, with nothing else to bring it up. There are more limits than a message tells of.
func TestLimitsAreLearntLate(t *testing.T) {
	r := newRig(t, 3, nil)
	const changed = 100
	for i := range changed + 20 {
		r.create(id("e", i), 9)
	}
	r.cut["c"] = true
	for i := range changed {
		r.changeAsync("a", input.Change{Kind: input.SetLimit, Name: id("e", i), Limit: 20, RequestID: "l", Wait: 5000})
	}
	r.advance(60_000)
	delete(r.cut, "c")
	r.advance(40_000)
	for i := range changed + 20 {
		want := r.view("a", id("e", i))
		if got := r.view("c", id("e", i)); got.Limit != want.Limit || got.Version != want.Version || got.Applied != want.Applied {
			t.Errorf("c has %+v, a has %+v", got, want)
		}
	}
}

// TestDebtIsPaidFromElsewhere: a limit is lowered below the tokens out. New grants stop,
// and tokens released at another site pay the debt, by whatever means they move.
func TestDebtIsPaidFromElsewhere(t *testing.T) {
	for _, protocol := range []string{"majority", "star", "auto"} {
		for _, strategy := range []string{"transfer", "instance"} {
			t.Run(protocol+" "+strategy, func(t *testing.T) {
				r := newRig(t, 3, func(c *core.Config) { c.Protocol, c.Strategy = protocol, strategy })
				r.create("e", 90)
				for _, name := range r.names {
					r.wantCode(r.acquire(name, "e", 30, "all "+string(name)), answer.OK)
				}
				r.change("a", input.SetLimit, "e", 60, "lower")
				if left, offered, net := r.books("e"); net != 90 || left+offered != -30 {
					t.Fatalf("left %d, offered %d, out %d after the limit was lowered", left, offered, net)
				}
				for _, name := range r.names {
					r.wantCode(r.acquire(name, "e", 1, "no "+string(name)), answer.OutOfTokens)
				}
				r.wantCode(r.release("c", "e", 40, "back"), answer.OK)
				r.advance(60_000)
				for _, name := range r.names {
					if v := r.view(name, "e"); v.Left < 0 || v.Offered != 0 || v.Limit != 60 {
						t.Errorf("%s still has %+v", name, v)
					}
				}
				if left, _, net := r.books("e"); net != 50 || left != 10 {
					t.Errorf("left %d, out %d", left, net)
				}
				r.wantCode(r.answer(r.waitAndAdvance("a", "e", 10, "rest")), answer.OK)
				r.wantCode(r.acquire("a", "e", 1, "more"), answer.OutOfTokens)
			})
		}
	}
}
