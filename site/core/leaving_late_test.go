package core_test

import (
	"slices"
	"testing"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
)

// lendAt lends tokens of "e" from a site to the lease "lease".
func (r *rig) lendAt(site core.SiteID, tokens core.Tokens, ttl core.Tick) {
	r.t.Helper()
	call := r.nextCall()
	r.step(site, &input.Acquire{
		Call: call, Entity: "e", Tokens: tokens, Request: key("lease"),
		Lease: &input.LeaseTerms{ID: "lease", TTL: ttl, Holder: "h"},
	})
	r.wantCode(r.answer(call), answer.OK)
}

// TestALeaverInDebt: tokens come back to a site that drains, and the entity has a debt.
// The site may not pay the debt, and does not wake for it again and again.
func TestALeaverInDebt(t *testing.T) {
	r := newLeavingRig(t, 3)
	r.create("e", 300)
	for _, site := range r.remaining("c") {
		r.wantCode(r.acquire(site, "e", 100, "out of "+string(site)), answer.OK)
	}
	r.wantCode(r.acquire("c", "e", 60, "out of c"), answer.OK)
	r.lendAt("c", 40, 5000)
	r.wantCode(r.change("a", input.SetLimit, "e", 150, "limit"), answer.OK)
	if v := r.view("c", "e"); v.Debt != 150 {
		t.Fatalf("c knows of a debt of %d", v.Debt)
	}
	// The heir seems to be up, and does not answer: the tokens stay at c.
	r.loses = func(e *message.Envelope) bool { return e.Handoff != nil }
	r.drainSite("b", "c", "a")
	r.advance(10_000)
	r.loses = nil
	r.advance(3 * leavingRetention)
	if s := r.state("a", "c"); s != "gone" {
		t.Errorf("c is %q", s)
	}
	r.names = r.remaining("c")
	if left, offered, net := r.books("e"); net != 260 || left+offered+net != 150 {
		t.Errorf("%d left, %d offered, %d out", left, offered, net)
	}
}

// TestALeaverThatHasJustJoined drains a site before all members have heard that it is one.
// It serves once they have, and answers what others ask it.
func TestALeaverThatHasJustJoined(t *testing.T) {
	r := newLeavingRig(t, 3)
	r.create("e", 300)
	r.cut["c"] = true
	r.addSite("d")
	if s := r.state("a", "d"); s != "member" || r.serves("d") {
		t.Fatalf("d is %q, and serves: %t", s, r.serves("d"))
	}
	r.drainSite("a", "d", "")
	r.loses = func(e *message.Envelope) bool { return e.Leave != nil && e.Leave.Kind == message.LeaveEmpty }
	delete(r.cut, "c")
	r.advance(20_000)
	if !r.serves("d") {
		t.Errorf("d: %+v", r.cores["d"].Status())
	}
	r.loses = nil
	r.advance(3 * leavingRetention)
	if s := r.state("a", "d"); s != "gone" {
		t.Errorf("d is %q", s)
	}
}

// TestARetirementBehindAnAdmission: members ask to retire a site while they admit another
// one. The retirement was proposed for other voters, and is asked for again.
func TestARetirementBehindAnAdmission(t *testing.T) {
	r := newLeavingRig(t, 4)
	r.create("e", 400)
	r.drainSite("a", "d", "")
	r.loses = func(e *message.Envelope) bool {
		return e.From() == "e" || e.Leave != nil && e.Leave.Kind == message.LeaveEmpty
	}
	r.addSite("e")
	r.advance(3 * leavingRetention)
	var empty *message.Envelope
	for i := range r.sent {
		if l := r.sent[i].Leave; l != nil && l.Kind == message.LeaveEmpty {
			empty = &r.sent[i]
		}
	}
	if empty == nil {
		t.Fatalf("d: %+v", r.cores["d"].Status())
	}
	r.loses = func(e *message.Envelope) bool { return e.Leave != nil && e.Leave.Kind == message.LeaveEmpty }
	for r.sent = nil; !r.decides(); {
		r.advance(1)
	}
	for _, site := range []core.SiteID{"a", "b", "c"} {
		l := *empty.Leave
		l.To = site
		r.step(site, input.Deliver{From: "d", Messages: []message.Envelope{{Leave: &l, Mark: empty.Mark}}})
	}
	r.advance(10_000)
	if d, e := r.state("a", "d"), r.state("a", "e"); d != "draining" || e != "member" {
		t.Fatalf("d is %q, e is %q", d, e)
	}
	r.loses = nil
	r.advance(10_000)
	if s := r.state("a", "d"); s != "gone" {
		t.Errorf("d is %q", s)
	}
}

// decides reports whether a site has asked others to accept changes of the catalogue.
func (r *rig) decides() bool {
	return slices.ContainsFunc(r.sent, func(e message.Envelope) bool {
		return e.Entity == "" && e.Message.Kind == avantan.Accept
	})
}

// TestNobodyVouchesForWhoIsGone: a member that is not vouched for itself does not vouch
// for a site that has left either.
func TestNobodyVouchesForWhoIsGone(t *testing.T) {
	r := fenced(t, 3, func(c *core.Config) { c.Retention = leavingRetention })
	r.advance(1000)
	r.create("e", 30)
	r.drainSite("a", "c", "")
	r.advance(3 * leavingRetention)
	if s := r.state("a", "c"); s != "gone" {
		t.Fatalf("c is %q", s)
	}
	r.restart("c")
	r.advance(1000)
	asked := r.askedWith("c")
	r.cut["b"] = true
	r.restart("a")
	r.sent = nil
	r.step("a", input.Deliver{From: "c", Messages: []message.Envelope{{Vouch: &message.Vouch{
		Kind: message.VouchAsk, From: "c", To: "a", Asked: asked,
	}}}})
	for _, e := range r.sent {
		if e.To() == "c" {
			t.Errorf("a says %+v", e)
		}
	}
}

// TestALeaseComesBackToALeaver: a lease of a site that drains comes back at other sites,
// which still take the leaver for its home. The heir gives it back.
func TestALeaseComesBackToALeaver(t *testing.T) {
	for _, at := range []core.SiteID{"a", "b"} {
		r := newLeavingRig(t, 3)
		r.create("e", 300)
		r.lendAt("c", 40, 600_000)
		r.drainSite("a", "c", "a")
		r.loses = func(e *message.Envelope) bool { return e.Leave != nil && e.Leave.Kind == message.LeaveEmpty }
		r.advance(3 * leavingRetention)
		if c, a := r.cores["c"].Status(), r.cores["a"].Status(); c.Leases != 0 || a.Leases != 1 {
			t.Fatalf("c: %+v; a: %+v", c, a)
		}
		call := r.nextCall()
		r.step(at, &input.Release{
			Call: call, Entity: "e", Tokens: 40, Request: key("return"), Lease: &input.LeaseRef{Home: "c", Request: attempt.KeyOf("lease")},
		})
		r.wantCode(r.answer(call), answer.OK)
		r.advance(5000)
		if s := r.cores[at].Status(); s.Claims != 0 {
			t.Errorf("at %s: %d claims are open", at, s.Claims)
		}
		if _, _, net := r.books("e"); net != 0 {
			t.Errorf("back at %s: %d are out", at, net)
		}
		r.loses = nil
		r.advance(3 * leavingRetention)
		if s := r.state("a", "c"); s != "gone" {
			t.Errorf("back at %s: c is %q", at, s)
		}
	}
}
