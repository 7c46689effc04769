package core_test

import (
	"testing"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
)

// asks counts the messages with claims that a site has sent another after r.sent[:since],
// and the claims in them.
func (r *rig) asks(from, to core.SiteID, since int) (messages, asks int) {
	for _, e := range r.sent[since:] {
		if e.Claims != nil && len(e.Claims.Asks) > 0 && e.From() == from && e.To() == to {
			messages++
			asks += len(e.Claims.Asks)
			if len(e.Claims.Asks) > 512 {
				r.t.Errorf("%d asks in a message", len(e.Claims.Asks))
			}
		}
	}
	return messages, asks
}

// TestAskingBacksOff: a site that does not answer is asked after 1, 2, 4 and then
// every 8 seconds, and at once when it comes up.
func TestAskingBacksOff(t *testing.T) {
	r := claimRig(t, nil)
	r.hold("a", true)
	r.step("b", input.Reachable{Sites: []core.SiteID{"a", "c"}})
	r.wantCode(r.try("b", 10, "x", r.tries(2, "a")), answer.OK)
	at := 0
	for i, pause := range []core.Tick{0, 1000, 1000, 2000, 4000, 8000, 8000} {
		if pause > 0 {
			r.advance(pause - 1)
			if n, _ := r.asks("b", "a", at); n != 0 {
				t.Fatalf("asked %d times before ask %d", n, i)
			}
			r.advance(1)
		}
		if n, asks := r.asks("b", "a", at); n != 1 || asks != 1 {
			t.Fatalf("ask %d: %d messages, %d asks", i, n, asks)
		}
		at = len(r.sent)
	}
	r.step("b", input.Reachable{Sites: []core.SiteID{"c"}})
	r.step("b", input.Reachable{Sites: []core.SiteID{"a", "c"}})
	r.advance(1)
	if n, _ := r.asks("b", "a", at); n != 1 {
		t.Errorf("asked %d times as it came up", n)
	}
}

// TestManyClaims: claims that have piled up for a site go out in messages of bounded
// length, each after the answer to the message before. They are settled soon, also after
// a restart.
func TestManyClaims(t *testing.T) {
	const n = 3000
	for name, restart := range map[string]bool{"": false, "restarted": true} {
		t.Run(name, func(t *testing.T) {
			r := claimRig(t, nil)
			r.hold("a", true)
			for i := range n {
				r.cores["b"].Step(r.now, &input.Release{Call: i + 1e6, Entity: "e", Tokens: 1, Request: key(id("x", i)), Tries: r.tries(2, "a")})
			}
			r.drain("b")
			r.advance(20_000)
			r.wantClaims(n)
			if restart {
				r.restart("b")
			}
			at := len(r.sent)
			r.hold("a", false)
			r.advance(8500)
			r.wantClaims(0)
			r.wantNets(0, -n, 0)
			if _, asks := r.asks("b", "a", at); asks > n+1024 {
				t.Errorf("%d asks", asks)
			}
		})
	}
}

// TestClaimsAreBounded for each site, independently of the other sites.
func TestClaimsAreBounded(t *testing.T) {
	r := claimRig(t, func(c *core.Config) { c.MaxClaims = 2 })
	r.hold("a", true)
	r.wantCode(r.try("b", 1, "x", r.tries(2, "a")), answer.OK)
	r.wantCode(r.try("b", -1, "y", r.tries(2, "a")), answer.OK)
	r.wantCode(r.try("b", 1, "z", r.tries(2, "a")), answer.Overloaded)
	r.wantCode(r.try("b", -1, "r", r.tries(2, "a", "c")), answer.Overloaded)
	call := r.nextCall()
	r.step("b", &input.Release{Call: call, Entity: "e", Tokens: 1, Request: key("l"), Lease: &input.LeaseRef{Home: "a", Request: key("lease")}})
	r.wantCode(r.answer(call), answer.Overloaded)
	r.wantCode(r.try("b", 1, "other", r.tries(2, "c")), answer.OK)
	r.wantCode(r.try("b", 1, "first", r.tries(1)), answer.OK)
	r.wantCode(r.try("b", 1, "x", r.tries(2, "a")), answer.OK)
	r.hold("a", false)
	r.advance(20_000)
	r.wantCode(r.try("b", 1, "z", r.tries(2, "a")), answer.OK)
}

// TestLateAnswerMeansNoOtherClaim: a late answer settles neither a claim made after a
// restart, with all claims before it settled, nor the claim of a later attempt.
func TestLateAnswerMeansNoOtherClaim(t *testing.T) {
	r := claimRig(t, func(c *core.Config) { c.Retention, c.Skew = 20_000, 2_000 })
	r.base = r.now.Wall - 50_000
	r.wantCode(r.try("b", -10, "x", r.tries(2, "a")), answer.OK)
	r.advance(1000)
	r.wantClaims(0)
	r.advance(60_000)
	r.restart("b")
	r.base = r.now.Wall - 50_000
	r.hold("a", true)
	r.wantCode(r.try("b", -20, "y", r.tries(2, "a")), answer.OK)
	r.wantNets(0, -10, 0)
	r.deliverClaims("a", "b")
	r.wantNets(0, -10, 0)

	// a never ran attempt 1, and then runs attempt 3.
	r = claimRig(t, nil)
	r.wantCode(r.try("b", -10, "x", r.tries(2, "a")), answer.OK)
	r.hold("b", true)
	r.advance(100)
	r.wantCode(r.try("a", -10, "x", r.tries(3, "b")), answer.OK)
	r.wantCode(r.try("b", -10, "x", r.tries(4, "a")), answer.OK)
	r.deliverClaims("a", "b")
	r.hold("b", false)
	r.advance(20_000)
	r.wantClaims(0)
	if _, _, net := r.books("e"); net != -10 {
		t.Errorf("net %d", net)
	}
}

// TestUnknownAnswersAreIgnored: also answers of a site that was not asked.
func TestUnknownAnswersAreIgnored(t *testing.T) {
	r := claimRig(t, nil)
	r.hold("a", true)
	r.wantCode(r.try("b", -10, "x", r.tries(2, "a")), answer.OK)
	r.wantClaims(1)
	for _, e := range r.sent {
		if e.Claims != nil {
			for _, from := range []core.SiteID{"c", "z"} {
				r.step("b", input.Deliver{From: from, Messages: []message.Envelope{{Claims: &message.Claims{
					From: from, To: "b", Answers: []message.ClaimAnswer{{Number: e.Claims.Asks[0].Number, Verdict: message.NeverRan}, {Number: 1, Verdict: message.NeverRan}},
				}}}})
			}
		}
	}
	r.wantClaims(1)
	r.wantNets(0, 0, 0)
}

// tryLease makes an attempt to acquire a lease.
func (r *rig) tryLease(site core.SiteID, tokens core.Tokens, id string, t input.Tries) answer.Answer {
	r.t.Helper()
	call := r.nextCall()
	r.step(site, &input.Acquire{
		Call: call, Entity: "e", Tokens: tokens, Request: key(id), Tries: t,
		Lease: &input.LeaseTerms{ID: id, TTL: 3600_000},
	})
	return r.answer(call)
}

func (r *rig) tryReturn(site core.SiteID, tokens core.Tokens, id string, home core.SiteID, lease string, t input.Tries) answer.Answer {
	r.t.Helper()
	call := r.nextCall()
	r.step(site, &input.Release{
		Call: call, Entity: "e", Tokens: tokens, Request: key(id), Tries: t,
		Lease: &input.LeaseRef{Home: home, Request: key(lease)},
	})
	return r.answer(call)
}

// TestLeaseAtTwoSites: the tokens that the first lease still holds come back.
func TestLeaseAtTwoSites(t *testing.T) {
	r := claimRig(t, nil)
	r.wantCode(r.tryLease("a", 10, "l", r.tries(1)), answer.OK)
	r.wantCode(r.tryReturn("a", 4, "part", "a", "l", input.Tries{}), answer.OK)
	r.wantNets(6, 0, 0)
	a := r.tryLease("b", 10, "l", r.tries(2, "a"))
	if r.wantCode(a, answer.OK); a.Lease().Tokens != 10 {
		t.Errorf("lease %+v", a.Lease())
	}
	r.advance(1000)
	r.wantNets(0, 10, 0)
	r.wantClaims(0)
	// Back at the first site, the request gets a new lease.
	a = r.tryLease("a", 10, "l", r.tries(3, "b"))
	if r.wantCode(a, answer.OK); a.Lease().Tokens != 10 {
		t.Errorf("lease %+v", a.Lease())
	}
	r.advance(1000)
	r.wantNets(10, 0, 0)
}

// TestReturnElsewhere: tokens of a lease come back at the site that granted it, once for
// all attempts of the release, and no more than the lease holds.
func TestReturnElsewhere(t *testing.T) {
	for name, tc := range map[string]struct{ tokens, net core.Tokens }{"part": {4, 6}, "all": {0, 0}, "more": {99, 0}} {
		t.Run(name, func(t *testing.T) {
			r := claimRig(t, nil)
			r.wantCode(r.tryLease("a", 10, "l", input.Tries{}), answer.OK)
			r.hold("a", true)
			a := r.tryReturn("b", tc.tokens, "x", "a", "l", input.Tries{})
			if r.wantCode(a, answer.OK); !a.Parked {
				t.Errorf("not parked: %+v", a)
			}
			r.restart("b")
			r.wantCode(r.tryReturn("c", tc.tokens, "x", "a", "l", r.tries(2, "b")), answer.OK)
			r.wantNets(10, 0, 0)
			r.hold("a", false)
			r.advance(10_000)
			r.wantNets(tc.net, 0, 0)
			r.wantClaims(0)
			r.restart("a")
			r.wantCode(r.tryReturn("a", tc.tokens, "x", "a", "l", r.tries(3, "b", "c")), answer.OK)
			r.deliverClaims("b", "a")
			r.deliverClaims("c", "a")
			r.advance(1000)
			r.wantNets(tc.net, 0, 0)
			r.wantCode(r.tryReturn("b", tc.tokens, "x", "a", "l", input.Tries{}), answer.OK)
			r.wantNets(tc.net, 0, 0)
		})
	}
	t.Run("at home first", func(t *testing.T) {
		r := claimRig(t, nil)
		r.wantCode(r.tryLease("a", 10, "l", input.Tries{}), answer.OK)
		r.wantCode(r.tryReturn("a", 4, "x", "a", "l", r.tries(1)), answer.OK)
		r.wantCode(r.tryReturn("b", 4, "x", "a", "l", r.tries(2, "a")), answer.OK)
		r.advance(5000)
		r.wantNets(6, 0, 0)
		r.wantClaims(0)
	})
	t.Run("nowhere", func(t *testing.T) {
		r := claimRig(t, nil)
		r.wantCode(r.tryLease("a", 10, "l", input.Tries{}), answer.OK)
		r.wantCode(r.tryReturn("b", 4, "x", "z", "l", input.Tries{}), answer.Invalid)
		r.wantCode(r.tryReturn("b", 4, "y", "c", "l", input.Tries{}), answer.OK)
		r.advance(5000)
		r.wantNets(10, 0, 0)
		r.wantClaims(0)
	})
	t.Run("forgotten", func(t *testing.T) {
		r := claimRig(t, func(c *core.Config) { c.Retention, c.Skew = 20_000, 2_000 })
		r.wantCode(r.tryLease("a", 10, "l", input.Tries{}), answer.OK)
		r.hold("a", true)
		r.wantCode(r.tryReturn("b", 4, "x", "a", "l", input.Tries{}), answer.OK)
		r.deliverClaims("b", "a")
		r.wantNets(6, 0, 0)
		r.advance(30_000)
		r.try("a", 1, "sweeps", input.Tries{})
		r.hold("a", false)
		r.advance(10_000)
		r.wantNets(7, 0, 0)
		r.wantVerdicts(0, 0, 1)
	})
}
