package core_test

import (
	"fmt"
	"testing"

	"github.com/samya-db/samya/avantan/handoff"
	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
)

// share asks for a lease of share of "llm".
func (r *rig) share(site core.SiteID, tokens core.Tokens, id string, ttl core.Tick) answer.Answer {
	r.t.Helper()
	call := r.nextCall()
	r.step(site, &input.Acquire{
		Call: call, Entity: "llm", Tokens: tokens, Request: key(id),
		Lease: &input.LeaseTerms{ID: id, TTL: ttl, Share: true},
	})
	a := r.answer(call)
	if a.Code == answer.OK && (!a.Lease().Share || a.Lease().Tokens != tokens) {
		r.t.Errorf("a lease of share of %d tokens is %+v", tokens, a.Lease())
	}
	return a
}

// endings are all ways in which a lease of share "s" of 6 tokens at a ends.
var endings = map[string]func(r *rig){
	"committed": func(r *rig) {
		if a := r.commit("a", "s", 1, "commit"); a.Code != answer.OK || a.Returned != 0 || a.Tokens != 1 {
			r.t.Errorf("a commit says %+v", a)
		}
	},
	"given back": func(r *rig) { r.wantCode(r.giveBack("a", "llm", "s", 0, "back"), answer.OK) },
	"in parts": func(r *rig) {
		r.wantCode(r.giveBack("a", "llm", "s", 4, "some"), answer.OK)
		r.wantCode(r.giveBack("a", "llm", "s", 2, "last part"), answer.OK)
	},
	"expired": func(*rig) {},
}

// TestShareOfABucket: a share that is held does not come back and refills nothing. However
// the lease ends, its tokens come back as any that are granted then.
func TestShareOfABucket(t *testing.T) {
	for _, durable := range []bool{false, true} {
		for name, end := range endings {
			t.Run(fmt.Sprintf("%s/durable %t", name, durable), func(t *testing.T) {
				terms := bucket
				terms.Volatile = !durable
				r := flowing(t, terms, nil)
				r.wantCode(r.share("a", 6, "s", 120_001), answer.OK)
				r.wantFlow("a", 4, 6)
				r.advance(60_000)
				r.wantFlow("a", 4, 6)
				r.wantCode(r.acquire("a", "llm", 4, "the rest"), answer.OK)
				r.advance(14_998)
				r.wantFlow("a", 0, 10)
				r.advance(3)
				r.wantFlow("a", 1, 9) // a share of 4 a minute, not of 10
				r.advance(44_999)
				r.wantFlow("a", 4, 6)
				end(r)
				r.wantFlow("a", 4, 6)
				r.advance(5998)
				r.wantFlow("a", 4, 6)
				r.advance(4)
				r.wantFlow("a", 5, 5)
				r.advance(60_000)
				r.wantFlow("a", 10, 0)
			})
		}
	}
}

// TestShareOfAWindow: a share that is held does not come back as a window begins. However the
// lease ends, its tokens come back in the window after the next.
func TestShareOfAWindow(t *testing.T) {
	for name, end := range endings {
		t.Run(name, func(t *testing.T) {
			r := rated(t, nil)
			r.wantCode(r.share("a", 6, "s", 120_000), answer.OK)
			r.wantWindow("a", 4, 6)
			r.advance(60_000)
			r.wantWindow("a", 4, 6)
			r.wantCode(r.acquire("a", "llm", 4, "the rest"), answer.OK)
			r.advance(59_999)
			end(r)
			r.wantWindow("a", 0, 10)
			if r.advance(1); name == "expired" {
				r.wantWindow("a", 4, 6)
				r.advance(60_000)
			}
			r.wantWindow("a", 4, 6)
			r.restart("a")
			r.advance(59_999)
			r.wantWindow("a", 4, 6)
			r.advance(1)
			r.wantWindow("a", 10, 0)
		})
	}
}

// TestSharesEndAgainAndAgain: tokens of leases that ended come back, however often later
// leases end.
func TestSharesEndAgainAndAgain(t *testing.T) {
	r := rated(t, nil)
	for n := range 6 {
		r.wantCode(r.share("a", 3, id("s", n), 100_000), answer.OK)
		r.wantCode(r.giveBack("a", "llm", id("s", n), 0, id("back", n)), answer.OK)
		if n > 0 {
			r.wantWindow("a", 4, 6)
		}
		r.advance(60_000)
	}
	r.advance(60_000)
	r.wantWindow("a", 10, 0)
}

// TestShareEndsInAWindowNobodyHasSeen: the window in which a lease ends counts, also if the
// site has not begun it.
func TestShareEndsInAWindowNobodyHasSeen(t *testing.T) {
	r := rated(t, nil)
	r.wantCode(r.share("a", 6, "s", 200_000), answer.OK)
	r.advance(130_000) // two windows on
	r.wantCode(r.giveBack("a", "llm", "s", 0, "back"), answer.OK)
	r.wantWindow("a", 4, 6)
	r.advance(60_000)
	r.wantWindow("a", 4, 6)
	r.advance(60_000)
	r.wantWindow("a", 10, 0)
}

// TestShareOverAStart: held tokens are held over a start. The other tokens of a volatile
// quota count as granted.
func TestShareOverAStart(t *testing.T) {
	for _, terms := range []rates.Terms{bucket, {Kind: rates.Bucket, Count: 1, Unit: rates.Minute}, minute, {Kind: rates.Window, Count: 1, Unit: rates.Minute, Volatile: true}} {
		t.Run(fmt.Sprintf("%s/volatile %t", terms.Kind, terms.Volatile), func(t *testing.T) {
			r := flowing(t, terms, nil)
			r.advance(core.Tick(60_000 - r.now.Wall%60_000))
			written := r.written["a"]
			r.wantCode(r.share("a", 6, "s", 500_000), answer.OK)
			if r.written["a"] == written {
				t.Error("nothing was written")
			}
			r.restart("a")
			if r.advance(1); terms.Volatile {
				r.wantFlowLeft("a", 0)
			} else {
				r.wantFlowLeft("a", 4)
			}
			r.advance(60_000)
			r.wantFlowLeft("a", 4)
			if a := r.renew("a", "s", 300_000); a.Code != answer.OK || !a.Lease().Share || a.Lease().Tokens != 6 {
				t.Errorf("the lease is %+v", a)
			}
			r.advance(299_000)
			r.wantFlowLeft("a", 4)
			r.advance(200_000)
			r.wantFlowLeft("a", 10)
		})
	}
}

// TestUnshareable: entities without leases of share refuse them, and so do terms out of range.
func TestUnshareable(t *testing.T) {
	r := flowing(t, sliding, nil)
	r.create("plain", 10)
	for _, entity := range []string{"llm", "plain"} {
		for _, dry := range []bool{false, true} {
			call := r.nextCall()
			r.step("a", &input.Acquire{
				Call: call, Entity: entity, Tokens: 1, Request: key("x"), DryRun: dry, Lease: &input.LeaseTerms{ID: "x", TTL: 1000, Share: true},
			})
			r.wantCode(r.answer(call), answer.Unshareable)
		}
	}
	r.wantCode(r.share("a", 1, "long", input.MaxShareTTL+1), answer.Invalid)
	// A share is another request than a lease.
	r = flowing(t, bucket, nil)
	r.wantCode(r.lease("a", "llm", 1, "s", 1000), answer.OK)
	r.wantCode(r.share("a", 1, "s", 1000), answer.Reused)
	r.wantCode(r.share("a", 1, "long", 1000), answer.OK)
	if a := r.renew("a", "long", input.MaxTTL); a.Code != answer.OK || a.Lease().Remaining != input.MaxShareTTL {
		t.Errorf("renewed to %+v", a)
	}
}

// TestShareOfALoweredLimit: while tokens beyond the limit are out, no lease of share is
// renewed. Its end pays.
func TestShareOfALoweredLimit(t *testing.T) {
	r := flowing(t, bucket, nil)
	for _, site := range r.names {
		r.wantCode(r.share(site, 10, "s "+string(site), 60_000), answer.OK)
	}
	r.wantCode(r.change("a", input.SetLimit, "llm", 9, "lower"), answer.OK)
	r.wantCode(r.renew("a", "s a", 60_000), answer.OutOfTokens)
	r.advance(130_000)
	if left, _, net := r.books("llm"); left+net != 9 {
		t.Errorf("%d left, %d out", left, net)
	}
}

// TestShareWithAnHeir: a lease of share goes to the heir of its site as such.
func TestShareWithAnHeir(t *testing.T) {
	for _, terms := range []rates.Terms{bucket, minute} {
		t.Run(string(terms.Kind), func(t *testing.T) {
			r := flowing(t, terms, func(c *core.Config) { c.Retention = leavingRetention })
			r.wantCode(r.share("c", 6, "s", 500_000), answer.OK)
			r.drainSite("b", "c", "a")
			r.advance(20_000)
			r.advance(180_000)
			v := r.view("a", "llm")
			if v.Net != 6 || v.Left+v.Net < 16 {
				t.Errorf("a has %+v", v)
			}
			if a := r.renew("a", "s", 400_000); a.Code != answer.OK || !a.Lease().Share {
				t.Errorf("the lease is %+v", a)
			}
			r.restart("a")
			r.advance(1)
			r.view("a", "llm") // a bucket fills from the first look on
			r.advance(200_000)
			if v := r.view("a", "llm"); v.Net != 6 {
				t.Errorf("later a has %+v", v)
			}
			r.wantCode(r.giveBack("a", "llm", "s", 0, "back"), answer.OK)
			r.advance(200_000)
			if v := r.view("a", "llm"); v.Net != 0 || v.Left != 20 && v.Left != 30 {
				t.Errorf("at last a has %+v", v)
			}
		})
	}
}

// TestShareOfALostHeir: if the heir is lost, a share on its way is lost with it, and does not
// come back at the leaver: the heir may have it, and its holder may go on.
func TestShareOfALostHeir(t *testing.T) {
	for name, kind := range map[string]handoff.Kind{"taken": handoff.Ack, "not taken": handoff.Bequeath} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 4, func(c *core.Config) { c.Trigger, c.Admission, c.Retention = "reactive", "refuse", leavingRetention })
			call := r.changeAsync("a", input.Change{Kind: input.CreateEntity, Name: "llm", Limit: 40, RequestID: "create", Rate: bucket})
			r.advance(2000)
			r.wantCode(r.answer(call), answer.OK)
			r.wantCode(r.share("d", 6, "s", 600_000), answer.OK)
			r.drainSite("b", "d", "a")
			r.advance(leavingRetention / 2)
			r.loses = func(e *message.Envelope) bool { return e.Handoff != nil && e.Handoff.Kind == kind }
			r.advance(2 * leavingRetention)
			if a, d := r.cores["a"].Status(), r.cores["d"].Status(); d.Leases != 1 || (a.Leases == 1) != (kind == handoff.Ack) {
				t.Fatalf("a: %+v; d: %+v", a, d)
			}
			r.loseHeir("b", "d", "a")
			r.advance(900_000)
			v := r.view("b", "llm")
			if left, offered, net := r.books("llm"); left != 20 || net != 0 || left+offered+net+v.WrittenOff != 40 {
				t.Errorf("%d left, %d offered, %d out, %d written off", left, offered, net, v.WrittenOff)
			}
		})
	}
}

// TestShareOfARescuedSite: once a lost site's data is back, its shares are held until their
// holders have ended.
func TestShareOfARescuedSite(t *testing.T) {
	r := newRig(t, 3, func(c *core.Config) { c.Trigger, c.Admission, c.Retention = "reactive", "refuse", leavingRetention })
	call := r.changeAsync("a", input.Change{Kind: input.CreateEntity, Name: "llm", Limit: 30, RequestID: "create", Rate: bucket})
	r.advance(2000)
	r.wantCode(r.answer(call), answer.OK)
	r.wantCode(r.share("c", 6, "s", 500_000), answer.OK)
	r.wantCode(r.lease("c", "llm", 1, "plain", 500_000), answer.OK)
	r.cut["c"] = true
	r.loseSite("a", "c")
	r.names = r.remaining("c")
	data := r.data("c")
	r.advance(20_000)
	rescued := r.rescueAsync("a", "c", &data, "llm", "rescue")
	r.advance(5000)
	r.wantCode(r.answer(rescued), answer.OK)
	r.advance(200_000)
	if left, _, net := r.books("llm"); left != 24 || net != 6 {
		t.Errorf("%d left, %d out", left, net)
	}
	r.advance(600_000)
	if left, _, net := r.books("llm"); left != 30 || net != 0 {
		t.Errorf("at last %d left, %d out", left, net)
	}
}
