package core_test

import (
	"testing"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/policy"
)

// variants runs a test under each protocol with each strategy.
func variants(t *testing.T, test func(t *testing.T, choose func(*core.Config))) {
	t.Helper()
	for _, protocol := range policy.ProtocolNames() {
		for _, strategy := range policy.StrategyNames() {
			t.Run(protocol+" "+strategy, func(t *testing.T) {
				test(t, func(c *core.Config) { c.Protocol, c.Strategy = protocol, strategy })
			})
		}
	}
}

func balanced(t *testing.T, r *rig, limit, out core.Tokens) {
	t.Helper()
	left, offered, net := r.books("acme/vm")
	if left+net != limit || offered != 0 || net != out {
		t.Errorf("left %d, offered %d, out %d; want %d out of %d and nothing set aside", left, offered, net, out, limit)
	}
}

// TestAHungrySiteGetsWhatThereIs asks a site for tokens that the others hold: for half of
// them, then for all the rest, then for one more.
func TestAHungrySiteGetsWhatThereIs(t *testing.T) {
	variants(t, func(t *testing.T, choose func(*core.Config)) {
		t.Helper()
		r := newRig(t, 5, choose)
		r.create("acme/vm", 500)
		first := r.acquireAsync("a", "acme/vm", 250, "half", 20_000)
		r.advance(20_000)
		r.wantCode(r.answer(first), answer.OK)
		rest := r.acquireAsync("b", "acme/vm", 250, "rest", 20_000)
		r.advance(20_000)
		r.wantCode(r.answer(rest), answer.OK)
		more := r.acquireAsync("c", "acme/vm", 1, "more", 20_000)
		r.advance(10_000)
		r.wantCode(r.answer(more), answer.OutOfTokens)
		balanced(t, r, 500, 500)
		r.wantCode(r.release("d", "acme/vm", 30, "back"), answer.OK)
		r.advance(10_000)
		again := r.acquireAsync("c", "acme/vm", 30, "again", 20_000)
		r.advance(20_000)
		r.wantCode(r.answer(again), answer.OK)
		balanced(t, r, 500, 500)
	})
}

// TestRestartsWithinAnInstance restarts every site at a time when slices are set aside:
// the slices are still set aside, and come back.
func TestRestartsWithinAnInstance(t *testing.T) {
	variants(t, func(t *testing.T, choose func(*core.Config)) {
		t.Helper()
		for after := core.Tick(0); after <= 80; after += 5 {
			r := newRig(t, 5, choose)
			r.create("acme/vm", 500)
			r.acquireAsync("a", "acme/vm", 250, "half", 20_000)
			r.advance(after)
			left, offered, net := r.books("acme/vm")
			for _, name := range r.names {
				r.restart(name)
			}
			r.net = nil
			left2, offered2, net2 := r.books("acme/vm")
			if left != left2 || offered != offered2 || net != net2 {
				t.Errorf("after %d ms: %d left, %d set aside, %d out; restarted %d, %d, %d",
					after, left, offered, net, left2, offered2, net2)
			}
			r.advance(60_000)
			balanced(t, r, 500, r.view("a", "acme/vm").Net)
		}
	})
}

// TestStopAnswersWhoWaits tells a site to stop while acquires wait there: nothing was
// done for them, and their ids are free.
func TestStopAnswersWhoWaits(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("acme/vm", 30)
	r.cut["b"], r.cut["c"] = true, true
	waiting := r.acquireAsync("a", "acme/vm", 20, "waiting", 20_000)
	r.advance(100)
	r.unanswered(waiting)
	r.step("a", input.Stop{})
	r.wantCode(r.answer(waiting), answer.Stopping)
	late := r.acquireAsync("a", "acme/vm", 20, "late", 20_000)
	r.wantCode(r.answer(late), answer.Stopping)
	r.restart("a")
	r.cut["b"], r.cut["c"] = false, false
	again := r.acquireAsync("a", "acme/vm", 20, "waiting", 20_000)
	r.advance(20_000)
	r.wantCode(r.answer(again), answer.OK)
}

// TestEntitiesAreBounded creates entities up to the bound of a site.
func TestEntitiesAreBounded(t *testing.T) {
	r := newRig(t, 3, func(c *core.Config) { c.MaxEntities = 2 })
	r.create("acme/a", 1)
	r.create("acme/b", 1)
	r.wantCode(r.change("a", input.CreateEntity, "acme/c", 1, "third"), answer.Overloaded)
	r.wantCode(r.change("a", input.DeleteEntity, "acme/a", 0, "delete"), answer.OK)
	r.wantCode(r.change("a", input.CreateEntity, "acme/c", 1, "third"), answer.OK)
}

// TestAStarInstanceDoesNotEndAProposal has a limit change under way, which two sites of
// five cannot decide, while a star instance between the two is applied. The change may
// still be proposed, so that it has no outcome until the first phase has ended.
func TestAStarInstanceDoesNotEndAProposal(t *testing.T) {
	r := newRig(t, 5, func(c *core.Config) { c.Protocol, c.Strategy = "star", "instance" })
	r.create("acme/vm", 500)
	r.cut["c"], r.cut["d"], r.cut["e"] = true, true, true
	for _, name := range []core.SiteID{"a", "b"} {
		r.step(name, input.Reachable{Sites: []core.SiteID{"a", "b"}})
	}
	change := r.changeAsync("a", input.Change{Kind: input.SetLimit, Name: "acme/vm", Limit: 600, RequestID: "raise", Wait: 200})
	acquire := r.acquireAsync("a", "acme/vm", 103, "more", 5000)
	r.advance(150)
	r.wantCode(r.answer(acquire), answer.OK)
	r.advance(200)
	r.unanswered(change)
	r.advance(1000)
	r.wantCode(r.answer(change), answer.NoQuorum)
}
