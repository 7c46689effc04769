package core_test

import (
	"testing"

	"github.com/samya-db/samya/avantan/handoff"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
)

// TestAnHeirOwesNothing: all tokens of a tree are out, and the heir has none left. It takes
// the leaver's tokens out, and falls into no debt that could be lost with it: neither in the
// entity nor above.
func TestAnHeirOwesNothing(t *testing.T) {
	r := newLeavingRig(t, 4)
	r.create("e", 100)
	call := r.changeAsync("a", input.Change{Kind: input.CreateEntity, Name: "e/low", Parent: "e", Limit: 100, RequestID: "low"})
	r.advance(2000)
	r.wantCode(r.answer(call), answer.OK)
	call = r.acquireAsync("d", "e/low", 100, "all", 10_000)
	r.advance(10_000)
	r.wantCode(r.answer(call), answer.OK)
	r.drainSite("b", "d", "a")
	for r.state("b", "d") != "gone" {
		r.advance(10)
		for _, entity := range []string{"e", "e/low"} {
			for _, site := range []core.SiteID{"a", "d"} {
				if v, err := r.find(site, entity); err == nil && v.Left < 0 {
					t.Fatalf("%s owes: %+v", site, v)
				}
			}
		}
	}
	if v := r.view("a", "e"); v.Net != 100 || v.Left != 0 {
		t.Fatalf("the heir has %+v", v)
	}
	// The heir is lost with all tokens out.
	r.cut["a"] = true
	r.loseSite("b", "a")
	r.advance(20_000)
	r.wantCode(r.release("b", "e/low", 100, "back"), answer.OK)
	r.names = []core.SiteID{"b", "c"}
	r.advance(3 * leavingRetention)
	if left, _, net := r.books("e"); left != 100 || net != -100 {
		t.Errorf("%d left, %d out: all were written off, and came back once", left, net)
	}
}

// TestALeaseOfALostHeir: an heir is lost, and may have taken a lease. The leaver forgets the
// lease, and its tokens stay out: they may have come back at the heir.
func TestALeaseOfALostHeir(t *testing.T) {
	for name, kind := range map[string]handoff.Kind{"taken": handoff.Ack, "not taken": handoff.Bequeath} {
		t.Run(name, func(t *testing.T) {
			r := newLeavingRig(t, 4)
			r.create("e", 400)
			r.lendAt("d", 40, 600_000)
			r.drainSite("b", "d", "a")
			// The first bequest has the tokens left. The lease has to wait for the second one.
			r.advance(leavingRetention / 2)
			r.loses = func(e *message.Envelope) bool { return e.Handoff != nil && e.Handoff.Kind == kind }
			r.advance(2 * leavingRetention)
			if a, d := r.cores["a"].Status(), r.cores["d"].Status(); d.Leases != 1 || (a.Leases == 1) != (kind == handoff.Ack) {
				t.Fatalf("a: %+v; d: %+v", a, d)
			}
			r.loseHeir("b", "d", "a")
			for _, site := range r.names {
				if s := r.cores[site].Status(); s.Leases != 0 {
					t.Errorf("%s has %d leases", site, s.Leases)
				}
			}
			r.advance(600_000)
			v := r.view("b", "e")
			if left, offered, net := r.books("e"); net != 40 || left+offered+net+v.WrittenOff != 400 {
				t.Errorf("%d left, %d offered, %d out, %d written off", left, offered, net, v.WrittenOff)
			}
		})
	}
}

// TestNothingMovesBelowWhileASiteHandsOver: two sites count the tokens out of an open
// bequest, and would both move them with the entity. So entities stay where they are, also
// after the drain is cancelled, until the last bequest is closed.
func TestNothingMovesBelowWhileASiteHandsOver(t *testing.T) {
	r := newLeavingRig(t, 4)
	r.create("e", 400)
	r.create("root", 400)
	r.create("spare", 400)
	call := r.changeAsync("a", input.Change{Kind: input.CreateEntity, Name: "e/low", Parent: "e", Limit: 200, RequestID: "low"})
	r.advance(2000)
	r.wantCode(r.answer(call), answer.OK)
	r.wantCode(r.acquire("d", "e/low", 30, "low out"), answer.OK)
	changes := 0
	change := func(ch input.Change, want answer.Code) answer.Answer {
		t.Helper()
		changes++
		ch.RequestID = string(rune('0' + changes))
		call := r.changeAsync("b", ch)
		r.advance(2000)
		a := r.answer(call)
		r.wantCode(a, want)
		return a
	}
	move := input.Change{Kind: input.MoveEntity, Name: "e/low", Parent: "root"}
	cut := input.Change{Kind: input.DeleteEntity, Name: "e/low"}
	handsOver := func(a answer.Answer) {
		t.Helper()
		if m := a.Members().Sites; len(m) != 1 || m[0].Site != "d" {
			t.Errorf("%+v does not name the site", a)
		}
	}

	// The heir takes the bequest, and the leaver does not hear so.
	r.loses = func(e *message.Envelope) bool { return e.Handoff != nil && e.Handoff.Kind == handoff.Ack }
	r.drainSite("b", "d", "a")
	r.advance(10_000)
	if v := r.view("a", "e/low"); v.Net != 30 {
		t.Fatalf("the heir has %+v", v)
	}
	handsOver(change(move, answer.Changing))
	handsOver(change(cut, answer.Changing))
	change(input.Change{Kind: input.MoveEntity, Name: "e/low", Parent: "e"}, answer.OK)
	change(input.Change{Kind: input.KeepSite, Name: "d"}, answer.OK)
	r.advance(10_000)
	handsOver(change(move, answer.Changing))
	handsOver(change(cut, answer.Changing))
	change(input.Change{Kind: input.DrainSite, Name: "c"}, answer.Changing)
	change(input.Change{Kind: input.DeleteEntity, Name: "spare"}, answer.OK)
	if m := r.members("b", "d"); m.State != "member" || !m.Unsettled {
		t.Errorf("d is %+v", m)
	}

	r.loses = nil
	r.advance(20_000)
	if m := r.members("b", "d"); m.Unsettled {
		t.Fatalf("d is %+v", m)
	}
	change(move, answer.OK)
	for entity, out := range map[string]core.Tokens{"e": 0, "e/low": 30, "root": 30} {
		if left, offered, net := r.books(entity); net != out || left+offered+net != r.view("a", entity).Limit {
			t.Errorf("%s: %d left, %d offered, %d out", entity, left, offered, net)
		}
	}
	change(input.Change{Kind: input.DrainSite, Name: "d"}, answer.OK)
	r.advance(3 * leavingRetention)
	if s := r.state("a", "d"); s != "gone" {
		t.Errorf("d is %q", s)
	}
}

// TestAnEarlierCancelledDrain: the end of a cancelled drain is decided late, once the site was
// drained and kept again. It says nothing about the later drain.
func TestAnEarlierCancelledDrain(t *testing.T) {
	r := newLeavingRig(t, 3)
	r.create("e", 300)
	r.wantCode(r.acquire("c", "e", 50, "out"), answer.OK)
	r.loses = func(e *message.Envelope) bool { return e.Handoff != nil && e.Handoff.Kind == handoff.Ack }
	r.drainSite("b", "c", "a")
	r.advance(10_000)
	call := r.changeAsync("a", input.Change{Kind: input.KeepSite, Name: "c", RequestID: "keep"})
	r.advance(2000)
	r.wantCode(r.answer(call), answer.OK)
	late := r.changeAsync("a", input.Change{Kind: input.SettleSite, Name: "c", Expected: 1, RequestID: "late"})
	r.advance(2000)
	r.wantCode(r.answer(late), answer.Mismatch)
	if m := r.members("b", "c"); !m.Unsettled {
		t.Errorf("c is %+v", m)
	}
}
