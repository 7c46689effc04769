package core_test

import (
	"reflect"
	"testing"

	"github.com/samya-db/samya/internal/versions"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
)

// tally is a cut under way: what the sites read so far count as in use.
type tally struct {
	counted, returning, leased core.Tokens
	version                    uint64
	generation                 uint64
	// mixed says that the sites have not applied the same changes.
	mixed bool
}

// countAt adds a site's part to a cut.
func (r *rig) countAt(site core.SiteID, entity string, cut *tally) {
	r.t.Helper()
	call := r.nextCall()
	r.step(site, &input.Read{Call: call, Entity: entity, Cut: true})
	v := r.answer(call).View()
	if cut.generation == 0 {
		cut.version, cut.generation = v.Version, v.Generation
		cut.counted = 0
		if v.Children == 0 {
			cut.counted = v.Surplus
		}
	}
	cut.counted += v.Count.Own
	cut.returning += v.Count.Returning
	cut.leased += v.Count.Leased
	cut.mixed = cut.mixed || v.Version != cut.version || v.Generation != cut.generation
}

// cutOf counts an entity at all sites, at once.
func (r *rig) cutOf(entity string) tally {
	r.t.Helper()
	var cut tally
	for _, site := range r.names {
		r.countAt(site, entity, &cut)
	}
	if cut.mixed {
		r.t.Fatalf("the cut of %q is mixed", entity)
	}
	return cut
}

// truth is the change that reconciles an entity with a count of a cut.
func (cut *tally) truth(entity string, inUse core.Tokens, id string) input.Change {
	return input.Change{
		Kind: input.Reconcile, Name: entity, Expected: cut.version, RequestID: id,
		Truth: input.Truth{InUse: inUse, Counted: cut.counted, Returning: cut.returning, Generation: cut.generation},
	}
}

// wantBooks compares the sums of all sites.
func (r *rig) wantBooks(entity string, left, net core.Tokens) {
	r.t.Helper()
	if l, o, n := r.books(entity); l != left || o != 0 || n != net {
		r.t.Errorf("%q: %d left, %d offered, %d out, want %d, none and %d", entity, l, o, n, left, net)
	}
}

// TestReconcile: tokens of a client that died come back once.
func TestReconcile(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("e", 30)
	r.wantCode(r.acquire("a", "e", 7, "dead"), answer.OK)
	r.wantCode(r.acquire("b", "e", 5, "alive"), answer.OK)
	cut := r.cutOf("e")
	if cut.counted != 12 {
		t.Fatalf("%+v", cut)
	}
	// Grants and releases after the cut change neither the count nor its effect.
	r.wantCode(r.acquire("c", "e", 4, "later"), answer.OK)
	r.wantCode(r.release("c", "e", 2, "some"), answer.OK)
	r.wantCode(r.release("a", "e", 1, "of alive"), answer.OK)
	a := r.changed("b", cut.truth("e", 5, "once"))
	r.wantCode(a, answer.OK)
	if v := a.View(); v.Version != 2 || v.Limit != 30 {
		t.Errorf("%+v", v)
	}
	// The client that died had 7; 4 of alive and 2 of later are left.
	r.wantBooks("e", 24, 6)
	r.restart("a")
	r.restart("b")
	r.advance(3000)
	r.wantCode(r.changed("c", cut.truth("e", 5, "once")), answer.OK)
	r.wantCode(r.changed("a", cut.truth("e", 6, "once")), answer.Reused)
	r.wantCode(r.changed("c", cut.truth("e", 5, "twice")), answer.Mismatch)
	r.wantBooks("e", 24, 6)
	call := r.acquireAsync("a", "e", 24, "all", 2000)
	r.advance(2500)
	r.wantCode(r.answer(call), answer.OK)
	if n := r.count(event.SurplusFound); n != 0 {
		t.Errorf("a surplus was found %d times", n)
	}
}

// TestReconcileOutdated: a cut counts only for the entity and the version it is of.
func TestReconcileOutdated(t *testing.T) {
	for name, tc := range map[string]struct {
		then func(r *rig, cut *tally) answer.Answer
		want answer.Code
	}{
		"as it was":      {func(*rig, *tally) answer.Answer { return answer.Answer{} }, answer.OK},
		"a raised limit": {func(r *rig, _ *tally) answer.Answer { return r.change("b", input.SetLimit, "e", 40, "limit") }, answer.Mismatch},
		"reconciled":     {func(r *rig, cut *tally) answer.Answer { return r.changed("c", cut.truth("e", 3, "other")) }, answer.Mismatch},
		"created anew": {func(r *rig, _ *tally) answer.Answer {
			r.change("b", input.DeleteEntity, "e", 0, "delete")
			return r.change("b", input.CreateEntity, "e", 30, "again")
		}, answer.Mismatch},
		"deleted": {func(r *rig, _ *tally) answer.Answer { return r.change("c", input.DeleteEntity, "e", 0, "delete") }, answer.NotFound},
	} {
		r := newRig(t, 3, nil)
		r.create("e", 30)
		r.wantCode(r.acquire("a", "e", 5, "dead"), answer.OK)
		cut := r.cutOf("e")
		r.wantCode(tc.then(r, &cut), answer.OK)
		if a := r.changed("a", cut.truth("e", 2, "truth")); a.Code != tc.want {
			t.Errorf("%s: %+v, want %v", name, a, tc.want)
		}
	}
}

// TestReconcileInvalid: fields that do not fit are refused.
func TestReconcileInvalid(t *testing.T) {
	r := newRig(t, 1, nil)
	r.create("e", 30)
	cut := r.cutOf("e")
	for name, change := range map[string]func(ch *input.Change){
		"more than all tokens":        func(ch *input.Change) { ch.Truth.InUse = input.MaxTokens + 1 },
		"less than nothing in use":    func(ch *input.Change) { ch.Truth.InUse = -1 },
		"counted too much":            func(ch *input.Change) { ch.Truth.Counted = input.MaxTokens + 1 },
		"less than nothing returning": func(ch *input.Change) { ch.Truth.Returning = -1 },
		"all too much returning":      func(ch *input.Change) { ch.Truth.Returning = input.MaxTokens + 1 },
		"counted too little":          func(ch *input.Change) { ch.Truth.Counted = -input.MaxTokens - 1 },
		"no generation":               func(ch *input.Change) { ch.Truth.Generation = 0 },
		"no version":                  func(ch *input.Change) { ch.Expected = 0 },
		"a limit":                     func(ch *input.Change) { ch.Limit = 1 },
		"a truth for a limit":         func(ch *input.Change) { ch.Kind = input.SetLimit },
		"no truth":                    func(ch *input.Change) { ch.Truth = input.Truth{} },
		"a parent":                    func(ch *input.Change) { ch.Parent = "e" },
		"a truth for a mode's change": func(ch *input.Change) { ch.Kind, ch.Mode, ch.Name = input.SetMode, "star", "" },
	} {
		ch := cut.truth("e", 0, name)
		change(&ch)
		if a := r.changed("a", ch); a.Code != answer.Invalid {
			t.Errorf("%s: %v", name, a.Code)
		}
	}
	r.wantCode(r.changed("a", input.Change{
		Kind: input.Reconcile, Name: "nobody", Expected: 1, RequestID: "n", Truth: input.Truth{Generation: 1},
	}), answer.NotFound)
}

// TestReconcileMoreInUse: more in use than the books say leaves a debt, which is paid
// before anything is granted.
func TestReconcileMoreInUse(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("e", 30)
	r.wantCode(r.acquire("b", "e", 5, "known"), answer.OK)
	cut := r.cutOf("e")
	r.wantCode(r.changed("b", cut.truth("e", 34, "more")), answer.OK)
	for _, site := range r.names {
		if v := r.view(site, "e"); v.Debt != 4 || v.Usable > 0 {
			t.Errorf("%s: %+v", site, v)
		}
		r.wantCode(r.acquire(site, "e", 1, "none "+string(site)), answer.OutOfTokens)
	}
	r.wantBooks("e", -4, 34)
	r.wantCode(r.release("c", "e", 6, "6 of them"), answer.OK)
	r.advance(10_000)
	r.wantBooks("e", 2, 28)
	r.wantCode(r.changed("a", r.cutRef("e").truth("e", 28, "the same")), answer.OK)
	r.wantBooks("e", 2, 28)
}

// TestReconcileTooEarly: an older build could not apply a reconciliation. So none is
// decided, and no site is added, before the cluster has come to the version that knows it.
func TestReconcileTooEarly(t *testing.T) {
	r := newVersionRig(t, 1, nil)
	r.create("e", 30)
	r.meet()
	r.wantCode(r.acquire("a", "e", 7, "dead"), answer.OK)
	truth := r.cutRef("e").truth("e", 2, "truth")
	for _, ch := range []input.Change{truth, {Kind: input.AddSite, Name: "d", RequestID: "add"}} {
		if a := r.changed("b", ch); a.Code != answer.TooEarly || a.Version() != versions.Members {
			t.Errorf("%s in a cluster of version 1: %+v", ch.Kind, a)
		}
	}
	r.wantBooks("e", 23, 7)
	if a := r.raise("a", 2, "raise"); a.Code != answer.OK {
		t.Fatalf("raise: %v", a.Code)
	}
	r.wantCode(r.changed("b", truth), answer.OK)
	r.wantBooks("e", 28, 2)
}

// TestReconcileWhileMembersChange: while an entity has yet to adopt the latest voters, or a
// site leaves, there is neither a cut nor a reconciliation. Both say what the change of
// the members waits for. What is decided is told.
func TestReconcileWhileMembersChange(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("e", 30)
	r.wantCode(r.acquire("a", "e", 7, "dead"), answer.OK)
	truth := r.cutRef("e").truth("e", 4, "truth")
	r.wantCode(r.changed("b", truth), answer.OK)
	later := r.cutRef("e").truth("e", 2, "later")
	refused := func(site core.SiteID, version uint64, want answer.Members) {
		t.Helper()
		cut := r.nextCall()
		r.step(site, &input.Read{Call: cut, Entity: "e", Cut: true})
		for what, call := range map[string]input.Call{"a cut": cut, "a reconciliation": r.changeAsync(site, later)} {
			if a := r.answer(call); a.Code != answer.Changing || !reflect.DeepEqual(*a.Members(), want) {
				t.Errorf("%s: %+v, %+v", what, a, a.Members())
			}
		}
		r.wantCode(r.answer(r.changeAsync(site, truth)), answer.OK)
		if v := r.view(site, "e"); v.Version != version {
			t.Errorf("an ordinary read: %+v", v)
		}
	}
	r.joins("d")
	r.wantCode(r.changed("b", input.Change{Kind: input.AddSite, Name: "d", RequestID: "add"}), answer.OK)
	r.wantCode(r.changed("b", later), answer.OK) // a site that joins holds nothing
	var cut tally
	for _, site := range r.names[:3] {
		r.countAt(site, "e", &cut)
	}
	later = cut.truth("e", 1, "last")
	for r.cores["b"].Status().Behind == 0 {
		r.advance(1)
	}
	refused("b", 3, answer.Members{Version: 2, Behind: 1})
	r.advance(30_000)
	r.cores["c"].Leaves("a")
	refused("c", 3, answer.Members{Version: 2, Sites: []answer.Member{{Site: "a", State: "draining"}}})
	r.wantCode(r.changed("b", later), answer.OK)
	r.wantBooks("e", 29, 1)
}

func (r *rig) cutRef(entity string) *tally {
	cut := r.cutOf(entity)
	return &cut
}

// TestReconcileADeadClientAlive: a client thought to be dead releases what was taken off
// its back. The tokens are set aside as a surplus.
func TestReconcileADeadClientAlive(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("e", 30)
	r.wantCode(r.acquire("a", "e", 8, "dead"), answer.OK)
	r.wantCode(r.changed("b", r.cutRef("e").truth("e", 0, "dead")), answer.OK)
	r.wantBooks("e", 30, 0)
	r.wantCode(r.release("c", "e", 8, "alive"), answer.OK)
	r.advance(30_000)
	r.wantBooks("e", 30, -8)
	for _, site := range r.names {
		if v := r.view(site, "e"); v.Surplus != 8 || v.Version != 3 {
			t.Errorf("%s: %+v", site, v)
		}
	}
	// The count of a cut takes the surplus into account.
	r.wantCode(r.acquire("a", "e", 3, "new"), answer.OK)
	cut := r.cutOf("e")
	if cut.counted != 3 {
		t.Errorf("%+v", cut)
	}
	r.wantCode(r.changed("b", cut.truth("e", 1, "again")), answer.OK)
	r.wantBooks("e", 29, -7)
}

// TestReconcileWrittenOff: tokens of a lost site come back, less those that are in use
// through it.
func TestReconcileWrittenOff(t *testing.T) {
	for _, inUse := range []core.Tokens{6, 9, 40} {
		r := newRig(t, 3, nil)
		r.create("e", 30)
		r.wantCode(r.acquire("b", "e", 6, "here"), answer.OK)
		for _, site := range r.names {
			e, b := r.disks[site].Entities["e"], r.disks[site].Books["e"]
			e.WrittenOff = 9
			r.disks[site].Entities["e"] = e
			if site == "c" {
				b.Left -= 9
				r.disks[site].Books["e"] = b
			}
			r.restart(site)
		}
		r.advance(3000)
		r.wantBooks("e", 15, 6)
		cut := r.cutOf("e")
		if cut.counted != 6 || r.view("a", "e").WrittenOff != 9 || r.cores["b"].Status().WrittenOff != 9 {
			t.Errorf("%+v", cut)
		}
		r.wantCode(r.changed("b", cut.truth("e", inUse, "lost")), answer.OK)
		for _, site := range r.names {
			if v := r.view(site, "e"); v.WrittenOff != 0 || v.Debt != max(0, inUse-30) || r.disks[site].Entities["e"].WrittenOff != 0 {
				t.Errorf("%s: %+v", site, v)
			}
		}
		r.wantBooks("e", 30-inUse, inUse)
	}
}

// TestAuditsCountTheWrittenOff: releases of tokens acquired at a lost site are no surplus,
// as far as its tokens are written off.
func TestAuditsCountTheWrittenOff(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("e", 30)
	for _, site := range r.names {
		e, b := r.disks[site].Entities["e"], r.disks[site].Books["e"]
		e.WrittenOff = 3
		b.Left--
		r.disks[site].Entities["e"], r.disks[site].Books["e"] = e, b
		r.restart(site)
	}
	r.advance(3000)
	for i, want := range []core.Tokens{0, 2} {
		r.wantCode(r.release("b", "e", core.Tokens(2+i), id("lost", i)), answer.OK)
		r.advance(30_000)
		if v := r.view("a", "e"); v.Surplus != want || v.WrittenOff != 3 {
			t.Errorf("release %d: %+v", i, v)
		}
	}
}

// TestReconcileCatchUp: a site that missed reconciles learns of them, also if it is the
// site that books the drift.
func TestReconcileCatchUp(t *testing.T) {
	for _, absent := range []core.SiteID{"a", "b", "c"} {
		r := newRig(t, 3, nil)
		r.create("e", 30)
		for _, site := range r.names {
			e, b := r.disks[site].Entities["e"], r.disks[site].Books["e"]
			e.WrittenOff = 3
			b.Left--
			r.disks[site].Entities["e"], r.disks[site].Books["e"] = e, b
			r.restart(site)
		}
		r.advance(3000)
		r.wantCode(r.acquire("a", "e", 8, "dead"), answer.OK)
		cut := r.cutOf("e")
		r.step(absent, input.Reachable{})
		r.cut[absent] = true
		at := r.names[0]
		if at == absent {
			at = r.names[1]
		}
		r.wantCode(r.changed(at, cut.truth("e", 3, "dead")), answer.OK)
		r.cut[absent] = false
		r.restart(absent)
		r.advance(20_000)
		r.wantBooks("e", 27, 3)
		for _, site := range r.names {
			if v := r.view(site, "e"); v.Version != 2 || v.WrittenOff != 0 {
				t.Errorf("without %s, %s: %+v", absent, site, v)
			}
		}
	}
}

// TestReconcileInATree: an entity's drift leaves its ancestors too, and a move takes along
// what is in use.
func TestReconcileInATree(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("org", 60)
	r.create("other", 60)
	r.below("team", "org", 50)
	r.below("app", "team", 40)
	r.wantCode(r.acquire("a", "app", 8, "dead"), answer.OK)
	r.wantCode(r.acquire("b", "app", 5, "alive"), answer.OK)
	r.wantCode(r.acquire("c", "team", 3, "direct"), answer.OK)
	if cut := r.cutOf("team"); cut.counted != 3 {
		t.Errorf("the cut of team: %+v", cut)
	}
	if cut := r.cutOf("org"); cut.counted != 0 {
		t.Errorf("the cut of org: %+v", cut)
	}
	cut := r.cutOf("app")
	// A move after the cut changes nothing about it.
	r.wantCode(r.move("a", "app", "other", "there"), answer.OK)
	r.wantCode(r.changed("b", cut.truth("app", 5, "dead")), answer.OK)
	r.wantBooks("app", 35, 5)
	r.wantBooks("other", 55, 5)
	r.wantBooks("team", 47, 3)
	r.wantBooks("org", 57, 3)
	r.wantCode(r.move("c", "app", "team", "back"), answer.OK)
	r.wantBooks("other", 60, 0)
	r.wantBooks("team", 42, 8)
	r.wantCode(r.changed("b", r.cutRef("team").truth("team", 1, "2 dead")), answer.OK)
	r.wantBooks("team", 44, 6)
	r.wantBooks("org", 54, 6)
	r.wantCode(r.changed("b", r.cutRef("app").truth("app", 0, "all dead")), answer.OK)
	for _, name := range []string{"org", "team"} {
		_, _, net := r.books(name)
		if net != 1 {
			t.Errorf("%d of %q out", net, name)
		}
	}
	if n := r.count(event.SurplusFound); n != 0 {
		t.Errorf("a surplus was found %d times", n)
	}
}

// TestCutCountsWhatReturns: a release that is not yet counted, and a grant that is still
// to be undone, are not counted as in use; leases are told.
func TestCutCountsWhatReturns(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("e", 30)
	r.create("f", 30)
	r.wantCode(r.acquire("a", "e", 9, "held"), answer.OK)
	// The answers of a are lost.
	r.cut["a"] = true
	notAfter := r.now.Wall + 60_000
	twice := input.Tries{Attempt: 2 << 8, Tried: []core.SiteID{"a"}, NotAfter: notAfter}
	r.step("b", &input.Release{Call: "r", Entity: "e", Tokens: 4, Request: key("back"), Tries: twice})
	r.step("b", &input.Acquire{Call: "q", Entity: "e", Tokens: 2, Request: key("again"), Tries: twice})
	r.step("c", &input.AcquireAll{
		Call: "all", Parts: []input.Part{{Entity: "f", Tokens: 1}, {Entity: "e", Tokens: 3}}, Request: key("parts"), Tries: twice,
	})
	r.step("c", &input.Acquire{
		Call: "l", Entity: "e", Tokens: 1, Request: key("lease"), Lease: &input.LeaseTerms{ID: "lease", TTL: 60_000},
	})
	for _, call := range []string{"r", "q", "all", "l"} {
		r.wantCode(r.answer(call), answer.OK)
	}
	// 9, 2, 3 and 1 are out; 4, 2 and 3 of them may come back.
	cut := r.cutOf("e")
	if cut.counted != 15 || cut.returning != 9 || cut.leased != 1 {
		t.Errorf("%+v", cut)
	}
	if cut := r.cutOf("f"); cut.counted != 1 || cut.returning != 1 {
		t.Errorf("%+v", cut)
	}
	for inUse, drift := range map[core.Tokens]core.Tokens{4: 2, 6: 0, 11: 0, 15: 0, 17: -2} {
		if ch := cut.truth("e", inUse, "t"); ch.Truth.Drift() != drift {
			t.Errorf("with %d in use the drift is %d, want %d", inUse, ch.Truth.Drift(), drift)
		}
	}
	r.cut["a"] = false
	r.advance(20_000)
	if cut = r.cutOf("e"); cut.counted != 15-4 || cut.returning != 0 {
		t.Errorf("%+v", cut)
	}
}
