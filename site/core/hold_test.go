package core_test

import (
	"testing"
	"time"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/policy"
)

// away cuts a site off, and tells the site so.
func (r *rig) away(site core.SiteID) {
	r.cut[site] = true
	r.step(site, input.Reachable{Sites: []core.SiteID{site}})
	r.advance(20_000)
}

// TestLargeStopsNobody: an acquire that a cut-off site cannot serve waits for its time.
// The site serves all others from the tokens left there.
func TestLargeStopsNobody(t *testing.T) {
	for _, protocol := range policy.ProtocolNames() {
		for _, strategy := range policy.StrategyNames() {
			t.Run(protocol+" "+strategy, func(t *testing.T) {
				r := newRig(t, 3, func(c *core.Config) { c.Protocol, c.Strategy = protocol, strategy })
				r.create("e", 900)
				r.away("c")
				large := r.acquireAsync("c", "e", 301, "large", 60_000)
				for i := range 50 {
					if a := r.acquire("c", "e", 1, id("no wait", i)); a.Code != answer.OK {
						t.Fatalf("%d s after the large one: %+v", i, a)
					}
					r.advance(100)
					waits := r.acquireAsync("c", "e", 1, id("waits", i), 5000)
					r.advance(900)
					if i > 0 {
						r.wantCode(r.answer(waits), answer.OK)
					}
				}
				if protocol != "star" {
					r.unanswered(large)
				}
				r.advance(10_000)
				r.wantCode(r.answer(large), answer.OutOfTokens)
				if v := r.view("c", "e"); v.Left != 200 || v.Waiting != 0 {
					t.Errorf("%+v", v)
				}
			})
		}
	}
}

// TestLargeStopsNobodyBelow: an acquire that lacks tokens of a parent stops no acquire of
// a child either.
func TestLargeStopsNobodyBelow(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("org", 900)
	r.below("x", "org", 3000)
	r.below("y", "org", 3000)
	r.away("c")
	large := r.acquireAsync("c", "x", 301, "large", 60_000)
	r.advance(1000)
	for i := range 20 {
		for _, name := range []string{"x", "y", "org"} {
			call := r.acquireAsync("c", name, 1, id(name, i), 5000)
			r.wantCode(r.answer(call), answer.OK)
		}
		both := r.allAsync("c", id("both", i), 5000, part("x", 1), part("y", 1))
		r.wantCode(r.answer(both), answer.OK)
		r.advance(1000)
	}
	r.unanswered(large)
	if v := r.view("c", "org"); v.Net != 100 {
		t.Errorf("%+v", v)
	}
}

// TestLargeStopsNobodyElsewhere: a site with an acquire that waits in vain goes on giving
// tokens to others.
func TestLargeStopsNobodyElsewhere(t *testing.T) {
	r := newRig(t, 5, nil)
	r.create("e", 1500)
	for _, n := range []core.SiteID{"a", "b", "e"} {
		r.cut[n] = true
	}
	for _, n := range []core.SiteID{"c", "d"} {
		r.step(n, input.Reachable{Sites: []core.SiteID{"c", "d"}})
	}
	r.advance(20_000)
	r.wantCode(r.acquire("d", "e", 300, "all of d"), answer.OK)
	large := r.acquireAsync("c", "e", 301, "large", 60_000)
	r.advance(2000)
	call := r.acquireAsync("d", "e", 1, "small", 5000)
	r.advance(5000)
	r.wantCode(r.answer(call), answer.OK)
	r.unanswered(large)
}

// TestCancelMany: the cost of a cancelled acquire does not grow with the number of
// acquires that wait.
func TestCancelMany(t *testing.T) {
	const n = 40_000
	r := newRig(t, 3, func(c *core.Config) { c.MaxWaiting, c.MaxWaitingAll = n, 2*n })
	r.create("e", 3)
	r.cut["a"] = true
	r.acquire("a", "e", 1, "all")
	calls := make([]input.Call, n)
	for i := range calls {
		calls[i] = r.nextCall()
		r.cores["a"].Step(r.now, &input.Acquire{Call: calls[i], Entity: "e", Tokens: 1, Request: key(id("w", i)), Wait: 50_000})
	}
	if waiting := r.cores["a"].Status().Waiting; waiting != n {
		t.Fatalf("%d wait", waiting)
	}
	began := time.Now()
	for _, c := range calls[:n/2] {
		r.cores["a"].Step(r.now, &input.Cancel{Call: c})
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("cancelling %d of %d took %v", n/2, n, took)
	}
	r.step("a", &input.Release{Call: r.nextCall(), Entity: "e", Tokens: n, Request: key("r")})
	for _, c := range calls[n/2:] {
		r.wantCode(r.answer(c), answer.OK)
	}
}

// TestHold: while the site looks for tokens for the acquire that has waited longest,
// others that may wait do so, for Hold and no longer. An acquire that cannot wait is
// granted.
func TestHold(t *testing.T) {
	r := newRig(t, 3, func(c *core.Config) { c.Hold = 300 })
	r.create("e", 900)
	r.cut["c"] = true
	large := r.acquireAsync("c", "e", 301, "large", 60_000)
	waits := r.acquireAsync("c", "e", 2, "waits", 5000)
	r.unanswered(waits)
	r.wantCode(r.acquire("c", "e", 1, "cannot wait"), answer.OK)
	soon := r.acquireAsync("c", "e", 3, "its time is up first", 200)
	r.advance(200)
	r.wantCode(r.answer(soon), answer.OK)
	r.advance(99)
	r.unanswered(waits)
	r.advance(1)
	r.wantCode(r.answer(waits), answer.OK)
	// For ten times Hold the next large acquire keeps nobody waiting either.
	r.step("c", &input.Cancel{Call: large})
	for i := range 5 {
		r.acquireAsync("c", "e", 301, id("large again", i), 60_000)
		r.wantCode(r.answer(r.acquireAsync("c", "e", 1, id("passes", i), 5000)), answer.OK)
		r.advance(500)
	}
	r.advance(3000)
	r.unanswered(r.acquireAsync("c", "e", 301, "large at last", 60_000))
}

// TestOneHold: an acquire that has waited for a hold of its entity waits for none of the
// parent.
func TestOneHold(t *testing.T) {
	r := newRig(t, 3, func(c *core.Config) { c.Hold = 300 })
	r.create("org", 900)
	r.below("x", "org", 900)
	r.cut["c"] = true
	r.acquireAsync("c", "x", 301, "large", 60_000)
	r.advance(200)
	r.acquireAsync("c", "org", 301, "large above", 60_000)
	waits := r.acquireAsync("c", "x", 1, "waits", 5000)
	above := r.acquireAsync("c", "org", 1, "waits above", 5000)
	r.advance(99)
	r.unanswered(waits)
	r.advance(1)
	r.wantCode(r.answer(waits), answer.OK)
	r.advance(199)
	r.unanswered(above)
	r.advance(1)
	r.wantCode(r.answer(above), answer.OK)
}

// TestExcessEndsNoHold: an acquire of more than a limit leaves no trace, and does not serve
// the acquires that waited for a hold whose time is up.
func TestExcessEndsNoHold(t *testing.T) {
	r := newRig(t, 3, func(c *core.Config) { c.Hold = 300 })
	r.create("e", 900)
	r.cut["c"] = true
	r.acquireAsync("c", "e", 301, "large", 60_000)
	waits := r.acquireAsync("c", "e", 2, "waits", 5000)
	// The site is late for the end of the hold.
	r.now.Tick, r.now.Wall = r.now.Tick+300, r.now.Wall+300
	r.wantCode(r.acquire("c", "e", 901, "more than the limit"), answer.ExceedsLimit)
	r.unanswered(waits)
	r.wantCode(r.acquire("c", "e", 1, "cannot wait"), answer.OK)
	r.wantCode(r.answer(waits), answer.OK)
}

// TestHoldServesLarge: an acquire that needs the tokens of several sites gets them though
// others ask for tokens all the time.
func TestHoldServesLarge(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("e", 900)
	var smalls []input.Call
	small := func(site core.SiteID) {
		smalls = append(smalls, r.acquireAsync(site, "e", 1, id("small", len(smalls)), 5000))
	}
	large := r.acquireAsync("c", "e", 600, "large", 5000)
	for range 100 {
		for _, n := range r.names {
			small(n)
		}
		r.advance(10)
	}
	r.wantCode(r.answer(large), answer.OK)
	r.advance(2000)
	granted := 0
	for _, call := range smalls {
		if r.answer(call).Code == answer.OK {
			granted++
		}
	}
	if granted < 250 {
		t.Errorf("%d of 300 small ones granted", granted)
	}
}

// TestCrowdedServes: where no more acquires may wait, an acquire that need not wait is
// granted.
func TestCrowdedServes(t *testing.T) {
	r := newRig(t, 3, func(c *core.Config) { c.MaxWaiting = 1 })
	r.create("e", 900)
	r.cut["c"] = true
	r.acquireAsync("c", "e", 301, "large", 60_000)
	r.wantCode(r.answer(r.acquireAsync("c", "e", 1, "small", 5000)), answer.OK)
	r.wantCode(r.answer(r.acquireAsync("c", "e", 301, "another", 5000)), answer.QueueFull)
}
