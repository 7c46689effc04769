package core_test

import (
	"testing"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
)

// tryAsync makes an attempt that may wait.
func (r *rig) tryAsync(site core.SiteID, tokens core.Tokens, id string, wait core.Tick, t input.Tries) input.Call {
	call := r.nextCall()
	r.step(site, &input.Acquire{Call: call, Entity: "e", Tokens: tokens, Request: key(id), Wait: wait, Tries: t})
	return call
}

func TestPlacedAttempts(t *testing.T) {
	const horizon = 290_000
	for name, tc := range map[string]struct {
		attempt  attempt.Number
		tried    []core.SiteID
		notAfter int64
		want     answer.Code
		claims   int
	}{
		"first":                        {},
		"first until now":              {notAfter: 0},
		"first within the horizon":     {notAfter: horizon},
		"first beyond the horizon":     {notAfter: horizon + 1, want: answer.Invalid},
		"first too late":               {notAfter: -1, want: answer.Expired},
		"first that tried":             {attempt: attempt.Of(1, 0), tried: []core.SiteID{"b"}, notAfter: 1, want: answer.Invalid},
		"later":                        {attempt: attempt.Of(2, 0), tried: []core.SiteID{"b"}, notAfter: 1, claims: 1},
		"later too late":               {attempt: attempt.Of(2, 0), tried: []core.SiteID{"b"}, notAfter: -1, want: answer.Expired},
		"later without a time":         {attempt: attempt.Of(2, 0), tried: []core.SiteID{"b"}, notAfter: 1 << 62, want: answer.Invalid},
		"later beyond the horizon":     {attempt: attempt.Of(2, 0), tried: []core.SiteID{"b"}, notAfter: horizon + 1, want: answer.Invalid},
		"later anywhere":               {attempt: attempt.Of(2, 0), notAfter: 1, claims: 2},
		"later here":                   {attempt: attempt.Of(2, 0), tried: []core.SiteID{}, notAfter: 1},
		"later at itself":              {attempt: attempt.Of(2, 0), tried: []core.SiteID{"a"}, notAfter: 1},
		"later twice at another":       {attempt: attempt.Of(2, 0), tried: []core.SiteID{"c", "c"}, notAfter: 1, claims: 1},
		"later at a stranger":          {attempt: attempt.Of(2, 0), tried: []core.SiteID{"z"}, notAfter: 1, want: answer.Invalid},
		"relayed after another":        {attempt: attempt.Of(1, 1), tried: []core.SiteID{"b"}, notAfter: 1, claims: 1},
		"relayed after none":           {attempt: attempt.Of(1, 1), notAfter: 1},
		"relayed without a time":       {attempt: attempt.Of(1, 1), tried: []core.SiteID{"b"}, want: answer.Invalid},
		"relayed of a later, anywhere": {attempt: attempt.Of(3, 2), notAfter: 1, claims: 2},
	} {
		t.Run(name, func(t *testing.T) {
			r := claimRig(t, nil)
			for _, s := range []core.SiteID{"b", "c"} {
				r.hold(s, true)
			}
			tries := input.Tries{Attempt: tc.attempt, Tried: tc.tried}
			if tc.notAfter != 0 {
				tries.NotAfter = r.now.Wall + tc.notAfter
			}
			if name == "later without a time" {
				tries.NotAfter = 0
			}
			r.wantCode(r.try("a", 10, "x", tries), tc.want)
			asked := 0
			for _, e := range r.sent {
				if e.Claims != nil {
					asked += len(e.Claims.Asks)
				}
			}
			if asked != tc.claims {
				t.Errorf("%d sites were asked, want %d", asked, tc.claims)
			}
			net := core.Tokens(0)
			if tc.want == answer.OK {
				net = 10
			}
			r.wantNets(net, 0, 0)
		})
	}
}

// TestLaterAttemptTakesOver: a later attempt at a site gets the outcome of the earlier
// attempt there, and only the later attempt counts from then on.
func TestLaterAttemptTakesOver(t *testing.T) {
	r := claimRig(t, nil)
	r.wantCode(r.try("a", 10, "x", r.tries(1)), answer.OK)
	r.wantCode(r.try("a", 150, "y", r.tries(1)), answer.OutOfTokens)
	r.wantCode(r.try("a", -10, "z", r.tries(1)), answer.OK)
	for _, again := range []string{"at once", "after a restart"} {
		for i := range uint32(2) {
			r.wantCode(r.try("a", 10, "x", r.tries(2+i)), answer.OK)
			r.wantCode(r.try("a", 150, "y", r.tries(2+i)), answer.OutOfTokens)
			r.wantCode(r.try("a", -10, "z", r.tries(2+i)), answer.OK)
		}
		r.wantCode(r.try("a", 10, "x", r.tries(1)), answer.Superseded)
		r.wantCode(r.try("a", 150, "y", r.tries(2)), answer.Superseded)
		r.wantCode(r.try("a", -10, "z", r.tries(1)), answer.Superseded)
		r.wantCode(r.try("a", 11, "x", r.tries(9)), answer.Reused)
		if t.Failed() {
			t.Fatal(again)
		}
		r.advance(100)
		r.restart("a")
		if again == "at once" {
			r.wantCode(r.try("a", 10, "x", r.tries(3)), answer.OK)
			break
		}
	}
	r.wantNets(0, 0, 0)
	r.wantClaims(0)
}

// TestBackToTheFirstSite: attempts at a, b and a again. The third attempt has the outcome
// of the first, unless b's undoing of the first came before; the second is undone.
func TestBackToTheFirstSite(t *testing.T) {
	for name, undone := range map[string]bool{"attempt before undoing": false, "undoing before attempt": true} {
		t.Run(name, func(t *testing.T) {
			r := claimRig(t, nil)
			r.wantCode(r.try("a", 10, "x", r.tries(1)), answer.OK)
			r.wantCode(r.try("a", -7, "y", r.tries(1)), answer.OK)
			r.hold("a", !undone)
			r.wantCode(r.try("b", 10, "x", r.tries(2, "a")), answer.OK)
			r.wantCode(r.try("b", -7, "y", r.tries(2, "a")), answer.OK)
			r.advance(100)
			r.restart("a")
			r.restart("b")
			r.wantCode(r.try("a", 10, "x", r.tries(3, "b")), answer.OK)
			r.wantCode(r.try("a", -7, "y", r.tries(3, "b")), answer.OK)
			r.hold("a", false)
			r.advance(20_000)
			r.wantClaims(0)
			r.wantNets(3, 0, 0)
			r.wantCode(r.try("b", 10, "x", r.tries(2, "a")), answer.Superseded)
		})
	}
}

// TestShorterLists: a later attempt at a site names fewer sites. The site still asks the
// sites of the earlier attempt. Once another site has undone the earlier attempt, the
// site asks only the sites that the later attempt names.
func TestShorterLists(t *testing.T) {
	t.Run("release parked", func(t *testing.T) {
		r := claimRig(t, nil)
		r.hold("b", true)
		r.wantCode(r.try("b", -10, "x", r.tries(2)), answer.OK)
		r.wantCode(r.try("b", -10, "x", r.tries(3, "a")), answer.OK)
		r.hold("b", false)
		r.hold("c", true)
		r.advance(20_000)
		r.wantClaims(1)
		r.wantNets(0, 0, 0)
		r.hold("c", false)
		r.advance(20_000)
		r.wantClaims(0)
		r.wantNets(0, -10, 0)
	})
	t.Run("acquire waiting", func(t *testing.T) {
		r := claimRig(t, nil)
		for _, s := range r.names {
			r.wantCode(r.try(s, 100, "all "+string(s), input.Tries{}), answer.OK)
		}
		r.hold("b", true)
		first := r.tryAsync("b", 10, "x", 9000, r.tries(2))
		second := r.tryAsync("b", 10, "x", 9000, r.tries(3, "a"))
		r.wantCode(r.answer(first), answer.Superseded)
		r.wantCode(r.release("b", "e", 10, "back"), answer.OK)
		r.wantCode(r.answer(second), answer.OK)
		r.hold("b", false)
		r.hold("c", true)
		r.advance(20_000)
		r.wantClaims(1)
		r.hold("c", false)
		r.advance(20_000)
		r.wantClaims(0)
	})
	for name, kept := range map[string]bool{"release undone": false, "release undone before it is durable": true} {
		t.Run(name, func(t *testing.T) {
			r := claimRig(t, nil)
			r.hold("c", true)
			r.wantCode(r.try("c", -10, "x", r.tries(3, "a", "b")), answer.OK)
			if kept {
				r.cores["b"].Step(r.now, &input.Release{Call: "second", Entity: "e", Tokens: 10, Request: key("x"), Tries: r.tries(2)})
			} else {
				r.hold("b", true)
				r.wantCode(r.try("b", -10, "x", r.tries(2)), answer.OK)
				r.hold("b", false)
			}
			r.deliverClaims("c", "b")
			r.restart("b")
			r.hold("b", true)
			r.wantCode(r.try("b", -10, "x", r.tries(5, "c")), answer.OK)
			clear(r.cut)
			r.hold("a", true)
			r.advance(20_000)
			r.wantNets(0, -10, 0)
			r.wantClaims(0)
			r.wantCode(r.try("c", -10, "x", r.tries(3, "a", "b")), answer.Superseded)
		})
	}
}

// TestThreeSitesOneRelease: two sites have the release parked and ask each other and the
// first site, in any order.
func TestThreeSitesOneRelease(t *testing.T) {
	for name, first := range map[string][]core.SiteID{"b asks first": {"c"}, "c asks first": {"b"}, "at once": nil} {
		t.Run(name, func(t *testing.T) {
			r := claimRig(t, nil)
			r.hold("a", true)
			r.hold("b", true)
			r.hold("c", true)
			r.wantCode(r.try("b", -10, "x", r.tries(2, "a")), answer.OK)
			r.wantCode(r.try("c", -10, "x", r.tries(3, "a", "b")), answer.OK)
			clear(r.cut)
			for _, s := range first {
				r.hold(s, true)
			}
			r.advance(9000)
			clear(r.cut)
			r.advance(20_000)
			r.wantClaims(0)
			if _, _, net := r.books("e"); net != -10 {
				t.Errorf("net %d", net)
			}
			r.wantCode(r.try("a", -10, "x", r.tries(1)), answer.Superseded)
		})
	}
}

// TestWaitingAttempts: a waiting acquire goes on for a later attempt, and its site asks
// others once the acquire is answered.
func TestWaitingAttempts(t *testing.T) {
	r := claimRig(t, nil)
	for _, s := range r.names {
		r.wantCode(r.try(s, 100, "all "+string(s), input.Tries{}), answer.OK)
	}
	r.hold("a", true)
	first := r.tryAsync("a", 10, "x", 5000, r.tries(1))
	r.advance(100)
	second := r.tryAsync("a", 10, "x", 10_000, r.tries(3, "b"))
	r.wantCode(r.answer(first), answer.Superseded)
	r.wantCode(r.answer(r.tryAsync("a", 10, "x", 5000, r.tries(2))), answer.Superseded)
	r.wantCode(r.answer(r.tryAsync("a", 11, "x", 5000, r.tries(4))), answer.Reused)
	r.advance(6000)
	r.unanswered(second)
	r.wantClaims(0)
	r.wantCode(r.release("a", "e", 10, "back"), answer.OK)
	r.wantCode(r.answer(second), answer.OK)
	r.wantClaims(1)
	r.hold("a", false)
	r.advance(20_000)
	r.wantClaims(0)
	r.wantNets(100, 100, 100)
}

// TestWaitingAttemptIsDropped when another site asks about it.
func TestWaitingAttemptIsDropped(t *testing.T) {
	r := claimRig(t, nil)
	for _, s := range r.names {
		r.wantCode(r.try(s, 100, "all "+string(s), input.Tries{}), answer.OK)
	}
	r.hold("b", true)
	dropped := r.tryAsync("b", 10, "y", 5000, r.tries(1))
	behind := r.tryAsync("b", 5, "z", 9000, r.tries(1))
	r.unanswered(dropped)
	r.wantCode(r.try("a", 10, "y", r.tries(2, "b")), answer.OutOfTokens)
	r.deliverClaims("a", "b")
	r.wantCode(r.answer(dropped), answer.Superseded)
	r.wantCode(r.try("b", 10, "y", r.tries(1)), answer.Superseded)
	r.wantCode(r.release("b", "e", 5, "back b"), answer.OK)
	r.wantCode(r.answer(behind), answer.OK)
	r.hold("b", false)
	r.advance(10_000)
	r.wantClaims(0)
}

// TestNobodyWaitsBeyondNotAfter, also a caller that asked to wait longer.
func TestNobodyWaitsBeyondNotAfter(t *testing.T) {
	r := claimRig(t, nil)
	r.hold("a", true)
	call := r.tryAsync("a", 150, "x", 60_000, input.Tries{NotAfter: r.now.Wall + 2000})
	r.advance(1999)
	r.unanswered(call)
	r.advance(1)
	r.wantCode(r.answer(call), answer.OutOfTokens)
}

// TestOutcomesOfOneTransaction: a record and its replacement in the same transaction. The
// later record stands, also after a restart.
func TestOutcomesOfOneTransaction(t *testing.T) {
	r := claimRig(t, func(c *core.Config) { c.Retention = 20_000 })
	r.base -= 50_000
	for i := range uint32(3) {
		r.cores["a"].Step(r.now, &input.Acquire{Call: id("call", int(i)), Entity: "e", Tokens: 10, Request: key("x"), Tries: r.tries(1+i, "b")})
		if i == 0 {
			r.cores["a"].Step(r.now, &input.Acquire{Call: "first", Entity: "e", Tokens: 10, Request: key("x")})
		}
	}
	r.drain("a")
	r.wantCode(r.answer("first"), answer.OK)
	r.restart("a")
	r.wantCode(r.try("a", 10, "x", r.tries(3, "b")), answer.OK)
	r.wantCode(r.try("a", 10, "x", r.tries(2, "b")), answer.Superseded)
	r.advance(19_000)
	r.wantClaims(0)
	r.wantNets(10, 0, 0)
	r.advance(2000)
	r.try("a", 1, "sweeps", input.Tries{})
	if n := r.cores["a"].Status().Requests; n != 1 {
		t.Errorf("%d requests are kept", n)
	}
}
