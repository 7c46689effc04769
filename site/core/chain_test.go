package core_test

import (
	"testing"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

// chain creates three entities, each below the next: leaf, team and org.
func (r *rig) chain(leaf, team, org core.Tokens) {
	r.t.Helper()
	r.create("org", org)
	r.below("team", "org", team)
	r.below("leaf", "team", leaf)
}

// wantOut checks the tokens out of leaf, team and org at a site, and that nothing waits
// for them.
func (r *rig) wantOut(site core.SiteID, leaf, team, org core.Tokens) {
	r.t.Helper()
	for name, want := range map[string]core.Tokens{"leaf": leaf, "team": team, "org": org} {
		if v := r.view(site, name); v.Net != want || v.Waiting != 0 {
			r.t.Errorf("%s: %d of %s are out and %d wait for it, want %d and none", site, v.Net, name, v.Waiting, want)
		}
	}
}

func (r *rig) wantLacking(a answer.Answer, code answer.Code, lacking string) {
	r.t.Helper()
	if a.Code != code || a.Lacking != lacking {
		r.t.Errorf("got %+v, want %v for want of tokens of %q", a, code, lacking)
	}
}

func TestChainIsChargedAndCredited(t *testing.T) {
	r := newRig(t, 1, nil)
	r.chain(10, 20, 30)
	if a := r.acquire("a", "leaf", 4, "x"); a.Code != answer.OK || a.Left != 6 {
		t.Errorf("%+v", a)
	}
	r.wantOut("a", 4, 4, 4)
	r.wantCode(r.acquire("a", "team", 3, "y"), answer.OK)
	r.wantCode(r.acquire("a", "org", 2, "z"), answer.OK)
	r.wantOut("a", 4, 7, 9)
	r.wantCode(r.release("a", "leaf", 1, "back"), answer.OK)
	r.wantOut("a", 3, 6, 8)
	r.wantCode(r.release("a", "leaf", 1, "back"), answer.OK)
	r.wantOut("a", 3, 6, 8)
}

// TestChainRefusalNamesWhoLacks: nothing moves on any entity. A repeat gets the same
// answer, also after a restart and when there is enough.
func TestChainRefusalNamesWhoLacks(t *testing.T) {
	for lacking, limits := range map[string][3]core.Tokens{"leaf": {5, 9, 9}, "team": {9, 5, 9}, "org": {9, 9, 5}} {
		t.Run(lacking, func(t *testing.T) {
			r := newRig(t, 1, nil)
			r.chain(limits[0], limits[1], limits[2])
			r.wantCode(r.acquire("a", "leaf", 1, "one"), answer.OK)
			for _, wait := range []core.Tick{0, 1000} {
				a := r.answer(r.acquireAsync("a", "leaf", 5, id("x", int(wait)), wait))
				r.wantLacking(a, answer.OutOfTokens, lacking)
				if a.Left != 4 {
					t.Errorf("%+v", a)
				}
			}
			r.wantOut("a", 1, 1, 1)
			r.change("a", input.SetLimit, lacking, 9, "raise")
			r.wantLacking(r.acquire("a", "leaf", 5, "x-0"), answer.OutOfTokens, lacking)
			r.restart("a")
			r.wantLacking(r.acquire("a", "leaf", 5, "x-0"), answer.OutOfTokens, lacking)
			r.wantCode(r.acquire("a", "leaf", 5, "y"), answer.OK)
			r.wantOut("a", 6, 6, 6)
		})
	}
}

func TestChainLeastAndDryRun(t *testing.T) {
	r := newRig(t, 1, nil)
	r.chain(9, 7, 9)
	r.wantCode(r.acquire("a", "team", 2, "team"), answer.OK)
	try := func(least core.Tokens, dry bool, id string) answer.Answer {
		call := r.nextCall()
		r.step("a", &input.Acquire{Call: call, Entity: "leaf", Tokens: 8, Least: least, DryRun: dry, Request: key(id)})
		return r.answer(call)
	}
	if a := try(2, true, "x"); a.Code != answer.OK || a.Tokens != 5 || a.Left != 9 {
		t.Errorf("%+v", a)
	}
	r.wantLacking(try(6, true, "x"), answer.OutOfTokens, "team")
	r.wantLacking(try(7, true, "x"), answer.OutOfTokens, "team")
	r.wantOut("a", 0, 2, 2)
	r.wantLacking(try(6, false, "x"), answer.OutOfTokens, "team")
	if a := try(2, false, "y"); a.Code != answer.OK || a.Tokens != 5 || a.Left != 4 {
		t.Errorf("%+v", a)
	}
	r.wantOut("a", 5, 7, 7)
}

// TestChainFetchesForWhoLacks: the site asks others for tokens of the entities that lack
// them, one after the other.
func TestChainFetchesForWhoLacks(t *testing.T) {
	r := newRig(t, 3, nil)
	r.chain(9, 90, 9)
	call := r.acquireAsync("a", "leaf", 6, "x", 20_000)
	r.unanswered(call)
	if v := r.view("a", "leaf"); v.Waiting != 1 {
		t.Errorf("%+v", v)
	}
	goesOn := false
	for range 100 {
		r.advance(flight)
		goesOn = goesOn || r.view("a", "org").Waiting == 1
	}
	if a := r.answer(call); !goesOn || a.Code != answer.OK {
		t.Errorf("waited for the second one: %v, %+v", goesOn, a)
	}
	r.wantOut("a", 6, 6, 6)
	if left, _, net := r.books("team"); left != 84 || net != 6 || r.view("a", "team").Fetches != 0 {
		t.Errorf("tokens of who has enough moved: %+v", r.view("a", "team"))
	}
	// The organisation has 3 left in all.
	call = r.acquireAsync("a", "team", 4, "y", 20_000)
	r.advance(20_000)
	r.wantLacking(r.answer(call), answer.OutOfTokens, "org")
	r.wantOut("a", 6, 6, 6)
}

// TestChainHoldsNothingWhileItWaits: tokens of the leaf are there for others while an
// acquire waits for tokens of the leaf's parent. The queue of the parent serves the first
// comer first.
func TestChainHoldsNothingWhileItWaits(t *testing.T) {
	r := newRig(t, 3, nil)
	r.chain(300, 300, 12)
	r.cut["b"], r.cut["c"] = true, true
	first := r.acquireAsync("a", "leaf", 5, "first", 10_000)
	second := r.acquireAsync("a", "org", 4, "second", 10_000)
	third := r.acquireAsync("a", "team", 4, "third", 10_000)
	if n := r.view("a", "org").Waiting; n != 3 {
		t.Fatalf("%d wait", n)
	}
	r.wantOut2("a", 0, 0, 0)
	if v := r.view("a", "leaf"); v.Left != 100 {
		t.Errorf("%+v", v)
	}
	r.release("a", "org", 3, "back")
	r.wantCode(r.answer(first), answer.OK)
	r.unanswered(second)
	r.unanswered(third)
	r.release("a", "org", 2, "more")
	r.wantCode(r.answer(second), answer.OK)
	r.unanswered(third)
	r.advance(10_000)
	r.wantLacking(r.answer(third), answer.OutOfTokens, "org")
	r.wantOut("a", 5, 5, 4)
}

// wantOut2 is wantOut with acquires waiting.
func (r *rig) wantOut2(site core.SiteID, leaf, team, org core.Tokens) {
	r.t.Helper()
	for name, want := range map[string]core.Tokens{"leaf": leaf, "team": team, "org": org} {
		if v := r.view(site, name); v.Net != want {
			r.t.Errorf("%s: %d of %s are out, want %d", site, v.Net, name, want)
		}
	}
}

// TestWhatComesBackServesAllAbove: an acquire that waits for an ancestor gets the tokens
// that come back below, by a release or from a lease, given back or expired. Nobody waits
// for the leaf.
func TestWhatComesBackServesAllAbove(t *testing.T) {
	for name, give := range map[string]func(r *rig){
		"released":  func(r *rig) { r.release("a", "leaf", 9, "back") },
		"returned":  func(r *rig) { r.giveBack("a", "leaf", "lease", 9, "return") },
		"committed": func(r *rig) { r.commit("a", "lease", 1, "commit") },
		"expired":   func(r *rig) { r.advance(2000) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 3, nil)
			r.chain(30, 30, 30)
			r.cut["b"], r.cut["c"] = true, true
			r.wantCode(r.lease("a", "leaf", 10, "lease", 2000), answer.OK)
			team := r.acquireAsync("a", "team", 3, "team", 60_000)
			org := r.acquireAsync("a", "org", 5, "org", 60_000)
			r.unanswered(team)
			r.unanswered(org)
			give(r)
			r.wantCode(r.answer(team), answer.OK)
			r.wantCode(r.answer(org), answer.OK)
		})
	}
}

func TestChainLeases(t *testing.T) {
	r := newRig(t, 1, nil)
	r.chain(30, 30, 30)
	r.wantCode(r.lease("a", "leaf", 5, "expires", 1000), answer.OK)
	r.wantCode(r.lease("a", "leaf", 5, "returned", 9000), answer.OK)
	r.wantCode(r.lease("a", "team", 5, "committed", 9000), answer.OK)
	r.wantCode(r.lease("a", "leaf", 5, "undone", 9000), answer.OK)
	r.wantOut("a", 15, 20, 20)
	r.advance(1001)
	r.wantOut("a", 10, 15, 15)
	r.wantCode(r.giveBack("a", "leaf", "returned", 2, "part"), answer.OK)
	r.wantOut("a", 8, 13, 13)
	r.wantCode(r.commit("a", "committed", 1, "keep"), answer.OK)
	r.wantOut("a", 8, 9, 9)
	r.cores["a"].EndLease(key("undone"))
	r.wantOut("a", 3, 4, 4)
	r.restart("a")
	r.advance(9000)
	r.wantOut("a", 0, 1, 1)
}

// TestExpiredLeasesServeAllAbove: acquires that wait for an ancestor get the tokens of
// leases below at the instant at which the leases expire.
func TestExpiredLeasesServeAllAbove(t *testing.T) {
	r := newRig(t, 3, nil)
	r.chain(30, 30, 30)
	r.cut["b"], r.cut["c"] = true, true
	r.lease("a", "leaf", 6, "x", 1000)
	r.lease("a", "leaf", 4, "y", 1000)
	team := r.acquireAsync("a", "team", 4, "team", 1000)
	org := r.acquireAsync("a", "org", 4, "org", 1000)
	leaf := r.acquireAsync("a", "leaf", 2, "leaf", 1000)
	r.advance(999)
	r.unanswered(leaf)
	r.advance(1)
	for _, call := range []input.Call{team, org, leaf} {
		r.wantCode(r.answer(call), answer.OK)
	}
	r.wantOut("a", 2, 6, 10)
}

// TestChainCreditIsAllOrNone: if the books of an ancestor have no room, nothing is
// credited.
func TestChainCreditIsAllOrNone(t *testing.T) {
	r := newRig(t, 1, nil)
	r.chain(10, 10, 10)
	for i := range 16 {
		r.release("a", "org", input.MaxTokens, id("fill", i))
	}
	before := r.view("a", "leaf")
	r.wantCode(r.release("a", "leaf", input.MaxTokens, "full"), answer.Overflow)
	if v := r.view("a", "leaf"); v.Left != before.Left || v.Net != before.Net {
		t.Errorf("%+v", v)
	}
}

// TestChainUndone: an attempt that ran elsewhere is undone with all above it, and a
// parked release is counted with all above it.
func TestChainUndone(t *testing.T) {
	r := newRig(t, 3, nil)
	r.chain(30, 30, 30)
	r.base = r.now.Wall
	r.wantCode(r.acquire("a", "leaf", 5, "x"), answer.OK)
	call := r.nextCall()
	r.step("b", &input.Acquire{Call: call, Entity: "leaf", Tokens: 5, Request: key("x"), Tries: r.tries(2, "a")})
	r.wantCode(r.answer(call), answer.OK)
	r.advance(1000)
	r.wantOut("a", 0, 0, 0)
	r.wantOut("b", 5, 5, 5)
	call = r.nextCall()
	r.step("b", &input.Release{Call: call, Entity: "leaf", Tokens: 2, Request: key("y"), Tries: r.tries(2, "a")})
	if a := r.answer(call); !a.Parked {
		t.Fatalf("%+v", a)
	}
	r.wantOut("b", 5, 5, 5)
	r.advance(1000)
	r.wantOut("b", 3, 3, 3)
}

// TestExhaustionAbove: when the organisation is known to have nothing, no tokens of the leaf
// are fetched in vain.
func TestExhaustionAbove(t *testing.T) {
	r := newRig(t, 3, nil)
	r.chain(90, 90, 3)
	for _, site := range r.names {
		r.wantCode(r.acquire(site, "org", 1, "all "+string(site)), answer.OK)
	}
	call := r.acquireAsync("a", "leaf", 1, "finds out", 20_000)
	r.advance(3000)
	r.wantLacking(r.answer(call), answer.OutOfTokens, "org")
	r.wantLacking(r.answer(r.acquireAsync("a", "leaf", 3, "x", 20_000)), answer.OutOfTokens, "org")
	if v := r.view("a", "leaf"); v.Waiting != 0 || v.Left != 30 {
		t.Errorf("%+v", v)
	}
}

// TestChainChanges: a waiting acquire goes by the present chain once the site learns of a
// change, change by change or by a whole snapshot.
func TestChainChanges(t *testing.T) {
	for name, whole := range map[string]bool{"one by one": false, "by a snapshot": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 3, nil)
			r.create("other", 300)
			r.chain(300, 300, 9)
			r.below("gone", "team", 300)
			r.create("old", 9)
			r.below("mover", "old", 300)
			r.cut["a"] = true
			mover := r.acquireAsync("a", "mover", 5, "mover", 10_000)
			moved := r.acquireAsync("a", "leaf", 5, "moved", 10_000)
			gone := r.acquireAsync("a", "gone", 5, "gone", 10_000)
			stays := r.acquireAsync("a", "team", 2, "stays", 10_000)
			r.unanswered(stays)
			for _, ch := range []input.Change{
				{Kind: input.MoveEntity, Name: "leaf", Parent: "other", RequestID: "move"},
				{Kind: input.DeleteEntity, Name: "gone", RequestID: "delete"},
				{Kind: input.MoveEntity, Name: "mover", Parent: "other", RequestID: "rescue"},
				{Kind: input.DeleteEntity, Name: "old", RequestID: "delete what it waits for"},
			} {
				call := r.changeAsync("b", ch)
				r.advance(1000)
				r.wantCode(r.answer(call), answer.OK)
			}
			if err := r.cores["a"].Follow(r.cores["b"], whole); err != nil {
				t.Fatal(err)
			}
			r.drain("a")
			r.wantCode(r.answer(moved), answer.OK)
			r.wantCode(r.answer(gone), answer.NotFound)
			r.view("a", "org")
			r.wantCode(r.answer(stays), answer.OK)
			r.wantCode(r.answer(mover), answer.OK)
			r.wantOut("a", 5, 2, 2)
			if v := r.view("a", "other"); v.Net != 10 {
				t.Errorf("%+v", v)
			}
		})
	}
}

// TestCancelAndStopOnChains: an acquire that waits for an ancestor is dropped like an
// acquire that waits for the entity that it names. The acquires behind it go on.
func TestCancelAndStopOnChains(t *testing.T) {
	r := newRig(t, 3, nil)
	r.chain(300, 300, 9)
	r.cut["b"], r.cut["c"] = true, true
	first := r.acquireAsync("a", "leaf", 5, "first", 10_000)
	second := r.acquireAsync("a", "leaf", 2, "second", 10_000)
	r.unanswered(second)
	r.step("a", &input.Cancel{Call: first})
	r.wantCode(r.answer(second), answer.OK)
	r.unanswered(first)
	third := r.acquireAsync("a", "leaf", 5, "third", 10_000)
	r.step("a", input.Stop{})
	r.wantCode(r.answer(third), answer.Stopping)
	r.wantOut("a", 2, 2, 2)
}

// TestOverdueDoesNotWaitElsewhere: an acquire is overdue and goes on as the hold of
// another acquire ends in the same wake. It does not begin to wait for a third entity: a
// site that was stopped for a while wakes late.
func TestOverdueDoesNotWaitElsewhere(t *testing.T) {
	r := newRig(t, 3, nil)
	r.chain(30, 90, 90)
	r.cut["a"] = true
	r.wantCode(r.acquire("a", "org", 27, "of org"), answer.OK)
	large := r.acquireAsync("a", "leaf", 20, "large", 60_000)
	held := r.acquireAsync("a", "leaf", 5, "held", 900)
	r.unanswered(held)
	if v := r.view("a", "leaf"); v.Waiting != 2 {
		t.Fatalf("%+v", v)
	}
	r.now.Tick, r.now.Wall = r.now.Tick+5000, r.now.Wall+5000
	r.cores["a"].Step(r.now, input.Wake{})
	if at := r.cores["a"].WakeAt(); at != 0 && at <= r.now.Tick {
		t.Errorf("woken at %d, it wants to be woken at %d again", r.now.Tick, at)
	}
	r.drain("a")
	r.wantLacking(r.answer(held), answer.OutOfTokens, "org")
	r.unanswered(large)
}
