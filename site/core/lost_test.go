package core_test

import (
	"errors"
	"testing"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
)

// loseSite writes a site off and expects that it is decided.
func (r *rig) loseSite(at, site core.SiteID) {
	r.t.Helper()
	call := r.changeAsync(at, input.Change{Kind: input.LoseSite, Name: string(site), RequestID: "lose " + string(site)})
	r.advance(2000)
	if a := r.answer(call); a.Code != answer.OK {
		r.t.Fatalf("writing off %s: %+v", site, a)
	}
}

// TestASiteIsLost writes off a site that is cut off. Its tokens are retired, whatever it
// has granted; a parked release that may have run there is not counted. The site stops
// once it hears of that.
func TestASiteIsLost(t *testing.T) {
	r := newLeavingRig(t, 4)
	r.create("e", 1000)
	r.create("f", 400)
	r.wantCode(r.acquire("d", "e", 70, "out"), answer.OK)
	r.wantCode(r.acquire("a", "e", 20, "a out"), answer.OK)
	r.cut["d"] = true
	r.wantCode(r.acquire("d", "e", 30, "more"), answer.OK)
	r.wantCode(r.release("b", "e", 60, "back at b"), answer.OK)
	parked := r.nextCall()
	r.step("c", &input.Release{Call: parked, Entity: "e", Tokens: 5, Request: key("parked"), Tries: input.Tries{Attempt: 2 << 8, Tried: []core.SiteID{"d"}, NotAfter: r.now.Wall + 10_000}})
	if a := r.answer(parked); a.Code != answer.OK || !a.Parked {
		t.Fatalf("%+v", a)
	}
	r.loseSite("b", "d")
	rest := r.remaining("d")
	all := r.names
	r.names = rest
	r.advance(20_000)
	for _, site := range rest {
		v := r.view(site, "e")
		if v.WrittenOff != 250 {
			t.Errorf("%s: %d written off", site, v.WrittenOff)
		}
		if s := r.cores[site].Status(); s.Members != 3 || s.Behind != 0 || s.Claims != 0 || s.WrittenOff != 350 {
			t.Errorf("%s: %+v", site, s)
		}
	}
	if left, offered, net := r.books("e"); left+offered+net != 750 || net != -40 {
		t.Errorf("%d left, %d offered, %d out", left, offered, net)
	}
	// What the site held is known, so releases of what it granted are no surplus.
	r.advance(60_000)
	if v := r.view("a", "e"); v.Surplus != 0 {
		t.Errorf("%+v", v)
	}
	for _, site := range rest {
		r.restart(site)
	}
	r.advance(5000)
	r.names = all
	delete(r.cut, "d")
	r.advance(10_000)
	if _, out := errors.AsType[*core.OutError](r.cores["d"].Refused()); !out {
		t.Errorf("the lost site goes on: %v", r.cores["d"].Refused())
	}
	r.restart("d")
	r.advance(10_000)
	r.wantCode(r.acquire("d", "e", 1, "late"), answer.Unvouched)
	r.names = rest
	r.create("g", 300)
	r.wantCode(r.acquire("c", "g", 100, "g"), answer.OK)
	if v := r.view("a", "g"); v.WrittenOff != 0 {
		t.Errorf("a later entity: %+v", v)
	}
}

// TestNewMembersWriteOff destroys a member that has not heard of two new members, while the
// only site that all know drains. The new members serve nobody yet, but they are a majority
// of the voters, and write the site off. Then they serve.
func TestNewMembersWriteOff(t *testing.T) {
	r := newLeavingRig(t, 2)
	r.joins("c")
	r.advance(1000)
	call := r.changeAsync("a", input.Change{Kind: input.AddSite, Name: "c", RequestID: "add c"})
	for range 20_000 {
		if r.state("b", "c") == "member" {
			break
		}
		r.advance(1)
	}
	r.cut["a"] = true
	r.wantCode(r.answer(call), answer.OK)
	r.joins("d")
	r.advance(10_000)
	call = r.changeAsync("b", input.Change{Kind: input.AddSite, Name: "d", RequestID: "add d"})
	r.advance(10_000)
	r.wantCode(r.answer(call), answer.OK)
	r.drainSite("b", "b", "")
	r.names = []core.SiteID{"b", "c", "d"}
	r.advance(10_000)
	lose := input.Change{Kind: input.LoseSite, Name: "a", RequestID: "lose a"}
	for site, want := range map[core.SiteID]answer.Code{"b": answer.Draining, "c": answer.Unvouched, "d": answer.Unvouched} {
		if a := r.acquire(site, "e", 1, "early "+string(site)); a.Code != want {
			t.Errorf("%s: %+v", site, a)
		}
	}
	for _, ch := range []input.Change{{Kind: input.SetLimit, Name: "e", Limit: 900, RequestID: "limit"}, {Kind: input.DrainSite, Name: "c", RequestID: "drain c"}} {
		call = r.changeAsync("c", ch)
		r.advance(2000)
		r.wantCode(r.answer(call), answer.Unvouched)
	}
	call = r.changeAsync("b", lose)
	r.advance(2000)
	r.wantCode(r.answer(call), answer.Draining)
	r.loseSite("c", "a")
	r.advance(60_000)
	for _, site := range []core.SiteID{"c", "d"} {
		if s := r.cores[site].Status(); s.Members != 2 || s.Behind != 0 || s.Missing != 0 {
			t.Errorf("%s: %+v", site, s)
		}
	}
	r.names = []core.SiteID{"c", "d"}
	r.create("e", 1000)
	r.wantCode(r.acquire("c", "e", 400, "then c"), answer.OK)
	r.wantCode(r.acquire("d", "e", 400, "then d"), answer.OK)
}

// TestALostSiteMayExceed: a lost site that is alive hears of no debt, and grants all that it
// holds. So the limit may be exceeded as long as there is a debt, restarts included.
func TestALostSiteMayExceed(t *testing.T) {
	r := newLeavingRig(t, 4)
	r.create("e", 1000)
	r.wantCode(r.acquire("a", "e", 200, "out"), answer.OK)
	r.cut["d"] = true
	r.loseSite("b", "d")
	all := r.names
	r.names = r.remaining("d")
	r.advance(20_000)
	r.wantCode(r.change("b", input.SetLimit, "e", 300, "lower"), answer.OK)
	r.advance(10_000)
	r.wantViews(150, r.names...)
	for _, site := range r.names {
		r.restart(site)
	}
	r.advance(5000)
	r.wantViews(150, r.names...)
	r.wantCode(r.acquire("d", "e", 250, "more"), answer.OK)
	r.names = all
	if _, _, net := r.books("e"); net != 300+150 {
		t.Errorf("%d are out", net)
	}
	r.names = r.remaining("d")
	r.wantCode(r.release("c", "e", 200, "back"), answer.OK)
	r.advance(20_000)
	r.wantViews(0, r.names...)
}

// TestASurplusBesideALostSite: the tokens out of a lost site are written off, and count no
// more by its last report. A surplus of the others is found.
func TestASurplusBesideALostSite(t *testing.T) {
	r := newLeavingRig(t, 4)
	r.create("e", 1000)
	r.wantCode(r.acquire("d", "e", 70, "out"), answer.OK)
	r.advance(5000)
	r.cut["d"] = true
	r.loseSite("b", "d")
	r.names = r.remaining("d")
	r.advance(20_000)
	r.release("b", "e", 250+30, "never acquired")
	r.advance(60_000)
	for _, site := range r.names {
		if v := r.view(site, "e"); v.Surplus != 30 || v.WrittenOff != 250 {
			t.Errorf("%s: %+v", site, v)
		}
	}
}

// TestAMemberBehindALoss: a member that has missed an instance since the loss catches up, so
// that what the lost site held is written off.
func TestAMemberBehindALoss(t *testing.T) {
	r := newLeavingRig(t, 5)
	r.create("e", 1000)
	r.cut["e"] = true
	call := r.changeAsync("a", input.Change{Kind: input.LoseSite, Name: "e", RequestID: "lose"})
	r.names = r.remaining("e")
	for range 5000 {
		if r.state("d", "e") == "lost" && r.cores["d"].Status().Behind == 0 {
			break
		}
		r.advance(1)
	}
	r.wantCode(r.answer(call), answer.OK)
	r.cut["d"] = true
	r.wantCode(r.answer(r.waitAndAdvance("a", "e", 300, "more")), answer.OK)
	if a, d := r.view("a", "e"), r.view("d", "e"); a.Applied <= d.Applied || a.WrittenOff != 0 {
		t.Fatalf("%+v, %+v", a, d)
	}
	delete(r.cut, "d")
	r.advance(60_000)
	for _, site := range r.names {
		if v := r.view(site, "e"); v.WrittenOff != 200 {
			t.Errorf("%s: %+v", site, v)
		}
	}
}

// TestReconcileAfterALossInATree: tokens of a child came back at the site that was lost. To
// free them at once would free them above as well, where they were not written off. So the
// entity above is reconciled first. At no time may more be granted than the limits.
func TestReconcileAfterALossInATree(t *testing.T) {
	r := newRig(t, 4, func(c *core.Config) { c.Retention = leavingRetention })
	r.create("p", 400)
	r.wantCode(r.answer(r.decided("a", input.Change{Kind: input.CreateEntity, Name: "y", Limit: 200, Parent: "p", RequestID: "create y"})), answer.OK)
	r.wantCode(r.acquire("a", "y", 40, "granted at a"), answer.OK)
	r.wantCode(r.acquire("d", "p", 100, "all of d"), answer.OK)
	r.wantCode(r.release("d", "y", 30, "back at d"), answer.OK)
	r.cut["d"] = true
	r.loseSite("b", "d")
	r.names = r.remaining("d")
	r.advance(20_000)
	// In use are 10 of y and, through the lost site, 100 of p itself.
	cut := r.cutOf("y")
	first := r.changeAsync("a", cut.truth("y", 10, "y first"))
	r.advance(2000)
	r.wantCode(r.answer(first), answer.NoParent)
	above := r.cutOf("p")
	r.wantCode(r.answer(r.decided("a", above.truth("p", 100, "p"))), answer.OK)
	cut = r.cutOf("y")
	r.wantCode(r.answer(r.decided("b", cut.truth("y", 10, "y"))), answer.OK)
	r.advance(10_000)
	for entity, want := range map[string]struct{ left, out core.Tokens }{"y": {190, 10}, "p": {290, 110}} {
		r.wantBooks(entity, want.left, want.out)
		if v := r.view("b", entity); v.WrittenOff != 0 {
			t.Errorf("%s: %d written off", entity, v.WrittenOff)
		}
	}
}

// decided asks for a change, and waits until it is decided.
func (r *rig) decided(at core.SiteID, ch input.Change) input.Call {
	r.t.Helper()
	call := r.changeAsync(at, ch)
	r.advance(3000)
	return call
}

// TestALossShowsASurplus: clients release tokens that they never had at a site that is then
// lost. The site's part is below zero, and the rest seems to be right until the part is
// written off, long after the last request. The surplus is found then.
func TestALossShowsASurplus(t *testing.T) {
	r := newLeavingRig(t, 4)
	r.create("e", 400)
	r.loses = func(e *message.Envelope) bool { return e.Audit != nil }
	r.wantCode(r.acquire("a", "e", 100, "a out"), answer.OK)
	r.wantCode(r.release("d", "e", 130, "too much"), answer.OK)
	// All tokens left go to c and b, and come back there.
	all := r.acquireAsync("c", "e", 400, "all", 30_000)
	r.advance(30_000)
	r.wantCode(r.answer(all), answer.OK)
	rest := r.acquireAsync("b", "e", 30, "rest", 30_000)
	r.advance(30_000)
	r.wantCode(r.answer(rest), answer.OK)
	r.cut["d"] = true
	r.wantCode(r.release("c", "e", 400, "back at c"), answer.OK)
	r.wantCode(r.release("b", "e", 30, "back at b"), answer.OK)
	r.loseSite("b", "d")
	r.names = r.remaining("d")
	r.advance(300_000)
	if v := r.view("a", "e"); v.WrittenOff != 0 || v.Surplus != 0 {
		t.Fatalf("%+v", v)
	}
	r.loses = nil
	r.advance(120_000)
	v := r.view("a", "e")
	if v.WrittenOff != -130 || v.Surplus != 30 {
		t.Errorf("%d written off, %d set aside", v.WrittenOff, v.Surplus)
	}
}
