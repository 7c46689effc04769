package core_test

import (
	"slices"
	"testing"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
)

// grove is a cluster with its first site cut off for a while. Instances that begin there
// do not end, but the site learns of changes that others decide.
type grove struct {
	*rig
	leader *rig
	// whole says that it learns of changes by a snapshot.
	whole bool
}

// inGroves runs a story where the site learns of each change by itself, and where it
// installs a snapshot. org has two entities below it: q, and p with a third of 30 tokens
// at the site. e stands below p.
func inGroves(t *testing.T, story func(t *testing.T, g *grove)) {
	t.Helper()
	for name, whole := range map[string]bool{"one by one": false, "at once": true} {
		t.Run(name, func(t *testing.T) {
			g := &grove{rig: newRig(t, 3, nil), leader: newRig(t, 1, nil), whole: whole}
			g.advance(1000)
			g.grow("org", "", 300)
			g.grow("p", "org", 30)
			g.grow("q", "org", 300)
			g.grow("e", "p", 300)
			g.cut["a"] = true
			story(t, g)
		})
	}
}

// decide has all sites apply a change.
func (g *grove) decide(ch input.Change) {
	g.t.Helper()
	ch.RequestID = id("change", g.nextCall())
	g.wantCode(g.leader.changed("a", ch), answer.OK)
	for _, site := range g.names {
		if err := g.cores[site].Follow(g.leader.cores["a"], g.whole); err != nil {
			g.t.Fatal(err)
		}
		g.drain(site)
	}
}

func (g *grove) grow(name, parent string, limit core.Tokens) {
	g.t.Helper()
	g.decide(input.Change{Kind: input.CreateEntity, Name: name, Parent: parent, Limit: limit})
}

func (g *grove) moveBelow(name, parent string) {
	g.t.Helper()
	g.decide(input.Change{Kind: input.MoveEntity, Name: name, Parent: parent})
}

func (g *grove) fell(name string) {
	g.t.Helper()
	g.decide(input.Change{Kind: input.DeleteEntity, Name: name, Subtree: true})
}

// waits has an acquire wait, for as long as the story takes.
func (g *grove) waits(entity string, tokens core.Tokens) input.Call {
	g.t.Helper()
	call := g.acquireAsync("a", entity, tokens, id("wait", g.nextCall()), 60_000)
	g.unanswered(call)
	return call
}

// out compares the tokens out at the first site.
func (g *grove) out(want map[string]core.Tokens) {
	g.t.Helper()
	for name, net := range want {
		if v := g.view("a", name); v.Net != net {
			g.t.Errorf("%s: %d out, want %d", name, v.Net, net)
		}
	}
}

// TestMovesOfWhatWaits: an acquire that waits for an entity no longer above its own gets
// tokens of the new ancestors. An acquire that waits for another entity stays where it
// is.
func TestMovesOfWhatWaits(t *testing.T) {
	inGroves(t, func(_ *testing.T, g *grove) {
		g.wantCode(g.acquire("a", "e", 8, "1"), answer.OK)
		ofE := g.waits("e", 7)
		behind := g.waits("p", 9)
		g.moveBelow("e", "q")
		g.wantCode(g.answer(ofE), answer.OK)
		g.wantCode(g.answer(behind), answer.OK)
		g.out(map[string]core.Tokens{"e": 15, "p": 9, "q": 15, "org": 24})
		// Nothing is left for the acquire below p: it waits there, and goes on when e
		// leaves.
		g.moveBelow("e", "p")
		again := g.waits("e", 3)
		g.moveBelow("q", "p")
		g.unanswered(again)
		g.moveBelow("e", "")
		g.wantCode(g.answer(again), answer.OK)
		g.out(map[string]core.Tokens{"e": 18, "p": 9, "q": 0, "org": 9})
		tooMuch := g.waits("e", 90)
		g.moveBelow("e", "org")
		g.unanswered(tooMuch)
		g.fell("e")
		g.wantCode(g.answer(tooMuch), answer.NotFound)
	})
}

// TestDeletionsOfWhatWaits: an acquire of a deleted entity is answered, wherever it
// waits. The deleted entity's tokens are there for others.
func TestDeletionsOfWhatWaits(t *testing.T) {
	inGroves(t, func(_ *testing.T, g *grove) {
		g.wantCode(g.acquire("a", "q", 92, "1"), answer.OK)
		g.wantCode(g.acquire("a", "e", 8, "2"), answer.OK)
		g.grow("f", "p", 6)
		atOrg, atP, atF := g.waits("e", 1), g.waits("e", 5), g.waits("f", 3)
		other := g.waits("q", 8)
		limit := g.changeAsync("a", input.Change{Kind: input.SetLimit, Name: "e", Limit: 5, RequestID: "l", Wait: 60_000})
		g.unanswered(limit)
		g.fell("p")
		for _, call := range []input.Call{atOrg, atP, atF, limit} {
			g.wantCode(g.answer(call), answer.NotFound)
		}
		g.wantCode(g.answer(other), answer.OK)
		g.out(map[string]core.Tokens{"q": 100, "org": 100})
		if s := g.cores["a"].Status(); s.Waiting != 0 || s.Entities != 2 {
			g.t.Errorf("%+v", s)
		}
	})
}

// TestMovesDuringLimitChanges: a limit change under way is decided after a move as
// before.
func TestMovesDuringLimitChanges(t *testing.T) {
	inGroves(t, func(_ *testing.T, g *grove) {
		g.wantCode(g.acquire("a", "e", 8, "1"), answer.OK)
		ofP := g.changeAsync("a", input.Change{Kind: input.SetLimit, Name: "p", Limit: 60, RequestID: "p", Wait: 60_000})
		ofE := g.changeAsync("a", input.Change{Kind: input.SetLimit, Name: "e", Limit: 30, RequestID: "e", Wait: 60_000})
		g.moveBelow("e", "q")
		g.unanswered(ofP)
		g.cut["a"] = false
		g.advance(20_000)
		g.wantCode(g.answer(ofP), answer.OK)
		g.wantCode(g.answer(ofE), answer.OK)
		for name, want := range map[string][2]core.Tokens{"p": {60, 0}, "q": {292, 8}, "e": {22, 8}, "org": {292, 8}} {
			if left, offered, net := g.books(name); left+offered != want[0] || net != want[1] {
				g.t.Errorf("%s: %d left, %d offered, %d out, want %v", name, left, offered, net, want)
			}
		}
	})
}

// TestMovesOfLeases: a lease that ends gives its tokens back to the present ancestors of
// its entity.
func TestMovesOfLeases(t *testing.T) {
	inGroves(t, func(_ *testing.T, g *grove) {
		for _, name := range []string{"e", "p"} {
			call := g.nextCall()
			g.step("a", &input.Acquire{
				Call: call, Entity: name, Tokens: 4, Request: key(name), Lease: &input.LeaseTerms{ID: name, TTL: 5000},
			})
			g.wantCode(g.answer(call), answer.OK)
		}
		g.out(map[string]core.Tokens{"e": 4, "p": 8, "q": 0, "org": 8})
		g.moveBelow("e", "q")
		g.out(map[string]core.Tokens{"e": 4, "p": 4, "q": 4, "org": 8})
		g.fell("p")
		g.out(map[string]core.Tokens{"e": 4, "q": 4, "org": 4})
		g.advance(6000)
		g.out(map[string]core.Tokens{"e": 0, "q": 0, "org": 0})
		if s := g.cores["a"].Status(); s.Leases != 0 {
			g.t.Errorf("%+v", s)
		}
	})
}

// TestMovesOfParkedReleases: a release that is counted later counts for the present
// ancestors of its entity, and for none once the entity is deleted.
func TestMovesOfParkedReleases(t *testing.T) {
	inGroves(t, func(_ *testing.T, g *grove) {
		for _, name := range []string{"e", "p"} {
			g.wantCode(g.acquire("a", name, 4, name), answer.OK)
			call := g.nextCall()
			g.step("a", &input.Release{
				Call: call, Entity: name, Tokens: 3, Request: key("back " + name),
				Tries: input.Tries{Attempt: attempt.Of(2, 0), Tried: []core.SiteID{"b"}, NotAfter: g.now.Wall + 60_000},
			})
			if a := g.answer(call); a.Code != answer.OK || !a.Parked {
				g.t.Errorf("%+v", a)
			}
		}
		g.moveBelow("e", "q")
		g.fell("p")
		g.out(map[string]core.Tokens{"e": 4, "q": 4, "org": 4})
		g.cut["a"] = false
		g.advance(60_000)
		g.out(map[string]core.Tokens{"e": 1, "q": 1, "org": 1})
		if s := g.cores["a"].Status(); s.Claims != 0 {
			g.t.Errorf("%+v", s)
		}
	})
}

// TestAuditsDuringMoves: honest clients leave no surplus behind, also while a move has
// reached some sites only, or reaches a site between two steps of an audit.
func TestAuditsDuringMoves(t *testing.T) {
	begin := func(t *testing.T, at ...core.SiteID) (r *rig, follow func(site core.SiteID)) {
		t.Helper()
		r, leader := newRig(t, 3, nil), newRig(t, 1, nil)
		r.advance(1000)
		follow = func(site core.SiteID) {
			t.Helper()
			if err := r.cores[site].Follow(leader.cores["a"], false); err != nil {
				t.Fatal(err)
			}
			r.drain(site)
		}
		leader.create("p", 300)
		leader.create("e", 300)
		for _, site := range r.names {
			follow(site)
		}
		r.wantCode(r.acquire("b", "e", 20, "1"), answer.OK)
		r.wantCode(r.release("a", "e", 20, "2"), answer.OK)
		r.wantCode(leader.move("a", "e", "p", "m"), answer.OK)
		for _, site := range at {
			follow(site)
		}
		return r, follow
	}
	end := func(t *testing.T, r *rig) {
		t.Helper()
		r.advance(10_000)
		if n := r.count(event.SurplusFound); n != 0 {
			t.Errorf("a surplus was found %d times", n)
		}
		if v := r.view("c", "p"); v.Surplus != 0 {
			t.Errorf("%+v", v)
		}
	}
	t.Run("some sites", func(t *testing.T) {
		r, _ := begin(t, "a", "c")
		r.cores["c"].Audit("p")
		r.drain("c")
		end(t, r)
	})
	t.Run("after restarts", func(t *testing.T) {
		r, _ := begin(t, "a", "c")
		r.restart("a")
		r.restart("c")
		r.advance(2000)
		r.cores["c"].Audit("p")
		r.drain("c")
		end(t, r)
	})
	t.Run("between two steps", func(t *testing.T) {
		r, follow := begin(t, "a", "c")
		r.cores["c"].Audit("p")
		r.drain("c")
		r.advance(2*flight + 1)
		read := slices.IndexFunc(r.sent, func(e message.Envelope) bool {
			return e.Audit != nil && e.Audit.Step == message.AuditRead && e.To() == "b"
		})
		late := r.sent[read]
		r.cut["b"] = true
		r.advance(2 * flight)
		delete(r.cut, "b")
		r.wantCode(r.acquire("a", "e", 20, "3"), answer.OK)
		r.wantCode(r.release("b", "e", 20, "4"), answer.OK)
		follow("b")
		r.step("b", input.Deliver{From: "c", Messages: []message.Envelope{late}})
		end(t, r)
	})
}
