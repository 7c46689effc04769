package core_test

import (
	"slices"
	"testing"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

func (r *rig) allAsync(site core.SiteID, id string, wait core.Tick, parts ...input.Part) input.Call {
	call := r.nextCall()
	r.step(site, &input.AcquireAll{Call: call, Parts: parts, Request: key(id), Wait: wait})
	return call
}

func (r *rig) all(site core.SiteID, id string, parts ...input.Part) answer.Answer {
	r.t.Helper()
	return r.answer(r.allAsync(site, id, 0, parts...))
}

func part(entity string, tokens core.Tokens) input.Part {
	return input.Part{Entity: entity, Tokens: tokens}
}

// wantNet checks the tokens out at a site, by entity.
func (r *rig) wantNet(site core.SiteID, want map[string]core.Tokens) {
	r.t.Helper()
	for name, net := range want {
		if v := r.view(site, name); v.Net != net {
			r.t.Errorf("%s: %d of %s are out, want %d", site, v.Net, name, net)
		}
	}
}

// TestAllIsChargedOnce: each entity is charged the sum over the parts that name it or an
// entity below it. A repeat moves nothing, also after a restart.
func TestAllIsChargedOnce(t *testing.T) {
	r := newRig(t, 1, nil)
	r.chain(20, 20, 40)
	r.below("second", "team", 20)
	r.create("other", 20)
	parts := []input.Part{part("leaf", 2), part("second", 3), part("team", 4), part("other", 5), part("leaf", 1)}
	want := map[string]core.Tokens{"leaf": 3, "second": 3, "team": 10, "org": 10, "other": 5}
	for range 2 {
		for range 2 {
			if a := r.all("a", "x", parts...); a.Code != answer.OK || a.Tokens != 15 || a.Left != 17 {
				t.Errorf("%+v", a)
			}
			r.wantNet("a", want)
		}
		r.wantCode(r.all("a", "x", parts[1:]...), answer.Reused)
		r.wantCode(r.acquire("a", "leaf", 15, "x"), answer.Reused)
		r.restart("a")
	}
}

func TestAllIsInvalid(t *testing.T) {
	r := newRig(t, 1, nil)
	r.create("e", 20)
	for name, parts := range map[string][]input.Part{
		"none": {}, "no tokens": {part("e", 1), part("e", 0)}, "negative": {part("e", -1)},
		"too many tokens": {part("e", input.MaxTokens), part("e", 1)},
		"too many":        make([]input.Part, input.MaxParts+1),
	} {
		for i := range parts {
			if name == "too many" {
				parts[i] = part("e", 1)
			}
		}
		if a := r.all("a", name, parts...); a.Code != answer.Invalid {
			t.Errorf("%s: %+v", name, a)
		}
	}
	r.wantCode(r.all("a", "x", part("e", 1), part("none", 1)), answer.NotFound)
	r.wantCode(r.all("a", "x", part("e", 1), part("e", 1)), answer.OK)
	r.wantNet("a", map[string]core.Tokens{"e": 2})
}

// TestAllOrNone: if an entity lacks tokens nothing moves, the answer names the entity,
// and a repeat gets the same answer.
func TestAllOrNone(t *testing.T) {
	r := newRig(t, 1, nil)
	r.chain(25, 25, 25)
	r.below("second", "team", 25)
	r.create("other", 8)
	r.wantCode(r.acquire("a", "team", 5, "some"), answer.OK)
	r.wantCode(r.acquire("a", "other", 3, "some of the other"), answer.OK)
	before := map[string]core.Tokens{"leaf": 0, "second": 0, "team": 5, "org": 5, "other": 3}
	for range 2 {
		// Each part alone would do.
		a := r.all("a", "team", part("leaf", 11), part("second", 10))
		if r.wantLacking(a, answer.OutOfTokens, "team"); a.Left != 20 {
			t.Errorf("%+v", a)
		}
		r.wantLacking(r.all("a", "other", part("leaf", 11), part("other", 6)), answer.OutOfTokens, "other")
		r.wantNet("a", before)
		r.restart("a")
	}
	r.change("a", input.SetLimit, "other", 13, "raise")
	r.wantLacking(r.all("a", "other", part("leaf", 11), part("other", 6)), answer.OutOfTokens, "other")
	r.wantNet("a", before)
}

// TestAllFetchesForWhoLacks: an acquire waits for one entity after the other, for all
// that it needs of each, and holds nothing meanwhile.
func TestAllFetchesForWhoLacks(t *testing.T) {
	r := newRig(t, 3, nil)
	r.chain(90, 90, 30)
	r.create("other", 9)
	r.create("plenty", 90)
	call := r.allAsync("a", "x", 20_000, part("leaf", 8), part("other", 6), part("plenty", 20), part("team", 5))
	r.unanswered(call)
	if v := r.view("a", "org"); v.Waiting != 1 {
		t.Errorf("%+v", v)
	}
	r.wantCode(r.acquire("a", "plenty", 10, "between"), answer.OK)
	r.advance(3000)
	r.wantCode(r.answer(call), answer.OK)
	r.wantNet("a", map[string]core.Tokens{"leaf": 8, "team": 13, "org": 13, "other": 6, "plenty": 30})
	call = r.allAsync("a", "y", 20_000, part("plenty", 1), part("other", 4))
	r.advance(3000)
	r.wantLacking(r.answer(call), answer.OutOfTokens, "other")
	r.wantNet("a", map[string]core.Tokens{"other": 6, "plenty": 30})
}

// TestAllIsUndone: an acquire that ran elsewhere gives its tokens back to the entities
// that still exist, along their present chains.
func TestAllIsUndone(t *testing.T) {
	for name, restart := range map[string]bool{"running": false, "restarted": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 3, nil)
			r.chain(300, 300, 300)
			r.create("other", 300)
			r.create("gone", 300)
			r.base = r.now.Wall
			parts := []input.Part{part("gone", 1), part("leaf", 5), part("other", 2), part("leaf", 1)}
			r.wantCode(r.all("a", "x", parts...), answer.OK)
			for _, ch := range []input.Change{
				{Kind: input.MoveEntity, Name: "leaf", Parent: "other", RequestID: "move"},
				{Kind: input.DeleteEntity, Name: "gone", RequestID: "delete"},
			} {
				call := r.changeAsync("b", ch)
				r.advance(1000)
				r.wantCode(r.answer(call), answer.OK)
			}
			r.wantNet("a", map[string]core.Tokens{"leaf": 6, "team": 0, "org": 0, "other": 8})
			if restart {
				r.restart("a")
				r.advance(3000)
			}
			call := r.nextCall()
			r.step("b", &input.AcquireAll{Call: call, Parts: parts[1:], Request: key("z"), Tries: r.tries(2, "a")})
			r.wantCode(r.answer(call), answer.OK)
			r.step("b", &input.AcquireAll{Call: "x again", Parts: parts, Request: key("x"), Tries: r.tries(2, "a")})
			r.wantCode(r.answer("x again"), answer.NotFound)
			anew := r.changeAsync("b", input.Change{Kind: input.CreateEntity, Name: "gone", Limit: 300, RequestID: "anew"})
			r.advance(1000)
			r.wantCode(r.answer(anew), answer.OK)
			r.step("b", &input.AcquireAll{Call: "x", Parts: parts, Request: key("x"), Tries: r.tries(2, "a")})
			r.wantCode(r.answer("x"), answer.OK)
			r.advance(2000)
			r.wantNet("a", map[string]core.Tokens{"leaf": 0, "other": 0, "gone": 0})
			r.wantNet("b", map[string]core.Tokens{"leaf": 12, "other": 16, "gone": 1})
			r.wantCode(r.all("a", "x", parts...), answer.Superseded)
		})
	}
}

// TestAllIsTakenOver: a later attempt at the same site keeps the tokens that the first
// attempt moved, and can be undone in its place.
func TestAllIsTakenOver(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("e", 300)
	r.create("f", 300)
	r.base = r.now.Wall
	parts := []input.Part{part("e", 5), part("f", 2)}
	r.wantCode(r.all("a", "x", parts...), answer.OK)
	try := func(site core.SiteID, count uint32, tried ...core.SiteID) answer.Answer {
		call := r.nextCall()
		r.step(site, &input.AcquireAll{Call: call, Parts: parts, Request: key("x"), Tries: r.tries(count, tried...)})
		r.advance(1000)
		return r.answer(call)
	}
	r.wantCode(try("a", 2, "b"), answer.OK)
	r.wantNet("a", map[string]core.Tokens{"e": 5, "f": 2})
	r.wantCode(try("b", 3, "a"), answer.OK)
	r.wantNet("a", map[string]core.Tokens{"e": 0, "f": 0})
	r.wantNet("b", map[string]core.Tokens{"e": 5, "f": 2})
	// An attempt taken over by a later attempt has its site ask where others ran.
	r.wantCode(r.all("c", "x", parts...), answer.OK)
	r.wantCode(try("b", 4, "c"), answer.OK)
	r.wantNet("b", map[string]core.Tokens{"e": 5, "f": 2})
	r.wantNet("c", map[string]core.Tokens{"e": 0, "f": 0})
}

// TestAllChanges: a waiting acquire goes by the present chains, and is answered when an
// entity that it names is deleted.
func TestAllChanges(t *testing.T) {
	for name, whole := range map[string]bool{"one by one": false, "by a snapshot": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 3, nil)
			r.create("other", 300)
			r.chain(300, 300, 15)
			r.create("gone", 300)
			r.cut["a"] = true
			moved := r.allAsync("a", "moved", 10_000, part("leaf", 4), part("team", 2))
			gone := r.allAsync("a", "gone", 10_000, part("gone", 1), part("org", 6))
			stays := r.allAsync("a", "stays", 10_000, part("org", 3), part("other", 1))
			r.unanswered(stays)
			for _, ch := range []input.Change{
				{Kind: input.MoveEntity, Name: "leaf", Parent: "other", RequestID: "move"},
				{Kind: input.DeleteEntity, Name: "gone", RequestID: "delete"},
			} {
				call := r.changeAsync("b", ch)
				r.advance(1000)
				r.wantCode(r.answer(call), answer.OK)
			}
			if err := r.cores["a"].Follow(r.cores["b"], whole); err != nil {
				t.Fatal(err)
			}
			r.view("a", "org")
			r.wantCode(r.answer(moved), answer.OK)
			r.wantCode(r.answer(gone), answer.NotFound)
			r.wantCode(r.answer(stays), answer.OK)
			r.wantNet("a", map[string]core.Tokens{"leaf": 4, "team": 2, "org": 5, "other": 5})
		})
	}
}

// TestPartsAreBounded: each remembered part counts like a record, until the record is
// forgotten.
func TestPartsAreBounded(t *testing.T) {
	r := newRig(t, 1, func(c *core.Config) { c.MaxRequests, c.Retention = 50, 1000 })
	r.create("e", 10_000)
	parts := make([]input.Part, 20)
	for i := range parts {
		parts[i] = part("e", 1)
	}
	r.wantCode(r.all("a", "x", parts...), answer.OK)
	r.wantCode(r.all("a", "y", parts...), answer.OK)
	r.wantCode(r.all("a", "z", parts...), answer.Overloaded)
	r.wantCode(r.acquire("a", "e", 1, "single"), answer.OK)
	r.advance(2000)
	for i := range 3 {
		r.acquire("a", "e", 1, id("later", i))
	}
	r.wantCode(r.all("a", "z", parts...), answer.OK)
}

// TestWaitingPartsAreBounded: parts of waiting acquires count as well. MaxWaitingAll
// bounds the number of entities that they charge.
func TestWaitingPartsAreBounded(t *testing.T) {
	r := newRig(t, 3, func(c *core.Config) { c.MaxRequests, c.MaxWaitingAll = 100, 6 })
	var parts []input.Part
	for i := range 40 {
		r.create(id("e", i), 3)
		parts = append(parts, part(id("e", i), 2))
	}
	r.cut["b"], r.cut["c"] = true, true
	for range 2 {
		first := r.allAsync("a", id("x", r.calls), 1000, parts[:25]...)
		r.unanswered(first)
		r.wantLacking(r.answer(r.allAsync("a", id("x", r.calls), 1000, parts[:24]...)), answer.QueueFull, "e-0")
		r.unanswered(r.allAsync("a", id("x", r.calls), 1000, parts[:20]...))
		r.wantCode(r.all("a", id("x", r.calls), slices.Repeat(parts[:1], 53)...), answer.Overloaded)
		r.advance(2000)
		r.wantLacking(r.answer(first), answer.OutOfTokens, "e-0")
	}
}
