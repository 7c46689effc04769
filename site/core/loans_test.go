package core_test

import (
	"testing"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/policy"
)

// minority has five sites. Only a and b are left, each with a thousand tokens of its own.
func minority(t *testing.T, tweak func(*core.Config)) *rig {
	t.Helper()
	r := newRig(t, 5, func(c *core.Config) {
		c.Protocol = "auto"
		tweak(c)
	})
	r.create("e", 5000)
	r.advance(5000)
	for _, name := range r.names[2:] {
		r.cut[name] = true
	}
	r.step("a", input.Reachable{Sites: []core.SiteID{"b"}})
	r.step("b", input.Reachable{Sites: []core.SiteID{"a"}})
	return r
}

// strategies runs a test with direct transfers and without.
func strategies(t *testing.T, f func(t *testing.T, tweak func(*core.Config))) {
	t.Helper()
	for _, s := range policy.StrategyNames() {
		t.Run(s, func(t *testing.T) { f(t, func(c *core.Config) { c.Strategy = s }) })
	}
}

// TestLoans: without a majority a site borrows the tokens that it needs. It gives back
// all beyond its own once they are free again.
func TestLoans(t *testing.T) {
	strategies(t, func(t *testing.T, tweak func(*core.Config)) {
		t.Helper()
		r := minority(t, tweak)
		r.wantCode(r.acquire("b", "e", 1, "busy"), answer.OK) // keeps b peering
		borrowed := r.acquireAsync("a", "e", 1300, "burst", 5000)
		r.advance(2000)
		r.wantCode(r.answer(borrowed), answer.OK)
		if v := r.view("b", "e"); v.Left > 700 {
			t.Fatalf("b has %d left, after a took 1300", v.Left)
		}
		r.wantCode(r.release("a", "e", 1300, "back"), answer.OK)
		r.advance(8000)
		a, b := r.view("a", "e"), r.view("b", "e")
		if a.Left < 980 || a.Left > 1020 || a.Left+b.Left != 1999 {
			t.Errorf("a has %d left and b %d, of a thousand each", a.Left, b.Left)
		}
	})
}

// TestNothingIsGivenBackThatIsNeeded: tokens that are out at the borrower stay there.
func TestNothingIsGivenBackThatIsNeeded(t *testing.T) {
	strategies(t, func(t *testing.T, tweak func(*core.Config)) {
		t.Helper()
		r := minority(t, tweak)
		borrowed := r.acquireAsync("a", "e", 1300, "burst", 5000)
		r.advance(2000)
		r.wantCode(r.answer(borrowed), answer.OK)
		begun := total(r.begun())
		for i := range 20 {
			r.wantCode(r.acquire("b", "e", 1, id("busy", i)), answer.OK)
			r.advance(500)
		}
		if a := r.view("a", "e"); a.Net != 1300 || a.Left < 0 {
			t.Errorf("a has %d out and %d left", a.Net, a.Left)
		}
		if n := total(r.begun()) - begun; n > 4 {
			t.Errorf("%d redistributions for what nobody can spare: %v", n, r.begun())
		}
	})
}

// TestAMinorityDoesNotRefuse: without a majority nobody can know that there are no
// tokens. Acquires wait as long as they may, and released tokens go to them.
func TestAMinorityDoesNotRefuse(t *testing.T) {
	strategies(t, func(t *testing.T, tweak func(*core.Config)) {
		t.Helper()
		r := minority(t, tweak)
		r.wantCode(r.acquire("a", "e", 1000, "all of a"), answer.OK)
		r.wantCode(r.acquire("b", "e", 1000, "all of b"), answer.OK)
		first := r.acquireAsync("a", "e", 900, "first", 60_000)
		r.advance(20_000)
		second := r.acquireAsync("a", "e", 7, "second", 30_000)
		third := r.acquireAsync("a", "e", 1, "third", 30_000)
		r.advance(20_000)
		r.unanswered(first)
		begun := total(r.begun())
		r.advance(10_000)
		if n := total(r.begun()) - begun; n > 2 {
			t.Errorf("%d redistributions in 10 s for what nobody has: %v", n, r.begun())
		}
		r.wantCode(r.release("b", "e", 903, "back"), answer.OK)
		r.advance(9000)
		r.wantCode(r.answer(first), answer.OK)
		r.advance(2000)
		r.wantCode(r.answer(second), answer.OutOfTokens)
		r.wantCode(r.answer(third), answer.OutOfTokens)
	})
}

// TestAMajorityEndsLoans: once a majority is there, the tokens of all sites are shared
// out again, and an acquire of more is refused.
func TestAMajorityEndsLoans(t *testing.T) {
	strategies(t, func(t *testing.T, tweak func(*core.Config)) {
		t.Helper()
		r := minority(t, tweak)
		r.wantCode(r.acquire("b", "e", 1000, "all of b"), answer.OK)
		waits := r.acquireAsync("a", "e", 4500, "more than there is", 60_000)
		r.advance(20_000)
		r.unanswered(waits)
		for _, name := range r.names {
			delete(r.cut, name)
		}
		for _, name := range r.names {
			r.step(name, input.Reachable{Sites: r.names})
		}
		r.advance(20_000)
		r.wantCode(r.answer(waits), answer.OutOfTokens)
		r.wantCode(r.answer(r.acquireAsync("a", "e", 4000, "all there is", 60_000)), answer.OK)
	})
}
