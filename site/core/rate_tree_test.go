package core_test

import (
	"fmt"
	"testing"

	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
)

// grow creates entities at three sites, each below the one before, and begins a window. Each
// site has a third of each limit.
func grow(t *testing.T, levels ...input.Change) *rig {
	t.Helper()
	r := newRig(t, 3, func(c *core.Config) { c.Trigger = "reactive" })
	for i, ch := range levels {
		if ch.Kind, ch.RequestID = input.CreateEntity, id("create", i); i > 0 && ch.Parent == "" {
			ch.Parent = levels[i-1].Name
		}
		r.wantCode(r.changed("a", ch), answer.OK)
	}
	r.advance(core.Tick(60_000 - r.now.Wall%60_000))
	return r
}

// wantLevels checks the tokens out of entities at a.
func (r *rig) wantLevels(when string, net map[string]core.Tokens) {
	r.t.Helper()
	for name, want := range net {
		if v := r.view("a", name); v.Net != want {
			r.t.Errorf("%s: %d tokens of %q are out at a, want %d", when, v.Net, name, want)
		}
	}
}

// TestRatesInRates: an acquire takes tokens of all rate quotas above, or of none, and each
// has its tokens again by its own clock.
func TestRatesInRates(t *testing.T) {
	minutes := rates.Terms{Kind: rates.Window, Count: 2, Unit: rates.Minute}
	r := grow(t, input.Change{Name: "org", Limit: 60, Rate: minutes}, input.Change{Name: "team", Limit: 45, Rate: minute})
	r.advance(core.Tick(120_000 - r.now.Wall%120_000))
	r.wantCode(r.acquire("a", "team", 15, "1"), answer.OK)
	r.wantLacking(r.acquire("a", "team", 1, "2"), answer.OutOfTokens, "team")
	r.wantLevels("used", map[string]core.Tokens{"org": 15, "team": 15})
	r.advance(60_000)
	r.wantLevels("the team's next window", map[string]core.Tokens{"org": 15, "team": 0})
	r.wantLacking(r.acquire("a", "team", 6, "3"), answer.OutOfTokens, "org")
	r.wantLevels("refused", map[string]core.Tokens{"org": 15, "team": 0})
	r.wantCode(r.acquire("a", "team", 5, "4"), answer.OK)
	r.wantCode(r.release("a", "team", 5, "no release"), answer.ByClock)
	r.advance(60_000)
	r.wantLevels("the next window of both", map[string]core.Tokens{"org": 0, "team": 0})
}

// TestRateBelowAnAllocation: tokens acquired through a rate quota are out of the entity above
// until they are released, and of the rate quota until its window ends.
func TestRateBelowAnAllocation(t *testing.T) {
	r := grow(t, input.Change{Name: "jobs", Limit: 90}, input.Change{Name: "starts", Limit: 30, Rate: minute})
	r.wantCode(r.acquire("a", "starts", 10, "1"), answer.OK)
	r.wantLevels("used", map[string]core.Tokens{"jobs": 10, "starts": 10})
	r.wantCode(r.release("a", "starts", 4, "back"), answer.OK)
	r.wantLevels("released", map[string]core.Tokens{"jobs": 6, "starts": 10})
	r.advance(60_000)
	r.wantLevels("the next window", map[string]core.Tokens{"jobs": 6, "starts": 0})
	for n := range 2 {
		r.wantCode(r.acquire("a", "starts", 10, id("more", n)), answer.OK)
		r.advance(60_000)
	}
	r.wantLacking(r.acquire("a", "starts", 5, "too many jobs"), answer.OutOfTokens, "jobs")
	r.restart("a")
	r.wantLevels("started again", map[string]core.Tokens{"jobs": 26, "starts": 0})
	var cut tally
	if r.countAt("a", "jobs", &cut); cut.counted != 26 {
		t.Errorf("the count of jobs says %+v", cut)
	}
}

// TestAllocationBelowARate: a rate quota above bounds the acquires, and releases give it
// nothing back.
func TestAllocationBelowARate(t *testing.T) {
	r := grow(t, input.Change{Name: "starts", Limit: 30, Rate: minute}, input.Change{Name: "jobs", Limit: 90})
	r.wantCode(r.acquire("a", "jobs", 10, "1"), answer.OK)
	r.wantCode(r.release("a", "jobs", 10, "back"), answer.OK)
	r.wantLevels("released", map[string]core.Tokens{"jobs": 0, "starts": 10})
	r.wantLacking(r.acquire("a", "jobs", 1, "2"), answer.OutOfTokens, "starts")
	r.advance(60_000)
	r.wantCode(r.acquire("a", "jobs", 10, "3"), answer.OK)
	r.wantLevels("the next window", map[string]core.Tokens{"jobs": 10, "starts": 10})
}

// TestReserveInATree: the unused tokens of a lease come back to all levels, once, and to a
// rate quota only in the window of the grant.
func TestReserveInATree(t *testing.T) {
	hour := rates.Terms{Kind: rates.Window, Count: 1, Unit: rates.Hour}
	for _, leaf := range []rates.Terms{{}, minute, bucket} {
		for _, restart := range []bool{false, true} {
			r := grow(t, input.Change{Name: "quota", Limit: 90}, input.Change{Name: "org", Limit: 60, Rate: hour}, input.Change{Name: "team", Limit: 30, Rate: leaf})
			r.advance(core.Tick(3_600_000 - r.now.Wall%3_600_000))
			r.wantCode(r.lease("a", "team", 10, "in time", 100_000), answer.OK)
			if restart {
				r.restart("a")
			}
			r.wantLevels("reserved", map[string]core.Tokens{"quota": 10, "org": 10, "team": 10})
			if a := r.commit("a", "in time", 3, "commit"); a.Code != answer.OK || a.Tokens != 3 {
				t.Errorf("a commit says %+v", a)
			}
			team := core.Tokens(3)
			if restart && leaf.Kind == rates.Bucket {
				team = 10 // nobody knows when the tokens of a bucket were granted
			}
			r.wantLevels("settled", map[string]core.Tokens{"quota": 3, "org": 3, "team": team})
			r.advance(60_000)
			r.wantCode(r.lease("a", "team", 6, "late", 7_200_000), answer.OK)
			r.advance(3_600_000)
			r.wantCode(r.commit("a", "late", 1, "commit late"), answer.OK)
			r.wantLevels("settled late", map[string]core.Tokens{"quota": 4, "org": 0})
		}
	}
}

// TestResetInATree: a reset of a rate quota brings back no tokens of leases below.
func TestResetInATree(t *testing.T) {
	r := grow(t, input.Change{Name: "org", Limit: 60, Rate: minute}, input.Change{Name: "team", Limit: 45, Rate: minute})
	r.wantCode(r.lease("a", "team", 10, "s", 30_000), answer.OK)
	r.wantCode(r.acquire("a", "team", 3, "1"), answer.OK)
	if a := r.reset("a", "org"); a.Code != answer.OK || a.Tokens != 3 {
		t.Errorf("a reset says %+v", a)
	}
	r.wantLevels("reset", map[string]core.Tokens{"org": 10, "team": 13})
	r.wantCode(r.giveBack("a", "team", "s", 0, "back"), answer.OK)
	r.wantLevels("given back", map[string]core.Tokens{"org": 0, "team": 3})
}

// TestMovesOfRates: a rate quota keeps the lowest allocation above it. An allocation takes
// its own tokens along, and none of a rate quota's.
func TestMovesOfRates(t *testing.T) {
	r := grow(
		t, input.Change{Name: "jobs", Limit: 90}, input.Change{Name: "starts", Limit: 30, Rate: minute},
		input.Change{Name: "gpus", Limit: 30}, input.Change{Name: "hours", Limit: 30, Rate: minute, Parent: "jobs"},
	)
	r.create("other", 90)
	r.wantCode(r.acquire("a", "gpus", 2, "1"), answer.OK)
	r.wantCode(r.acquire("a", "starts", 3, "2"), answer.OK)
	for what, code := range map[[2]string]answer.Code{
		{"starts", "other"}: answer.ByClock, {"starts", ""}: answer.ByClock, {"starts", "gpus"}: answer.Looped, {"starts", "hours"}: answer.OK,
	} {
		if got := r.move("a", what[0], what[1], fmt.Sprint(what)).Code; got != code {
			t.Errorf("%s moves below %q: %v, want %v", what[0], what[1], got, code)
		}
	}
	r.wantLevels("starts is below hours", map[string]core.Tokens{"jobs": 5, "gpus": 2})
	for _, parent := range []string{"other", "hours", ""} {
		if got := r.move("a", "gpus", parent, "below "+parent).Code; got != answer.OK {
			t.Errorf("gpus moves below %q: %v", parent, got)
		}
		jobs, other := core.Tokens(3), core.Tokens(0)
		switch parent {
		case "other":
			other = 2
		case "hours":
			jobs = 5
		}
		r.wantLevels("gpus is below "+parent, map[string]core.Tokens{"jobs": jobs, "other": other, "gpus": 2, "starts": 5, "hours": 0})
	}
	r.wantCode(r.move("a", "gpus", "starts", "last"), answer.OK)
	r.wantCode(r.changed("a", input.Change{Kind: input.DeleteEntity, Name: "starts", Subtree: true, RequestID: "delete"}), answer.OK)
	r.wantLevels("starts is deleted with gpus", map[string]core.Tokens{"jobs": 3})
	r.wantCode(r.release("a", "jobs", 3, "back"), answer.OK)
}

// TestKeysBelowARate: keys of a template take tokens of the entities above, all or none.
func TestKeysBelowARate(t *testing.T) {
	for _, terms := range []rates.Terms{keyedBucket, keyedWindow} {
		r := grow(t, input.Change{Name: "org", Limit: 45, Rate: minute}, input.Change{Name: "api", Limit: 30, Rate: terms})
		r.wantCode(r.acquire("a", "api/x", 8, "1"), answer.OK)
		r.wantLevels("used", map[string]core.Tokens{"org": 8, "api/x": 8, "api/y": 0})
		r.wantLacking(r.acquire("a", "api/y", 8, "2"), answer.OutOfTokens, "org")
		r.wantLacking(r.acquire("a", "api/x", 3, "3"), answer.OutOfTokens, "api/x")
		r.wantLevels("refused", map[string]core.Tokens{"org": 8, "api/x": 8, "api/y": 0})
		call := r.nextCall()
		r.step("a", &input.Acquire{Call: call, Entity: "api/y", Tokens: 9, Least: 1, Request: key("4")})
		if a := r.answer(call); a.Code != answer.OK || a.Tokens != 7 || a.Left != 3 {
			t.Errorf("of the rest of org: %+v", a)
		}
		r.wantLevels("in part", map[string]core.Tokens{"org": 15, "api/x": 8, "api/y": 7})
		r.wantLacking(r.all("a", "5", input.Part{Entity: "api/z", Tokens: 1}, input.Part{Entity: "api/y", Tokens: 1}), answer.OutOfTokens, "org")
		r.advance(60_000)
		if a := r.all("a", "6", input.Part{Entity: "api/z", Tokens: 5}, input.Part{Entity: "org", Tokens: 2}); a.Code != answer.OK || a.Left != 5 {
			t.Errorf("a key and the entity above: %+v", a)
		}
		r.wantLevels("all", map[string]core.Tokens{"org": 7, "api/z": 5})
	}
	r := grow(t, input.Change{Name: "jobs", Limit: 90}, input.Change{Name: "starts", Limit: 30, Rate: minute})
	for _, x := range []struct {
		ch   input.Change
		want answer.Code
	}{
		{input.Change{Kind: input.CreateEntity, Name: "api", Limit: 1, Parent: "starts", Rate: keyedBucket}, answer.OfKey},
		{input.Change{Kind: input.CreateEntity, Name: "keys", Limit: 1, Rate: keyedBucket}, answer.OK},
		{input.Change{Kind: input.CreateEntity, Name: "x", Limit: 1, Parent: "keys"}, answer.OfKey},
		{input.Change{Kind: input.MoveEntity, Name: "jobs", Parent: "keys"}, answer.OfKey},
		{input.Change{Kind: input.MoveEntity, Name: "keys", Parent: "starts"}, answer.ByClock},
	} {
		x.ch.RequestID = fmt.Sprint(x.ch.Kind, x.ch.Name)
		if a := r.changed("a", x.ch); a.Code != x.want {
			t.Errorf("%+v: %v, want %v", x.ch, a.Code, x.want)
		}
	}
}

// TestNoShareBelowAParent: a holder's grants would take nothing of the entities above.
func TestNoShareBelowAParent(t *testing.T) {
	r := grow(t, input.Change{Name: "org", Limit: 60, Rate: minute}, input.Change{Name: "llm", Limit: 30, Rate: minute})
	r.wantCode(r.share("a", 3, "s", 30_000), answer.Unshareable)
	r.wantCode(r.move("a", "llm", "", "up"), answer.OK)
	r.wantCode(r.share("a", 3, "t", 30_000), answer.OK)
	r.wantCode(r.move("a", "llm", "org", "down"), answer.OK)
	r.wantCode(r.renew("a", "t", 30_000), answer.OutOfTokens)
}

// TestHeirOfATree: an heir takes over what is out of each level, once.
func TestHeirOfATree(t *testing.T) {
	r := newRig(t, 3, func(c *core.Config) { c.Trigger, c.Retention, c.Strategy = "reactive", leavingRetention, "transfer" })
	for i, ch := range []input.Change{{Name: "jobs", Limit: 90}, {Name: "starts", Limit: 60, Rate: minute, Parent: "jobs"}, {Name: "gpus", Limit: 30, Parent: "starts"}} {
		ch.Kind, ch.RequestID = input.CreateEntity, id("create", i)
		r.wantCode(r.changed("a", ch), answer.OK)
	}
	r.advance(core.Tick(60_000 - r.now.Wall%60_000))
	r.wantCode(r.acquire("b", "gpus", 2, "1"), answer.OK)
	r.wantCode(r.acquire("b", "starts", 3, "2"), answer.OK)
	r.wantCode(r.lease("b", "starts", 4, "s", 600_000), answer.OK)
	r.advance(60_000)
	r.loses = func(e *message.Envelope) bool { return e.Handoff != nil && e.Entity == "starts" }
	r.drainSite("a", "b", "a")
	r.advance(70_000)
	if v := r.view("a", "starts"); v.Left != 20 || v.Net != 0 || r.view("a", "gpus").Net != 2 {
		t.Errorf("before a has inherited any of its tokens: %+v", v)
	}
	r.loses = nil
	r.advance(20_000)
	r.wantLevels("inherited", map[string]core.Tokens{"jobs": 9, "gpus": 2})
	r.advance(120_000)
	r.wantLevels("the window after the next", map[string]core.Tokens{"jobs": 9, "starts": 0, "gpus": 2})
	for entity, limit := range map[string]core.Tokens{"jobs": 90, "starts": 60, "gpus": 30} {
		a, c := r.view("a", entity), r.view("c", entity)
		if a.Left+a.Net+c.Left+c.Net != limit {
			t.Errorf("%s: %+v, %+v", entity, a, c)
		}
	}
	r.wantCode(r.giveBack("a", "starts", "s", 0, "back"), answer.OK)
	r.wantLevels("the lease is given back", map[string]core.Tokens{"jobs": 5, "starts": 0, "gpus": 2})
}

// TestLeaseMovesToARate: tokens of a lease do not come back to a rate quota that never
// granted them.
func TestLeaseMovesToARate(t *testing.T) {
	r := grow(t, input.Change{Name: "starts", Limit: 30, Rate: minute})
	r.create("jobs", 90)
	r.wantCode(r.lease("a", "jobs", 4, "s", 600_000), answer.OK)
	r.wantCode(r.move("a", "jobs", "starts", "move"), answer.OK)
	r.wantCode(r.acquire("a", "jobs", 5, "1"), answer.OK)
	r.wantCode(r.giveBack("a", "jobs", "s", 0, "back"), answer.OK)
	r.wantLevels("given back", map[string]core.Tokens{"jobs": 5, "starts": 5})
}

// TestReserveBelowABucket: tokens of a lease that was granted before its entity came below a
// bucket, or in another life, do not come back there. Nobody knows when they were granted.
func TestReserveBelowABucket(t *testing.T) {
	for what, between := range map[string]func(r *rig){
		"a move":  func(r *rig) { r.wantCode(r.move("a", "jobs", "calls", "back below"), answer.OK) },
		"a start": func(r *rig) { r.restart("a") },
	} {
		r := grow(t, input.Change{Name: "calls", Limit: 30, Rate: bucket}, input.Change{Name: "jobs", Limit: 90})
		if what == "a move" {
			r.wantCode(r.move("a", "jobs", "", "up"), answer.OK)
		}
		r.wantCode(r.lease("a", "jobs", 4, "s", 600_000), answer.OK)
		between(r)
		r.advance(40_000)
		r.wantCode(r.acquire("a", "jobs", 5, "1"), answer.OK)
		out := r.view("a", "calls").Net
		r.wantCode(r.giveBack("a", "jobs", "s", 0, "back"), answer.OK)
		r.wantLevels("given back after "+what, map[string]core.Tokens{"jobs": 5, "calls": out})
	}
}
