package core_test

import (
	"testing"

	"github.com/samya-db/samya/avantan/transfer"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
)

func direct(c *core.Config) { c.Strategy, c.Trigger = "transfer", "reactive" }

// transfers counts the messages of direct transfers sent, by kind.
func (r *rig) transfers() map[transfer.Kind]int {
	n := make(map[transfer.Kind]int)
	for _, e := range r.sent {
		if e.Transfer != nil {
			n[e.Transfer.Kind]++
		}
	}
	return n
}

// TestATransferTakesOneRoundTrip: a waiting acquire is served after one round trip, no
// instance is begun, and clients of other sites notice nothing.
func TestATransferTakesOneRoundTrip(t *testing.T) {
	r := newRig(t, 5, direct)
	r.create("acme/vm", 500)
	call := r.acquireAsync("a", "acme/vm", 250, "half", 5000)
	r.advance(2*flight - 1)
	r.unanswered(call)
	r.wantCode(r.acquire("b", "acme/vm", 20, "meanwhile"), answer.OK)
	r.advance(1)
	r.wantCode(r.answer(call), answer.OK)
	if n := r.transfers(); n[transfer.Ask] != 4 || n[transfer.Transfer] != 4 {
		t.Errorf("sent %v, want four asks and four transfers", n)
	}
	if n := r.count(event.RedistributionApplied); n != 1 {
		t.Errorf("%d redistributions applied, want 1", n)
	}
	r.advance(1000)
	balanced(t, r, 500, 270)
	if v := r.view("a", "acme/vm"); v.Fetches != 1 || v.Applied != 0 {
		t.Errorf("%+v: want one round and no instance", v)
	}
}

// TestTokensUnderWaySurvive: a donor's tokens are under way when the receiver crashes,
// when the donor does, and when both do. The tokens come once.
func TestTokensUnderWaySurvive(t *testing.T) {
	for name, crash := range map[string][]core.SiteID{"receiver": {"a"}, "donor": {"b"}, "both": {"a", "b"}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 2, direct)
			r.create("acme/vm", 100)
			r.acquireAsync("a", "acme/vm", 80, "much", 5000)
			r.advance(flight)
			if v := r.view("b", "acme/vm"); v.Left > 20 {
				t.Fatalf("the donor still has %d", v.Left)
			}
			for _, site := range crash {
				r.cut[site] = true
			}
			r.advance(flight)
			for _, site := range crash {
				r.restart(site)
				r.cut[site] = false
			}
			r.advance(20_000)
			left, _, net := r.books("acme/vm")
			if left+net != 100 {
				t.Errorf("left %d, out %d; want 100 in all", left, net)
			}
			if net < 80 && name == "donor" {
				t.Errorf("%d out: what waited at the receiver was not served", net)
			}
		})
	}
}

// TestAReceiverThatIsGone: tokens sent to a site that is away are its own once it is
// back, and nobody grants them meanwhile.
func TestAReceiverThatIsGone(t *testing.T) {
	r := newRig(t, 3, direct)
	r.create("acme/vm", 300)
	r.acquireAsync("a", "acme/vm", 150, "much", 3000)
	r.advance(flight)
	r.cut["a"] = true
	for _, site := range []core.SiteID{"b", "c"} {
		r.step(site, input.Reachable{Sites: []core.SiteID{"b", "c"}})
	}
	gone := 300 - r.view("a", "acme/vm").Left - r.view("b", "acme/vm").Left - r.view("c", "acme/vm").Left
	if gone < 50 {
		t.Fatalf("%d tokens are under way, want at least 50", gone)
	}
	call := r.acquireAsync("b", "acme/vm", r.view("b", "acme/vm").Left+r.view("c", "acme/vm").Left+1, "also", 3000)
	r.advance(10_000)
	r.wantCode(r.answer(call), answer.OutOfTokens)
	r.cut["a"] = false
	r.advance(10_000)
	balanced(t, r, 300, r.view("a", "acme/vm").Net)
	r.advance(10_000)
	again := r.acquireAsync("b", "acme/vm", 150, "again", 5000)
	r.advance(10_000)
	r.wantCode(r.answer(again), answer.OK)
}

// TestADeletedEntityTakesNoTransfers: tokens under way when an entity is deleted do not
// come to an entity of the same name created later.
func TestADeletedEntityTakesNoTransfers(t *testing.T) {
	r := newRig(t, 3, direct)
	r.create("acme/vm", 300)
	r.acquireAsync("a", "acme/vm", 150, "much", 3000)
	r.advance(flight)
	r.cut["a"] = true
	r.wantCode(r.change("b", input.DeleteEntity, "acme/vm", 0, "delete"), answer.OK)
	r.wantCode(r.change("b", input.CreateEntity, "acme/vm", 90, "create again"), answer.OK)
	r.cut["a"] = false
	r.advance(20_000)
	balanced(t, r, 90, 0)
}

// TestGossip: a site knows the tokens left at the others of an entity with demand, and
// asks only sites that have any. It soon stops peering of an entity without demand.
func TestGossip(t *testing.T) {
	r := newRig(t, 4, func(c *core.Config) {
		direct(c)
		// A site that runs low asks nobody before somebody waits.
		c.Trigger = "reactive"
	})
	r.create("acme/vm", 400)
	for i := range 10 {
		r.wantCode(r.acquire("b", "acme/vm", 10, id("b", i)), answer.OK)
		r.advance(200)
	}
	r.advance(3000)
	r.sent = nil
	call := r.acquireAsync("a", "acme/vm", 150, "much", 3000)
	r.advance(2 * flight)
	r.wantCode(r.answer(call), answer.OK)
	for _, e := range r.sent {
		if e.Transfer != nil && e.Transfer.Kind == transfer.Ask && e.To() == "b" {
			t.Error("a site that told it has nothing was asked")
		}
	}
	r.advance(30_000)
	r.sent = nil
	r.advance(30_000)
	for _, e := range r.sent {
		if e.Gossip != nil {
			t.Fatalf("%+v is told of an entity without demand", e.Gossip)
		}
	}
}

// TestOneSiteSeesToAnother: a site with fading demand holds most tokens, and another
// expects to need more than it has. The first begins an instance on the other's behalf,
// once, and before anybody waits.
func TestOneSiteSeesToAnother(t *testing.T) {
	r := newRig(t, 3, func(c *core.Config) { c.Trigger, c.Forecast, c.Bin, c.Horizon = "ahead", "constant", 1000, 6 })
	r.create("e", 3000)
	// In each bin a takes ten tokens a hundred milliseconds, and gives them back: it
	// needs 50 at a time, and has ever fewer left.
	for i := range 300 {
		r.wantCode(r.acquire("a", "e", 10, id("a", i)), answer.OK)
		if i%10 == 9 {
			r.wantCode(r.release("a", "e", 70, id("r", i)), answer.OK)
		}
		r.advance(100)
	}
	if n := r.begun(); n["ahead"] == 0 || n["reactive"] > 0 {
		t.Errorf("begun: %v", n)
	}
	if n := r.begun()["ahead"]; n > 3 {
		t.Errorf("%d begun in half a minute", n)
	}
}
