package core_test

import (
	"testing"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

// decideUnheard has site c propose a change and cuts c off after it has sent the value:
// the others decide the change, and c does not hear of it.
func (r *rig) decideUnheard(ch input.Change) input.Call {
	r.t.Helper()
	call := r.changeAsync("c", ch)
	entity := ""
	if ch.Kind == input.SetLimit {
		entity = ch.Name
	}
	proposed := func() bool {
		for _, e := range r.sent {
			if e.Entity == entity && e.From() == "c" && e.Message.Kind == avantan.Accept {
				return true
			}
		}
		return false
	}
	for range 200 {
		if r.advance(1); proposed() {
			break
		}
	}
	r.advance(flight - 1)
	kept := r.net[:0]
	for _, s := range r.net {
		if s.e.To() != "c" {
			kept = append(kept, s)
		}
	}
	r.net = kept
	r.advance(2)
	r.cut["c"] = true
	r.reach("a", "b")
	r.advance(3500)
	r.unanswered(call)
	return call
}

// reach tells each given site that it can reach the other given sites.
func (r *rig) reach(sites ...core.SiteID) {
	for _, s := range sites {
		r.step(s, input.Reachable{Sites: sites})
	}
}

func (r *rig) rejoin() {
	r.cut["c"] = false
	r.reach(r.names...)
}

// TestLimitChangeRunsOnce: a change that was decided while its proposer was cut off is
// not proposed again, however many changes have followed.
func TestLimitChangeRunsOnce(t *testing.T) {
	for _, expected := range []uint64{0, 1} {
		r := newRig(t, 3, nil)
		r.create("x", 900)
		call := r.decideUnheard(input.Change{Kind: input.SetLimit, Name: "x", Limit: 300, RequestID: "limit-300", Expected: expected, Wait: 10_000})
		if v := r.view("a", "x"); v.Limit != 300 {
			t.Fatalf("the change is not decided: %+v", v)
		}
		for i := range 17 {
			ch := r.changeAsync("a", input.Change{Kind: input.SetLimit, Name: "x", Limit: core.Tokens(1000 + 100*i), RequestID: id("raise", i)})
			r.advance(60)
			r.wantCode(r.answer(ch), answer.OK)
		}
		r.rejoin()
		r.advance(10_000)
		r.wantCode(r.answer(call), answer.OK)
		for _, s := range r.names {
			if v := r.view(s, "x"); v.Limit != 2600 || v.Version != 19 {
				t.Errorf("%s: limit %d, version %d; want the 17th change that followed", s, v.Limit, v.Version)
			}
		}
		// A repeat at another site gets the first answer.
		again := r.changeAsync("b", input.Change{Kind: input.SetLimit, Name: "x", Limit: 300, RequestID: "limit-300", Expected: expected})
		r.advance(100)
		if a := r.answer(again); a.Code != answer.OK || a.View().Limit != 300 {
			t.Errorf("the repeat: %+v", a)
		}
	}
}

// TestDeletionRunsOnce: a deletion that was decided while its proposer was cut off does
// not delete the next entity of that name, however many changes have followed.
func TestDeletionRunsOnce(t *testing.T) {
	r := newRig(t, 3, func(c *core.Config) { c.KeepChanges = 1 })
	r.create("x", 900)
	call := r.decideUnheard(input.Change{Kind: input.DeleteEntity, Name: "x", RequestID: "delete-1", Wait: 10_000})
	if _, err := r.find("a", "x"); err == nil {
		t.Fatal("x is not deleted at a")
	}
	r.wantCode(r.change("a", input.CreateEntity, "x", 500, "create x again"), answer.OK)
	for i := range 4200 {
		r.changeAsync("b", input.Change{Kind: input.CreateEntity, Name: id("other", i), Limit: 10, RequestID: id("create", i), Wait: 10_000})
	}
	r.advance(1200)
	r.rejoin()
	r.advance(7000)
	r.wantCode(r.answer(call), answer.OK)
	for _, s := range r.names {
		if v, err := r.find(s, "x"); err != nil || v.Limit != 500 {
			t.Errorf("%s: the next entity of the name: %+v, %v", s, v, err)
		}
	}
	again := r.changeAsync("a", input.Change{Kind: input.DeleteEntity, Name: "x", RequestID: "delete-1"})
	r.advance(1000)
	r.wantCode(r.answer(again), answer.OK)
	if _, err := r.find("a", "x"); err != nil {
		t.Error("the repeat has deleted the next entity of the name")
	}
}

// TestDeletionMeansWhatItsSiteKnows: a deletion that names no generation means the entity
// that its site knows, although another entity of that name has taken its place.
func TestDeletionMeansWhatItsSiteKnows(t *testing.T) {
	for _, kind := range []input.ChangeKind{input.DeleteEntity, input.MoveEntity} {
		r := newRig(t, 3, nil)
		r.create("x", 900)
		r.create("p", 900)
		r.cut["c"] = true
		call := r.changeAsync("c", input.Change{Kind: kind, Name: "x", RequestID: "late", Wait: 10_000, Parent: map[input.ChangeKind]string{input.MoveEntity: "p"}[kind]})
		r.advance(2000)
		r.wantCode(r.change("a", input.DeleteEntity, "x", 0, "first"), answer.OK)
		r.wantCode(r.change("a", input.CreateEntity, "x", 500, "second"), answer.OK)
		r.rejoin()
		r.advance(9000)
		r.wantCode(r.answer(call), answer.Mismatch)
		if v, err := r.find("a", "x"); err != nil || v.Parent != "" {
			t.Errorf("%s has changed the entity that followed: %+v, %v", kind, v, err)
		}
	}
}

// TestChangeAfterItsTime: a change does not run after its not_after, and its result is
// kept as long as the change may still be proposed.
func TestChangeAfterItsTime(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("x", 900)
	horizon := int64(290_000)
	limit := input.Change{Kind: input.SetLimit, Name: "x", Limit: 300, RequestID: "limit", NotAfter: r.now.Wall + 60_000}
	remove := input.Change{Kind: input.DeleteEntity, Name: "gone", RequestID: "delete", NotAfter: r.now.Wall + 60_000}
	r.create("gone", 9)
	ask := func(site core.SiteID, ch input.Change) answer.Code {
		call := r.changeAsync(site, ch)
		r.advance(2000)
		return r.answer(call).Code
	}
	if a, b := ask("a", limit), ask("b", remove); a != answer.OK || b != answer.OK {
		t.Fatal(a, b)
	}
	early := limit
	early.RequestID, early.NotAfter = "early", r.now.Wall+horizon+1
	if got := ask("a", early); got != answer.Invalid {
		t.Errorf("a time too far ahead: %v", got)
	}
	r.wantCode(r.change("a", input.CreateEntity, "gone", 9, "create gone again"), answer.OK)
	for range 12 {
		r.advance(60_000)
		// The clocks of the sequences go on.
		ask("b", input.Change{Kind: input.SetLimit, Name: "x", Limit: 400, RequestID: id("other", int(r.now.Wall))})
		ask("b", input.Change{Kind: input.CreateEntity, Name: "y", Limit: 400, RequestID: id("create", int(r.now.Wall))})
		if a, b := ask("c", limit), ask("c", remove); a != answer.OK && a != answer.Expired || b != answer.OK && b != answer.Expired {
			t.Errorf("repeats are answered %v and %v", a, b)
		}
		if v, err := r.find("a", "gone"); err != nil || r.view("a", "x").Limit != 400 {
			t.Fatalf("a repeat has run: %+v, %v", v, err)
		}
	}
	if a, b := ask("c", limit), ask("c", remove); a != answer.Expired || b != answer.Expired {
		t.Errorf("long after its time a repeat is answered %v and %v", a, b)
	}
}

// TestDeadChangeIsUnknown: a change proposed again after its time, and after its result
// was forgotten, does nothing. Its caller is told that the outcome is unknown.
func TestDeadChangeIsUnknown(t *testing.T) {
	for _, kind := range []input.ChangeKind{input.SetLimit, input.DeleteEntity} {
		r := newRig(t, 3, func(c *core.Config) { c.KeepChanges, c.Retention, c.Skew = 1, 20_000, 1000 })
		r.create("x", 900)
		first := input.Change{Kind: kind, Name: "x", RequestID: "first", Wait: 60_000}
		if kind == input.SetLimit {
			first.Limit = 300
		}
		call := r.decideUnheard(first)
		if kind == input.DeleteEntity {
			r.wantCode(r.change("a", input.CreateEntity, "x", 900, "again"), answer.OK)
		}
		r.now.Wall += 50_000
		r.wantCode(r.change("a", input.SetLimit, "x", 1000, "later"), answer.OK)
		r.wantCode(r.change("a", input.CreateEntity, "y", 1000, "later y"), answer.OK)
		r.now.Wall += 50_000
		r.wantCode(r.change("a", input.SetLimit, "x", 1100, "latest"), answer.OK)
		r.wantCode(r.change("a", input.CreateEntity, "z", 1000, "latest z"), answer.OK)
		r.rejoin()
		r.advance(20_000)
		r.wantCode(r.answer(call), answer.Unknown)
		if v, err := r.find("b", "x"); err != nil || v.Limit != 1100 {
			t.Errorf("%s has run again: %+v, %v", kind, v, err)
		}
	}
}

// TestResultsAreBounded: a full table of results refuses changes until it has room, and
// forgets no young result.
func TestResultsAreBounded(t *testing.T) {
	r := newRig(t, 3, func(c *core.Config) { c.MaxResults, c.MaxLimitResults = 5, 3 })
	r.create("x", 900)
	for i := range 3 {
		r.wantCode(r.change("a", input.SetLimit, "x", core.Tokens(100+i), id("limit", i)), answer.OK)
	}
	r.wantCode(r.change("b", input.SetLimit, "x", 200, "one more"), answer.Overloaded)
	for i := range 4 {
		r.create(id("e", i), 9)
	}
	r.wantCode(r.change("b", input.CreateEntity, "f", 200, "create f"), answer.Overloaded)
	r.wantCode(r.change("c", input.SetLimit, "x", 100, "limit-0"), answer.OK)
	r.wantCode(r.change("c", input.CreateEntity, "x", 900, "create x"), answer.OK)
	r.advance(1_000_000)
	r.wantCode(r.change("b", input.SetLimit, "x", 200, "one more"), answer.OK)
	r.wantCode(r.change("b", input.CreateEntity, "f", 200, "create f"), answer.OK)
}
