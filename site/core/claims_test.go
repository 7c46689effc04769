package core_test

import (
	"slices"
	"testing"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
)

// tries is attempt count of a request, after attempts at the sites tried.
func (r *rig) tries(count uint32, tried ...core.SiteID) input.Tries {
	return input.Tries{Attempt: attempt.Of(count, 0), Tried: tried, NotAfter: r.base + 60_000}
}

// try makes an attempt to acquire, or with negative tokens to release, that does not
// wait.
func (r *rig) try(site core.SiteID, tokens core.Tokens, id string, t input.Tries) answer.Answer {
	r.t.Helper()
	call := r.nextCall()
	if tokens < 0 {
		r.step(site, &input.Release{Call: call, Entity: "e", Tokens: -tokens, Request: key(id), Tries: t})
	} else {
		r.step(site, &input.Acquire{Call: call, Entity: "e", Tokens: tokens, Request: key(id), Tries: t})
	}
	return r.answer(call)
}

// hold cuts a site off, or connects it again.
func (r *rig) hold(site core.SiteID, on bool) { r.cut[site] = on }

// deliverClaims delivers all messages about requests that a site has sent another, lost
// or not.
func (r *rig) deliverClaims(from, to core.SiteID) {
	for _, e := range slices.Clone(r.sent) {
		if e.Claims != nil && e.From() == from && e.To() == to {
			r.step(to, input.Deliver{From: from, Messages: []message.Envelope{e}})
		}
	}
}

// nets are the nets of all sites, in order.
func (r *rig) nets() []core.Tokens {
	var nets []core.Tokens
	for _, name := range r.names {
		nets = append(nets, r.view(name, "e").Net)
	}
	return nets
}

func (r *rig) wantNets(want ...core.Tokens) {
	r.t.Helper()
	if got := r.nets(); !slices.Equal(got, want) {
		r.t.Errorf("nets %v, want %v", got, want)
	}
	left, offered, net := r.books("e")
	if left+offered+net+r.surplus("e") != claimLimit {
		r.t.Errorf("left %d, offered %d, net %d", left, offered, net)
	}
}

func (r *rig) wantClaims(want int) {
	r.t.Helper()
	n := 0
	for _, name := range r.names {
		n += r.cores[name].Status().Claims
	}
	if n != want {
		r.t.Errorf("%d claims, want %d", n, want)
	}
}

const claimLimit = 300

// claimRig has three sites with 100 tokens each, that move none by themselves.
func claimRig(t *testing.T, tweak func(*core.Config)) *rig {
	t.Helper()
	r := newRig(t, 3, func(c *core.Config) {
		c.Trigger = "reactive"
		if tweak != nil {
			tweak(c)
		}
	})
	r.create("e", claimLimit)
	r.base = r.now.Wall
	return r
}

// TestAcquireAtTwoSites: the tokens that the first site granted come back once the second
// site hears of them, whatever the second site answered.
func TestAcquireAtTwoSites(t *testing.T) {
	for name, restart := range map[string][]core.SiteID{"": nil, "restart a": {"a"}, "restart b": {"b"}, "restart both": {"a", "b"}} {
		t.Run("granted"+name, func(t *testing.T) {
			r := claimRig(t, nil)
			r.wantCode(r.try("a", 10, "x", r.tries(1)), answer.OK)
			r.hold("a", true)
			r.wantCode(r.try("b", 10, "x", r.tries(2, "a")), answer.OK)
			r.advance(500)
			r.wantNets(10, 10, 0)
			r.wantClaims(1)
			for _, s := range restart {
				r.restart(s)
			}
			r.hold("a", false)
			r.advance(20_000)
			r.wantNets(0, 10, 0)
			r.wantClaims(0)
			r.wantCode(r.try("a", 10, "x", r.tries(1)), answer.Superseded)
			r.wantCode(r.try("b", 10, "x", r.tries(2, "a")), answer.OK)
			r.wantNets(0, 10, 0)
		})
		t.Run("refused"+name, func(t *testing.T) {
			r := claimRig(t, nil)
			r.wantCode(r.try("b", 95, "y", r.tries(1)), answer.OK)
			r.wantCode(r.try("a", 10, "x", r.tries(1)), answer.OK)
			r.hold("a", true)
			r.wantCode(r.try("b", 10, "x", r.tries(2, "a")), answer.OutOfTokens)
			for _, s := range restart {
				r.restart(s)
			}
			r.hold("a", false)
			r.advance(20_000)
			r.wantNets(0, 95, 0)
			r.wantClaims(0)
			r.wantCode(r.try("b", 10, "x", r.tries(2, "a")), answer.OutOfTokens)
		})
		t.Run("never came"+name, func(t *testing.T) {
			r := claimRig(t, nil)
			r.wantCode(r.try("b", 10, "x", r.tries(2, "a")), answer.OK)
			for _, s := range restart {
				r.restart(s)
			}
			r.advance(10_000)
			r.wantClaims(0)
			for _, s := range restart {
				r.restart(s)
			}
			// The first attempt comes after all.
			r.wantCode(r.try("a", 10, "x", r.tries(1)), answer.Superseded)
			r.wantNets(0, 10, 0)
		})
	}
}

// TestReleaseAtTwoSites: a release counts where it ran first. It counts at the second
// site only once that site knows that the release did not and will not run at the first.
func TestReleaseAtTwoSites(t *testing.T) {
	for name, restart := range map[string][]core.SiteID{"": nil, "restart a": {"a"}, "restart b": {"b"}, "restart both": {"a", "b"}} {
		again := func(r *rig) {
			for _, s := range restart {
				r.restart(s)
			}
		}
		t.Run("ran"+name, func(t *testing.T) {
			r := claimRig(t, nil)
			r.wantCode(r.try("c", 10, "held", r.tries(1)), answer.OK)
			r.wantCode(r.try("a", -10, "x", r.tries(1)), answer.OK)
			r.hold("a", true)
			a := r.try("b", -10, "x", r.tries(2, "a"))
			if r.wantCode(a, answer.OK); !a.Parked {
				t.Errorf("not parked: %+v", a)
			}
			r.advance(500)
			again(r)
			r.wantNets(-10, 0, 10)
			r.hold("a", false)
			r.advance(20_000)
			r.wantClaims(0)
			r.wantNets(-10, 0, 10)
			r.wantCode(r.try("b", -10, "x", r.tries(2, "a")), answer.OK)
			r.wantNets(-10, 0, 10)
		})
		t.Run("never came"+name, func(t *testing.T) {
			r := claimRig(t, nil)
			r.wantCode(r.try("c", 10, "held", r.tries(1)), answer.OK)
			r.hold("a", true)
			r.wantCode(r.try("b", -10, "x", r.tries(2, "a")), answer.OK)
			again(r)
			r.advance(500)
			r.wantNets(0, 0, 10)
			r.hold("a", false)
			r.advance(20_000)
			r.wantNets(0, -10, 10)
			r.wantClaims(0)
			again(r)
			r.wantCode(r.try("a", -10, "x", r.tries(1)), answer.Superseded)
			r.wantCode(r.try("b", -10, "x", r.tries(2, "a")), answer.OK)
			r.wantNets(0, -10, 10)
		})
	}
}
