package core_test

import (
	"slices"
	"testing"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
)

// TestTheHeirKnowsOfTheDrain: a site that drains hands nothing to an heir that has not
// heard of the drain. A cut of the heir would count the tokens twice.
func TestTheHeirKnowsOfTheDrain(t *testing.T) {
	r := newLeavingRig(t, 3)
	r.create("e", 300)
	r.wantCode(r.acquire("c", "e", 30, "out"), answer.OK)
	ofCatalogue := func(e *message.Envelope) bool {
		return e.Entity == "" && e.Gossip == nil && e.Claims == nil && e.Vouch == nil && e.Leave == nil
	}
	bequeaths := func(e message.Envelope) bool { return e.Handoff != nil }
	r.loses = func(e *message.Envelope) bool { return e.To() == "a" && ofCatalogue(e) }
	r.sent = nil
	r.drainSite("b", "c", "a")
	r.advance(10_000)
	if s := r.state("a", "c"); s != "member" {
		t.Fatalf("to a, c is %q", s)
	}
	if c := r.cores["c"].Status(); !c.Leaves || c.Behind != 0 {
		t.Fatalf("c: %+v", c)
	}
	if slices.ContainsFunc(r.sent, bequeaths) {
		t.Error("c hands over to a, which does not know that c drains")
	}
	r.loses = nil
	r.advance(3 * leavingRetention)
	if s := r.state("b", "c"); s != "gone" || !slices.ContainsFunc(r.sent, bequeaths) {
		t.Errorf("c is %q", s)
	}
}

// TestALeaseStaysWithItsAcquire: as long as a site that drains remembers the acquire of a
// lease, it keeps the lease. Else another site that undoes the acquire would leave the
// lease with the heir.
func TestALeaseStaysWithItsAcquire(t *testing.T) {
	r := newLeavingRig(t, 3)
	r.create("e", 300)
	r.lendAt("c", 40, 600_000)
	r.drainSite("a", "c", "a")
	r.advance(10_000)
	call := r.nextCall()
	r.step("b", &input.Acquire{
		Call: call, Entity: "e", Tokens: 40, Request: key("lease"),
		Lease: &input.LeaseTerms{ID: "lease", TTL: 600_000, Holder: "h"},
		Tries: input.Tries{Attempt: 2 << 8, Tried: []core.SiteID{"c"}, NotAfter: r.now.Wall + 5000},
	})
	r.advance(2000)
	r.wantCode(r.answer(call), answer.OK)
	r.advance(3 * leavingRetention)
	if s := r.state("a", "c"); s != "gone" {
		t.Fatalf("c is %q", s)
	}
	if a, b := r.cores["a"].Status(), r.cores["b"].Status(); a.Leases != 0 || b.Leases != 1 {
		t.Errorf("a has %d leases, b %d", a.Leases, b.Leases)
	}
	r.names = r.remaining("c")
	if _, _, net := r.books("e"); net != 40 {
		t.Errorf("%d are out", net)
	}
}

// TestAReleaseOutlastsASite: a release whose earlier attempt may have come to a site that
// is gone by now counts. The site took none.
func TestAReleaseOutlastsASite(t *testing.T) {
	r := newLeavingRig(t, 3)
	r.create("e", 300)
	r.wantCode(r.acquire("b", "e", 30, "out"), answer.OK)
	r.drainSite("a", "c", "a")
	r.loses = func(e *message.Envelope) bool {
		return e.Claims != nil || e.Leave != nil && e.Leave.Kind == message.LeaveEmpty && r.count(event.ClaimMade) == 0
	}
	for n := len(r.sent); !slices.ContainsFunc(r.sent[n:], func(e message.Envelope) bool {
		return e.Leave != nil && e.Leave.Kind == message.LeaveEmpty
	}); {
		r.advance(100)
	}
	call := r.nextCall()
	r.step("b", &input.Release{
		Call: call, Entity: "e", Tokens: 30, Request: key("back"),
		Tries: input.Tries{Attempt: 2 << 8, Tried: []core.SiteID{"c"}, NotAfter: r.now.Wall + 5000},
	})
	r.wantCode(r.answer(call), answer.OK)
	r.advance(10_000)
	if s := r.state("b", "c"); s != "gone" {
		t.Fatalf("c is %q", s)
	}
	if s := r.cores["b"].Status(); s.Claims != 0 {
		t.Errorf("%d claims are open", s.Claims)
	}
	r.names = r.remaining("c")
	if _, _, net := r.books("e"); net != 0 {
		t.Errorf("%d are out", net)
	}
}

// TestALeaverWaitsForClaims: a release has run at a site that drains, and a member that has
// parked the release gets no answer to its claim. The site stays until it has answered, also if
// it has forgotten the release: else the member would count it again.
func TestALeaverWaitsForClaims(t *testing.T) {
	r := newLeavingRig(t, 3)
	r.create("e", 300)
	r.wantCode(r.acquire("b", "e", 60, "out"), answer.OK)
	r.loses = func(e *message.Envelope) bool { return e.Claims != nil }
	back := func(at core.SiteID, tries input.Tries) {
		t.Helper()
		tries.NotAfter = r.now.Wall + 5000
		call := r.nextCall()
		r.step(at, &input.Release{Call: call, Entity: "e", Tokens: 30, Request: key("back"), Tries: tries})
		r.wantCode(r.answer(call), answer.OK)
	}
	back("c", input.Tries{Attempt: attempt.First})
	back("b", input.Tries{Attempt: 2 << 8, Tried: []core.SiteID{"c"}})
	r.drainSite("a", "c", "a")
	r.advance(3 * leavingRetention)
	if s, b := r.state("b", "c"), r.cores["b"].Status(); s != "draining" || b.Claims != 1 {
		t.Errorf("c is %q, and %d claims of b are open", s, b.Claims)
	}
	r.loses = nil
	r.advance(3 * leavingRetention)
	if s, b := r.state("b", "c"), r.cores["b"].Status(); s != "gone" || b.Claims != 0 {
		t.Errorf("c is %q, and %d claims of b are open", s, b.Claims)
	}
	r.names = r.remaining("c")
	if _, _, net := r.books("e"); net != 30 {
		t.Errorf("%d are out", net)
	}
}

// TestNewAndOldVotersHearTheEnd: an entity adopts other voters. Who has voted before and
// who votes from then on are told at once, and need not ask.
func TestNewAndOldVotersHearTheEnd(t *testing.T) {
	r := newLeavingRig(t, 3)
	r.create("e", 300)
	told := func(site core.SiteID) bool {
		return slices.ContainsFunc(r.sent, func(e message.Envelope) bool {
			return e.Entity == "e" && e.Message.Kind == avantan.Decision && e.To() == site
		})
	}
	r.addSite("d")
	if s := r.state("a", "d"); s != "member" || !told("d") {
		t.Errorf("d is %q, told: %t", s, told("d"))
	}
	r.sent = nil
	r.drainSite("a", "c", "a")
	if s := r.state("c", "c"); s != "draining" || !told("c") {
		t.Errorf("c is %q, told: %t", s, told("c"))
	}
}

// TestALeaverWaitsForNewMembers: a site that leaves is retired once all others have heard of
// each other. Else nobody vouches for b once a and c have left.
func TestALeaverWaitsForNewMembers(t *testing.T) {
	r := fenced(t, 3, func(c *core.Config) { c.Retention = leavingRetention })
	r.advance(1000)
	r.create("e", 300)
	r.loses = func(e *message.Envelope) bool { return e.From() == "b" && e.To() == "d" }
	r.addSite("d")
	r.drainSite("a", "c", "a")
	r.advance(3 * leavingRetention)
	if s := r.state("a", "c"); s != "draining" {
		t.Errorf("c is %q while d has heard nothing of b", s)
	}
	r.loses = nil
	r.advance(3 * leavingRetention)
	if s := r.state("a", "c"); s != "gone" {
		t.Fatalf("c is %q", s)
	}
	r.names = r.remaining("c")
	r.drainSite("b", "a", "b")
	r.advance(3 * leavingRetention)
	if s := r.state("b", "a"); s != "gone" {
		t.Fatalf("a is %q", s)
	}
	r.names = r.remaining("a")
	r.restart("b")
	r.advance(10_000)
	for _, site := range r.names {
		if !r.serves(site) {
			t.Errorf("%s does not serve", site)
		}
	}
}
