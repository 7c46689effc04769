package core_test

import (
	"testing"

	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

// rated starts a cluster of three sites with an entity "llm" of 30 tokens in each minute,
// 10 at each site, at the beginning of a minute.
func rated(t *testing.T, tweak func(*core.Config)) *rig {
	t.Helper()
	r := newRig(t, 3, func(c *core.Config) {
		c.Trigger = "reactive" // no tokens move before an acquire waits
		if tweak != nil {
			tweak(c)
		}
	})
	r.advance(core.Tick(60_000 - r.now.Wall%60_000 - 2000))
	call := r.changeAsync("a", input.Change{Kind: input.CreateEntity, Name: "llm", Limit: 30, RequestID: "create", Rate: minute})
	r.advance(2000)
	if a := r.answer(call); a.Code != answer.OK || a.View().Rate != minute {
		t.Fatalf("creating a rate quota: %+v", a)
	}
	return r
}

var minute = rates.Terms{Kind: rates.Window, Count: 1, Unit: rates.Minute}

// wantWindow checks the books of a site, by its answer to a read.
func (r *rig) wantWindow(site core.SiteID, left, net core.Tokens) {
	r.t.Helper()
	if v := r.view(site, "llm"); v.Left != left || v.Net != net || v.Ends%60_000 != 0 {
		r.t.Errorf("%s has %d left and %d out in a window until %d, want %d and %d", site, v.Left, v.Net, v.Ends, left, net)
	}
}

// TestWindows: granted tokens come back as the next window begins, and not before.
func TestWindows(t *testing.T) {
	r := rated(t, nil)
	for n := range 3 {
		r.wantCode(r.acquire("a", "llm", 10, id("use", n)), answer.OK)
		r.wantCode(r.acquire("a", "llm", 1, id("more", n)), answer.OutOfTokens)
		r.advance(59_998)
		r.wantWindow("a", 0, 10)
		r.wantCode(r.acquire("a", "llm", 1, id("late", n)), answer.OutOfTokens)
		r.advance(2)
		dry := r.nextCall()
		r.step("a", &input.Acquire{Call: dry, Request: key(id("dry", n)), Entity: "llm", Tokens: 10, DryRun: true})
		if a := r.answer(dry); a.Code != answer.OK || a.Tokens != 10 {
			t.Errorf("a dry run in the next window: %+v", a)
		}
		r.wantWindow("a", 10, 0) // also before anybody has asked for tokens
	}
	if left, offered, net := r.books("llm"); left != 30 || offered != 0 || net != 0 {
		t.Errorf("%d left, %d set aside, %d out", left, offered, net)
	}
}

// TestWindowsNeverGoBack: a calendar that is set back opens no window again, also after a
// restart, and the window it had begun lasts until its end.
func TestWindowsNeverGoBack(t *testing.T) {
	r := rated(t, func(c *core.Config) { c.Admission = "refuse" })
	r.wantCode(r.acquire("a", "llm", 10, "this"), answer.OK)
	r.ahead["a"] = 60_000
	r.wantCode(r.acquire("a", "llm", 10, "next"), answer.OK)
	r.ahead["a"] = 0
	r.wantCode(r.acquire("a", "llm", 1, "set back"), answer.OutOfTokens)
	r.restart("a")
	r.advance(1000)
	r.wantCode(r.acquire("a", "llm", 1, "restarted"), answer.OutOfTokens)
	r.advance(60_000)
	r.wantCode(r.acquire("a", "llm", 1, "the next again"), answer.OutOfTokens)
	r.advance(60_000)
	r.wantCode(r.acquire("a", "llm", 10, "after it"), answer.OK)
}

// TestTokensFromALaterWindow: tokens of a site whose calendar is ahead count as out until
// the window begins here, whatever brings them, and also over a restart.
func TestTokensFromALaterWindow(t *testing.T) {
	for name, tweak := range map[string]func(*core.Config){
		"transfer": func(c *core.Config) { c.Strategy = "transfer" },
		"majority": func(c *core.Config) { c.Strategy = "instance" },
		"star":     func(c *core.Config) { c.Strategy, c.Protocol = "instance", "star" },
	} {
		t.Run(name, func(t *testing.T) {
			r := rated(t, tweak)
			r.wantCode(r.acquire("a", "llm", 10, "a uses all"), answer.OK)
			r.wantCode(r.acquire("b", "llm", 10, "b uses all"), answer.OK)
			r.wantCode(r.acquire("c", "llm", 10, "c uses all"), answer.OK)
			// At b the next minute has begun: its tokens have come back.
			r.ahead["b"] = 60_000
			late := r.acquireAsync("a", "llm", 3, "more than a minute's", 5000)
			r.advance(6000)
			r.wantCode(r.answer(late), answer.OutOfTokens)
			got := r.view("a", "llm").Net - 10
			if got <= 0 || r.view("a", "llm").Left != 0 {
				t.Fatalf("a has %+v", r.view("a", "llm"))
			}
			r.restart("a")
			r.advance(2000)
			r.wantWindow("a", 0, 10+got)
			r.advance(60_000)
			r.wantWindow("a", 10+got, 0)
		})
	}
}

// TestBequestOfALaterWindow: tokens that a leaver ahead has granted come back at its heir a
// window after the leaver's.
func TestBequestOfALaterWindow(t *testing.T) {
	r := rated(t, func(c *core.Config) { c.Retention = leavingRetention })
	r.wantCode(r.acquire("a", "llm", 10, "a uses all"), answer.OK)
	r.ahead["b"] = 60_000
	r.wantCode(r.acquire("b", "llm", 7, "b uses most of the next"), answer.OK)
	r.drainSite("c", "b", "a")
	r.advance(20_000)
	r.wantWindow("a", 0, 20)
	r.advance(60_000)
	r.wantWindow("a", 10, 10)
	r.wantCode(r.acquire("a", "llm", 10, "a's own"), answer.OK)
	r.advance(60_000)
	r.wantWindow("a", 20, 0)
}

// TestWaitForTheNextWindow: an acquire waits for the next window if that begins in time,
// and else is refused as soon as no site has tokens.
func TestWaitForTheNextWindow(t *testing.T) {
	r := rated(t, nil)
	for _, site := range r.names {
		r.wantCode(r.acquire(site, "llm", 10, "use "+string(site)), answer.OK)
	}
	short := r.acquireAsync("a", "llm", 4, "short", 20_000)
	r.advance(5000)
	if a := r.answer(short); a.Code != answer.OutOfTokens || a.RetryAfter < 50_000 {
		t.Errorf("%+v; it may as well ask again in the next window", a)
	}
	// Nothing is released, so nobody waits for a release.
	r.wantCode(r.answer(r.acquireAsync("a", "llm", 1, "small", 20_000)), answer.OutOfTokens)
	long := r.acquireAsync("a", "llm", 4, "long", 80_000)
	r.advance(54_000)
	r.unanswered(long)
	r.advance(2000)
	r.wantCode(r.answer(long), answer.OK)
	r.wantWindow("a", 6, 4)
}

// TestLeasesInWindows: unused tokens of a lease come back to the lease's window, and not to a
// later window.
func TestLeasesInWindows(t *testing.T) {
	r := rated(t, nil)
	r.wantCode(r.lease("a", "llm", 8, "estimate", 200_000), answer.OK)
	if a := r.commit("a", "estimate", 3, "actual"); a.Code != answer.OK || a.Returned != 5 {
		t.Errorf("%+v", a)
	}
	r.wantWindow("a", 7, 3)
	r.wantCode(r.lease("a", "llm", 7, "long", 200_000), answer.OK)
	r.advance(60_000)
	r.wantWindow("a", 10, 0)
	r.wantCode(r.acquire("a", "llm", 10, "all"), answer.OK)
	if a := r.commit("a", "long", 1, "too late"); a.Code != answer.OK || a.Tokens != 1 || a.Returned != 0 {
		t.Errorf("%+v", a)
	}
	r.wantWindow("a", 0, 10)
	r.advance(60_000)
	r.wantCode(r.lease("a", "llm", 6, "expires", 5000), answer.OK)
	r.wantCode(r.lease("a", "llm", 2, "given back", 50_000), answer.OK)
	r.wantCode(r.giveBack("a", "llm", "given back", 2, "back"), answer.OK)
	r.advance(6000)
	r.wantWindow("a", 10, 0)
	r.wantCode(r.lease("a", "llm", 6, "outlives", 58_000), answer.OK)
	r.advance(60_000)
	r.wantWindow("a", 10, 0)
}

// TestByClockAlone: requests that do not go with a rate quota.
func TestByClockAlone(t *testing.T) {
	r := rated(t, nil)
	r.create("acme", 10)
	r.wantCode(r.acquire("a", "llm", 5, "use"), answer.OK)
	r.wantCode(r.release("a", "llm", 5, "release"), answer.ByClock)
	for name, ch := range map[string]input.Change{
		"moved":      {Kind: input.MoveEntity, Name: "llm", Parent: "acme"},
		"reconciled": {Kind: input.Reconcile, Name: "llm", Expected: 1, Truth: input.Truth{Counted: 5, Generation: r.view("a", "llm").Generation}},
	} {
		ch.RequestID = name
		call := r.changeAsync("b", ch)
		r.advance(3000)
		if a := r.answer(call); a.Code != answer.ByClock {
			t.Errorf("%s: %+v", name, a)
		}
	}
	for name, terms := range map[string]rates.Terms{
		"unit": {Kind: rates.Window, Count: 1, Unit: "week"}, "kind": {Kind: "x", Count: 1, Unit: rates.Day}, "count": {Kind: rates.Window, Unit: rates.Day},
	} {
		call := r.changeAsync("a", input.Change{Kind: input.CreateEntity, Name: "odd", Limit: 1, RequestID: name, Rate: terms})
		r.wantCode(r.answer(call), answer.Invalid)
	}
}

// TestLimitsOfWindows: a raised limit can be used in the same window; a lowered limit takes
// effect at once as well, and tokens used beyond it come back as any other.
func TestLimitsOfWindows(t *testing.T) {
	r := rated(t, nil)
	for _, site := range r.names {
		r.wantCode(r.acquire(site, "llm", 10, "use "+string(site)), answer.OK)
	}
	r.wantCode(r.change("a", input.SetLimit, "llm", 60, "raise"), answer.OK)
	if left, _, net := r.books("llm"); left != 30 || net != 30 {
		t.Errorf("raised: %d left, %d out", left, net)
	}
	r.wantCode(r.change("a", input.SetLimit, "llm", 9, "lower"), answer.OK)
	for _, site := range r.names {
		r.wantCode(r.acquire(site, "llm", 1, "beyond "+string(site)), answer.OutOfTokens)
	}
	r.advance(60_000)
	if left, _, net := r.books("llm"); left != 9 || net != 0 {
		t.Errorf("lowered: %d left, %d out", left, net)
	}
}

// TestLateTokensInABequest: tokens that are late at a leaver are late at its heir, too.
func TestLateTokensInABequest(t *testing.T) {
	r := rated(t, func(c *core.Config) { c.Retention, c.Strategy = leavingRetention, "transfer" })
	for _, site := range r.names {
		r.wantCode(r.acquire(site, "llm", 10, "use "+string(site)), answer.OK)
	}
	// c is two minutes ahead, and has its tokens again. b asks for more than it has.
	r.ahead["c"] = 120_000
	r.wantCode(r.answer(r.acquireAsync("c", "llm", 1, "c begins its window", 0)), answer.OK)
	late := r.acquireAsync("b", "llm", 3, "b lacks tokens", 4000)
	r.advance(5000)
	r.wantCode(r.answer(late), answer.OutOfTokens)
	got := r.view("b", "llm").Net - 10
	if got <= 0 {
		t.Fatalf("b has %+v", r.view("b", "llm"))
	}
	r.drainSite("a", "b", "a")
	r.advance(20_000)
	total := r.view("a", "llm").Net
	if total < 20+got {
		t.Fatalf("a has %+v", r.view("a", "llm"))
	}
	r.advance(60_000)
	if v := r.view("a", "llm"); v.Net < got {
		t.Errorf("%d tokens are out, %d must be late: %+v", v.Net, got, v)
	}
	r.advance(120_000)
	r.wantWindow("a", total, 0)
}
