package core_test

import (
	"errors"
	"testing"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
)

// leavingRetention is a short retention, in milliseconds: a drain lasts longer.
const leavingRetention = 20_000

func newLeavingRig(t *testing.T, n int) *rig {
	t.Helper()
	return newRig(t, n, func(c *core.Config) { c.Retention = leavingRetention })
}

// drain asks for a drain and expects that it is decided.
func (r *rig) drainSite(at, site, heir core.SiteID) {
	r.t.Helper()
	call := r.changeAsync(at, input.Change{Kind: input.DrainSite, Name: string(site), Heir: heir, RequestID: "drain " + string(site)})
	r.advance(2000)
	if a := r.answer(call); a.Code != answer.OK {
		r.t.Fatalf("draining %s: %+v", site, a)
	}
}

// state is a site's state as another site knows it.
func (r *rig) state(at, site core.SiteID) string {
	r.t.Helper()
	return r.members(at, site).State
}

// members is a site as another site knows it.
func (r *rig) members(at, site core.SiteID) answer.Member {
	r.t.Helper()
	call := r.nextCall()
	r.step(at, &input.ReadMembers{Call: call})
	a := r.answer(call)
	for _, m := range a.Members().Sites {
		if m.Site == site {
			return m
		}
	}
	return answer.Member{}
}

// remaining are the sites but one.
func (r *rig) remaining(site core.SiteID) []core.SiteID {
	var rest []core.SiteID
	for _, name := range r.names {
		if name != site {
			rest = append(rest, name)
		}
	}
	return rest
}

// loseHeir cuts off the heir of a site that leaves, writes the heir off, and waits until the
// leaver has given the rest to another heir. Messages are lost no more.
func (r *rig) loseHeir(at, leaver, heir core.SiteID) {
	r.t.Helper()
	r.cut[heir], r.loses = true, nil
	r.loseSite(at, heir)
	r.advance(3 * leavingRetention)
	if s := r.state(at, leaver); s != "gone" {
		r.t.Fatalf("%s is %q: %+v", leaver, s, r.cores[leaver].Status())
	}
	r.names = r.remaining(heir)
	r.names = r.remaining(leaver)
}

// TestASiteLeaves drains a site with tokens left, tokens out, an entity below another one
// and a lease. Its heir has all of it afterwards.
func TestASiteLeaves(t *testing.T) {
	r := newLeavingRig(t, 4)
	r.create("e", 1000)
	r.create("f", 100)
	call := r.changeAsync("a", input.Change{Kind: input.CreateEntity, Name: "e/low", Parent: "e", Limit: 400, RequestID: "low"})
	r.advance(2000)
	r.wantCode(r.answer(call), answer.OK)
	r.wantCode(r.acquire("d", "e", 70, "out"), answer.OK)
	r.wantCode(r.acquire("d", "e/low", 30, "low out"), answer.OK)
	r.wantCode(r.acquire("c", "f", 5, "c out"), answer.OK)
	r.wantCode(r.release("d", "f", 5, "d back"), answer.OK)
	lease := r.nextCall()
	r.step("d", &input.Acquire{
		Call: lease, Entity: "e", Tokens: 11, Request: key("lease"),
		Lease: &input.LeaseTerms{ID: "lease", TTL: 600_000, Holder: "h"},
	})
	r.wantCode(r.answer(lease), answer.OK)

	r.drainSite("b", "d", "a")
	r.wantCode(r.acquire("d", "e", 1, "late"), answer.Draining)
	r.wantCode(r.release("d", "e", 1, "late back"), answer.Draining)
	r.wantCode(r.acquire("d", "e", 70, "out"), answer.OK)
	renew := r.nextCall()
	r.step("d", &input.RenewLease{Call: renew, Lease: key("lease")})
	r.wantCode(r.answer(renew), answer.OK)
	if s := r.state("a", "d"); s != "draining" {
		t.Errorf("d is %q", s)
	}
	r.advance(3 * leavingRetention)
	for _, site := range r.remaining("d") {
		if s := r.state(site, "d"); s != "gone" {
			t.Fatalf("to %s, d is %q; d: %+v", site, s, r.cores["d"].Status())
		}
	}
	_, out := errors.AsType[*core.OutError](r.cores["d"].Refused())
	if !out {
		t.Errorf("the site that is gone goes on: %v", r.cores["d"].Refused())
	}
	r.names = r.remaining("d")
	for _, want := range []struct {
		entity     string
		limit, out core.Tokens
	}{{"e", 1000, 111}, {"e/low", 400, 30}, {"f", 100, 0}} {
		left, offered, net := r.books(want.entity)
		if net != want.out || left+offered+net != want.limit {
			t.Errorf("%s: %d left, %d offered, %d out; of %d, %d are out", want.entity, left, offered, net, want.limit, want.out)
		}
	}
	renew = r.nextCall()
	r.step("a", &input.RenewLease{Call: renew, Lease: key("lease")})
	if a := r.answer(renew); a.Code != answer.OK || a.Lease().Tokens != 11 || a.Lease().Holder != "h" {
		t.Errorf("the lease at the heir: %+v", a)
	}
	call = r.nextCall()
	r.step("b", &input.Release{
		Call: call, Entity: "e", Tokens: 11, Request: key("return"), Lease: &input.LeaseRef{Home: "d", Request: attempt.KeyOf("lease")},
	})
	r.wantCode(r.answer(call), answer.OK)
	r.advance(5000)
	if _, _, net := r.books("e"); net != 100 {
		t.Errorf("after the return of the lease %d are out", net)
	}
	// What is decided about the members later counts the three.
	r.create("g", 300)
	r.wantCode(r.acquire("a", "g", 100, "g"), answer.OK)
	for _, site := range r.names {
		r.restart(site)
	}
	r.advance(5000)
	for _, site := range r.names {
		if s := r.cores[site].Status(); s.Members != 3 || s.Behind != 0 {
			t.Errorf("%s, started again: %+v", site, s)
		}
	}
}

// TestACancelledDrain makes a member again of a site that has handed over a part.
func TestACancelledDrain(t *testing.T) {
	r := newLeavingRig(t, 3)
	r.create("e", 900)
	r.wantCode(r.acquire("c", "e", 100, "out"), answer.OK)
	r.drainSite("a", "c", "")
	r.advance(10_000)
	call := r.changeAsync("a", input.Change{Kind: input.KeepSite, Name: "c", RequestID: "keep"})
	r.advance(10_000)
	r.wantCode(r.answer(call), answer.OK)
	if s := r.state("b", "c"); s != "member" {
		t.Errorf("c is %q", s)
	}
	call = r.acquireAsync("c", "e", 200, "again", 5000)
	r.advance(5000)
	r.wantCode(r.answer(call), answer.OK)
	if left, offered, net := r.books("e"); net != 300 || left+offered+net != 900 {
		t.Errorf("%d left, %d offered, %d out", left, offered, net)
	}
	r.advance(3 * leavingRetention)
	if s := r.state("b", "c"); s != "member" {
		t.Errorf("c is %q after all", s)
	}
	// A lease that c does not know may be at the heir.
	call = r.nextCall()
	r.step("c", &input.RenewLease{Call: call, Lease: key("lease")})
	if a := r.answer(call); a.Code != answer.Moved || a.Lacking != "a" {
		t.Errorf("%+v", a)
	}
}

// TestTwoSitesBecomeOne drains the second of two sites.
func TestTwoSitesBecomeOne(t *testing.T) {
	r := newLeavingRig(t, 2)
	r.create("e", 10)
	r.wantCode(r.acquire("b", "e", 3, "out"), answer.OK)
	r.drainSite("a", "b", "")
	r.advance(4 * leavingRetention)
	if s := r.state("a", "b"); s != "gone" {
		t.Fatalf("b is %q", s)
	}
	if v := r.view("a", "e"); v.Left != 7 || v.Net != 3 {
		t.Errorf("a has %+v", v)
	}
	call := r.changeAsync("a", input.Change{Kind: input.DrainSite, Name: "a", RequestID: "drain a"})
	r.advance(1000)
	r.wantCode(r.answer(call), answer.Invalid)
}

// TestAnAcquireOutlastsASite: an acquire waits, with an earlier attempt at a site that is
// gone before the acquire is answered. The site that answers asks nobody in vain.
func TestAnAcquireOutlastsASite(t *testing.T) {
	var gone core.Tick
	for _, waits := range []bool{false, true} {
		r := newLeavingRig(t, 3)
		r.create("e", 30)
		for _, site := range r.names {
			r.wantCode(r.acquire(site, "e", 10, "all of "+string(site)), answer.OK)
		}
		r.drainSite("a", "c", "a")
		if !waits {
			for r.state("b", "c") != "gone" {
				r.advance(10)
			}
			gone = r.now.Tick
			continue
		}
		r.advance(gone - 15 - r.now.Tick)
		call := r.nextCall()
		r.step("b", &input.Acquire{
			Call: call, Entity: "e", Tokens: 5, Request: key("waits"), Wait: 5000,
			Tries: input.Tries{Attempt: 2 << 8, Tried: []core.SiteID{"c"}, NotAfter: r.now.Wall + 10_000},
		})
		r.advance(16)
		r.unanswered(call)
		if s := r.state("b", "c"); s != "gone" {
			t.Fatalf("c is %q", s)
		}
		r.advance(10_000)
		r.wantCode(r.answer(call), answer.OutOfTokens)
		if s := r.cores["b"].Status(); s.Claims != 0 {
			t.Errorf("%d claims are open", s.Claims)
		}
	}
}
