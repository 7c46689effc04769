package core_test

import (
	"slices"
	"testing"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/rescue"
)

// data is what the disk of a site holds.
func (r *rig) data(site core.SiteID) stored.Restored {
	r.t.Helper()
	restored, err := r.disks[site].Load()
	if err != nil {
		r.t.Fatal(err)
	}
	return restored
}

// rescueAsync asks a site to bring back what a lost site held of an entity, by its data.
func (r *rig) rescueAsync(at, lost core.SiteID, data *stored.Restored, entity, id string) input.Call {
	r.t.Helper()
	generation := r.view(at, entity).Generation
	told := &input.Rescue{Site: lost, Generation: generation}
	if e := rescue.Estates(data, r.now.Wall, 0)[generation]; e != nil {
		told.Net, told.Held, told.Leased = e.Net, e.Held, e.Leased
	}
	return r.changeAsync(at, input.Change{Kind: input.RescueEntity, Name: entity, Rescue: told, RequestID: id, Applied: true})
}

func (r *rig) rescueEntity(at, lost core.SiteID, data *stored.Restored, entity, id string) answer.Answer {
	r.t.Helper()
	call := r.rescueAsync(at, lost, data, entity, id)
	r.advance(2000)
	return r.answer(call)
}

// rescueSite notes that a site was rescued.
func (r *rig) rescueSite(at, lost core.SiteID, id string) answer.Answer {
	r.t.Helper()
	call := r.changeAsync(at, input.Change{Kind: input.RescueSite, Name: string(lost), RequestID: id})
	r.advance(2000)
	return r.answer(call)
}

// lend acquires tokens for a time.
func (r *rig) lend(site core.SiteID, entity string, tokens core.Tokens, id string, ttl core.Tick) {
	r.t.Helper()
	call := r.nextCall()
	r.step(site, &input.Acquire{
		Call: call, Entity: entity, Tokens: tokens, Request: key(id), Lease: &input.LeaseTerms{ID: id, TTL: ttl, Holder: "h"},
	})
	r.wantCode(r.answer(call), answer.OK)
}

// wantSums compares the sums of an entity's books, once nothing moves.
func (r *rig) wantSums(entity string, circulating, out core.Tokens) {
	r.t.Helper()
	left, offered, net := r.books(entity)
	if net != out || left+offered+net != circulating {
		r.t.Errorf("%s: %d left, %d offered, %d out; want %d in all, %d out", entity, left, offered, net, circulating, out)
	}
}

// TestALostSiteIsRescued writes a site off that holds tokens of three entities, one below
// another, and leases. Its data brings all back, once.
func TestALostSiteIsRescued(t *testing.T) {
	r := newLeavingRig(t, 4)
	r.create("e", 1000)
	r.create("f", 100)
	call := r.changeAsync("a", input.Change{Kind: input.CreateEntity, Name: "e/low", Parent: "e", Limit: 400, RequestID: "low"})
	r.advance(2000)
	r.wantCode(r.answer(call), answer.OK)
	r.wantCode(r.acquire("d", "e", 70, "out"), answer.OK)
	r.wantCode(r.acquire("c", "f", 5, "c out"), answer.OK)
	r.wantCode(r.release("d", "f", 5, "d back"), answer.OK)
	r.advance(2000)
	r.cut["d"] = true
	r.wantCode(r.acquire("d", "e/low", 30, "low out"), answer.OK)
	r.lend("d", "e", 11, "short", 5000)
	r.lend("d", "e", 13, "long", 60_000)
	began := r.now.Tick
	r.wantCode(r.release("b", "e", 60, "back at b"), answer.OK)
	r.loseSite("b", "d")
	all := r.names
	r.names = r.remaining("d")
	r.advance(20_000)
	if v := r.view("a", "e"); v.WrittenOff != 250 {
		t.Fatalf("%d written off", v.WrittenOff)
	}
	data := r.data("d")
	r.wantCode(r.rescueSite("a", "d", "all early"), answer.Changing)
	for i, tc := range []struct {
		entity   string
		returned core.Tokens
	}{{"e/low", 70}, {"e", 156}, {"f", 30}} {
		a := r.rescueEntity("c", "d", &data, tc.entity, id("rescue", i))
		if a.Code != answer.OK || a.Returned != tc.returned || len(a.Unapplied()) > 0 {
			t.Errorf("%s: %+v, %d returned, %v missing", tc.entity, a, a.Returned, a.Unapplied())
		}
		// A repeat of the request hears the same; another one has nothing to do.
		if a := r.rescueEntity("c", "d", &data, tc.entity, id("rescue", i)); a.Code != answer.OK || a.Returned != tc.returned {
			t.Errorf("%s: a repeat: %+v, %d returned", tc.entity, a, a.Returned)
		}
		for _, at := range r.names {
			if a := r.rescueEntity(at, "d", &data, tc.entity, id("again "+string(at), i)); a.Code != answer.OK || a.Returned != 0 {
				t.Errorf("%s: once more at %s: %+v, %d returned", tc.entity, at, a, a.Returned)
			}
		}
	}
	r.wantSums("e/low", 400, 30)
	r.wantSums("e", 1000, 70+30+13-60)
	r.wantSums("f", 100, 0)
	for _, site := range r.names {
		r.restart(site)
	}
	r.advance(5000)
	for i, entity := range []string{"e/low", "e", "f"} {
		if a := r.rescueEntity("b", "d", &data, entity, id("restarted", i)); a.Code != answer.OK || a.Returned != 0 {
			t.Errorf("%s: after a restart: %+v", entity, a)
		}
	}
	r.wantSums("e", 1000, 70+30+13-60)
	// Each site has all that is back, and the live lease ends by itself.
	r.wantCode(r.rescueSite("a", "d", "all"), answer.OK)
	r.wantCode(r.rescueSite("b", "d", "all again"), answer.OK)
	r.advance(60_000 + 2*leavingRetention - (r.now.Tick - began))
	r.wantSums("e", 1000, 70+30-60)
	for _, site := range r.names {
		if s := r.cores[site].Status(); s.WrittenOff != 0 || s.Surplus != 0 || s.Halted != 0 {
			t.Errorf("%s: %+v", site, s)
		}
	}
	waits := r.acquireAsync("a", "e", 900, "much", 5000)
	r.advance(5000)
	r.wantCode(r.answer(waits), answer.OK)
	// The site itself stays out.
	r.names = all
	delete(r.cut, "d")
	r.advance(5000)
	if r.cores["d"].Refused() == nil {
		t.Error("the rescued site goes on")
	}
}

// TestTwoLostSites: what two lost sites held is known in sum only. The first data brings
// back what it shows, the second one all the rest.
func TestTwoLostSites(t *testing.T) {
	r := newLeavingRig(t, 5)
	r.create("e", 1000)
	for i, site := range []core.SiteID{"d", "e"} {
		r.wantCode(r.acquire(site, "e", 50, id("out", i)), answer.OK)
		r.cut[site] = true
	}
	lost := []core.SiteID{"d", "e"}
	all := r.names
	for _, site := range lost {
		r.names = slices.DeleteFunc(slices.Clone(r.names), func(s core.SiteID) bool { return s == site })
	}
	for _, site := range lost {
		r.loseSite("b", site)
		r.advance(2000)
	}
	r.advance(20_000)
	if v := r.view("a", "e"); v.WrittenOff != 400 {
		t.Fatalf("%d written off", v.WrittenOff)
	}
	data := r.data("d")
	// The data shows less than all: as if the site had set tokens aside.
	for i := range data.Books {
		data.Books[i].Left -= 40
	}
	if a := r.rescueEntity("a", "d", &data, "e", "first"); a.Code != answer.OK || a.Returned != 110 {
		t.Errorf("%+v, %d returned", a, a.Returned)
	}
	r.wantSums("e", 600+160, 50)
	data = r.data("e")
	if a := r.rescueEntity("a", "e", &data, "e", "second"); a.Code != answer.OK || a.Returned != 190 {
		t.Errorf("%+v, %d returned", a, a.Returned)
	}
	r.wantSums("e", 1000, 100)
	r.names = all
}

// TestRescueAfterACount: a reconciliation brings back what lost sites held, by a count of
// all that is in use. Their data brings nothing more.
func TestRescueAfterACount(t *testing.T) {
	r := newLeavingRig(t, 4)
	r.create("e", 1000)
	r.wantCode(r.acquire("d", "e", 70, "out"), answer.OK)
	r.cut["d"] = true
	r.names = r.remaining("d")
	r.loseSite("b", "d")
	r.advance(20_000)
	v := r.view("a", "e")
	call := r.changeAsync("a", input.Change{
		Kind: input.Reconcile, Name: "e", Expected: v.Version, RequestID: "count",
		Truth: input.Truth{InUse: 70, Generation: v.Generation},
	})
	r.advance(2000)
	r.wantCode(r.answer(call), answer.OK)
	r.wantSums("e", 1000, 70)
	for _, site := range r.names {
		r.restart(site)
	}
	r.advance(5000)
	data := r.data("d")
	if a := r.rescueEntity("a", "d", &data, "e", "late"); a.Code != answer.OK || a.Returned != 0 {
		t.Errorf("%+v, %d returned", a, a.Returned)
	}
	r.wantSums("e", 1000, 70)
	// An entity created since the loss has nothing to bring back, and needs no data.
	r.create("g", 300)
	if a := r.rescueEntity("a", "d", &data, "g", "g"); a.Code != answer.OK || a.Returned != 0 {
		t.Errorf("%+v, %d returned", a, a.Returned)
	}
	r.wantSums("g", 300, 0)
}

// TestRefusedRescues: only what was written off comes back, and only of the entity that the
// data knows.
func TestRefusedRescues(t *testing.T) {
	r := newLeavingRig(t, 5)
	r.create("e", 1000)
	data := r.data("d")
	r.wantCode(r.rescueEntity("a", "d", &data, "e", "member"), answer.Invalid)
	r.wantCode(r.rescueEntity("a", "x", &data, "e", "nobody"), answer.Invalid)
	r.wantCode(r.rescueSite("a", "d", "member itself"), answer.Mismatch)
	r.cut["d"] = true
	r.names = r.remaining("d")
	r.cut["c"] = true
	r.loseSite("b", "d")
	// What the site held is not known before c has told what it holds.
	r.wantCode(r.rescueEntity("a", "d", &data, "e", "uncounted"), answer.Changing)
	delete(r.cut, "c")
	r.advance(20_000)
	wrong := input.Change{Kind: input.RescueEntity, Name: "e", RequestID: "wrong", Rescue: &input.Rescue{Site: "d", Generation: 99}}
	call := r.changeAsync("a", wrong)
	r.wantCode(r.answer(call), answer.Mismatch)
	for i, told := range []input.Rescue{
		{Generation: 1},
		{Site: "d"},
		{Site: "d", Generation: 1, Net: input.MaxTokens + 1},
		{Site: "d", Generation: 1, Held: -input.MaxTokens - 1},
		{Site: "d", Generation: 1, Leased: []input.Leased{{Tokens: 0, Until: 1}}},
		{Site: "d", Generation: 1, Leased: []input.Leased{{Tokens: 1}}},
		{Site: "d", Generation: 1, Leased: make([]input.Leased, input.MaxLeased+1)},
	} {
		call := r.changeAsync("a", input.Change{Kind: input.RescueEntity, Name: "e", RequestID: id("invalid", i), Rescue: &told})
		r.wantCode(r.answer(call), answer.Invalid)
	}
	r.wantCode(r.rescueEntity("a", "d", &data, "e", "at last"), answer.OK)
	r.wantSums("e", 1000, 0)
}

// TestRescueBelowZero: tokens released at the lost site and acquired elsewhere free tokens
// of the entities above. They wait until what was written off there is back.
func TestRescueBelowZero(t *testing.T) {
	r := newLeavingRig(t, 4)
	r.create("p", 100)
	call := r.changeAsync("a", input.Change{Kind: input.CreateEntity, Name: "x", Parent: "p", Limit: 80, RequestID: "x"})
	r.advance(2000)
	r.wantCode(r.answer(call), answer.OK)
	r.wantCode(r.acquire("a", "x", 20, "out"), answer.OK)
	r.wantCode(r.release("d", "x", 20, "back"), answer.OK)
	r.cut["d"] = true
	r.names = r.remaining("d")
	r.loseSite("b", "d")
	r.advance(20_000)
	data := r.data("d")
	r.wantCode(r.rescueEntity("a", "d", &data, "x", "early"), answer.NoParent)
	r.wantCode(r.rescueEntity("a", "d", &data, "p", "p"), answer.OK)
	r.wantSums("p", 100, 20)
	r.wantCode(r.rescueEntity("a", "d", &data, "x", "x of d"), answer.OK)
	r.wantSums("p", 100, 0)
	r.wantSums("x", 80, 0)
}
