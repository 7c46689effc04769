package core_test

import (
	"testing"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
)

func (r *rig) verdicts() map[message.ClaimVerdict]int {
	n := make(map[message.ClaimVerdict]int)
	for _, e := range r.events {
		if e.Kind == event.ClaimAnswered {
			n[e.Verdict]++
		}
	}
	return n
}

func (r *rig) wantVerdicts(never, ran, forgotten int) {
	r.t.Helper()
	n := r.verdicts()
	if n[message.NeverRan] != never || n[message.DidRun] != ran || n[message.Forgotten] != forgotten {
		r.t.Errorf("never %d, ran %d, forgotten %d; want %d, %d, %d",
			n[message.NeverRan], n[message.DidRun], n[message.Forgotten], never, ran, forgotten)
	}
}

// ask delivers a claim to a site from another, and returns the answers.
func (r *rig) ask(from, to core.SiteID, a message.ClaimAsk) []message.ClaimAnswer {
	before := len(r.sent)
	a.Number = 7
	r.step(to, input.Deliver{From: from, Messages: []message.Envelope{{Claims: &message.Claims{From: from, To: to, Asks: []message.ClaimAsk{a}}}}})
	var answers []message.ClaimAnswer
	for _, e := range r.sent[before:] {
		if e.Claims != nil {
			answers = append(answers, e.Claims.Answers...)
		}
	}
	return answers
}

// asked is the claim of b about an attempt at a that preceded b's.
func (r *rig) asked(tokens core.Tokens, id string) message.ClaimAsk {
	r.t.Helper()
	r.hold("b", true)
	before := len(r.sent)
	r.wantCode(r.try("b", tokens, id, r.tries(2, "a")), answer.OK)
	r.hold("b", false)
	for _, e := range r.sent[before:] {
		if e.Claims != nil {
			return e.Claims.Asks[0]
		}
	}
	r.t.Fatal("nobody is asked")
	return message.ClaimAsk{}
}

// TestAskedTwice: a repeated claim takes effect once, and a site that is no member gets
// no answer.
func TestAskedTwice(t *testing.T) {
	for name, tc := range map[string]struct {
		tokens, net core.Tokens
	}{"acquire": {10, 0}, "release": {-10, -10}} {
		t.Run(name, func(t *testing.T) {
			r := claimRig(t, nil)
			r.wantCode(r.try("a", tc.tokens, "x", r.tries(1)), answer.OK)
			ask := r.asked(tc.tokens, "x")
			if a := r.ask("z", "a", ask); len(a) != 0 {
				t.Errorf("a stranger is told %v", a)
			}
			for range 3 {
				if a := r.ask("b", "a", ask); len(a) != 1 || a[0].Number != 7 {
					t.Errorf("got %v", a)
				}
			}
			if v := r.view("a", "e"); v.Net != tc.net {
				t.Errorf("net %d", v.Net)
			}
			r.restart("a")
			r.ask("b", "a", ask)
			if v := r.view("a", "e"); v.Net != tc.net {
				t.Errorf("after a restart: net %d", v.Net)
			}
		})
	}
}

// TestAnotherBodyIsLeft: the id was used for another request there.
func TestAnotherBodyIsLeft(t *testing.T) {
	r := claimRig(t, nil)
	r.wantCode(r.try("a", 7, "x", r.tries(1)), answer.OK)
	r.wantCode(r.try("a", -7, "y", r.tries(1)), answer.OK)
	r.wantCode(r.try("b", 10, "x", r.tries(2, "a")), answer.OK)
	r.wantCode(r.try("b", -20, "y", r.tries(2, "a")), answer.OK)
	r.advance(10_000)
	r.wantNets(0, -10, 0)
	r.wantVerdicts(2, 0, 0)
}

// TestDeletedBetweenAttempts: nothing comes into the books of an entity created later
// under the same name.
func TestDeletedBetweenAttempts(t *testing.T) {
	r := claimRig(t, nil)
	r.wantCode(r.try("a", 10, "x", r.tries(1)), answer.OK)
	ask := r.asked(10, "x")
	parked := r.asked(-10, "y")
	r.hold("b", true)
	r.advance(1000)
	r.change("a", input.DeleteEntity, "e", 0, "delete")
	r.change("a", input.CreateEntity, "e", claimLimit, "create again")
	r.hold("b", false)
	r.ask("b", "a", ask)
	r.ask("b", "a", parked)
	r.advance(20_000)
	r.wantNets(0, 0, 0)
	r.wantClaims(0)
	r.wantCode(r.try("b", -10, "y", r.tries(2, "a")), answer.OK)
	r.wantNets(0, 0, 0)
	r.change("a", input.DeleteEntity, "e", 0, "delete again")
	if a := r.ask("b", "a", ask); len(a) != 1 {
		t.Errorf("of no entity: %v", a)
	}
}

// TestLaggingClock: a site whose clock is far behind does not answer until the clock is
// right: a record made now would be forgotten too early.
func TestLaggingClock(t *testing.T) {
	r := claimRig(t, nil)
	ask := r.asked(-10, "x")
	wall := r.now.Wall
	r.now.Wall = ask.NotAfter - 290_001
	if a := r.ask("b", "a", ask); len(a) != 0 {
		t.Errorf("answered %v", a)
	}
	r.now.Wall++
	if a := r.ask("b", "a", ask); len(a) != 1 {
		t.Errorf("answered %v", a)
	}
	r.now.Wall = wall
}

// TestForgottenRequest: a request that may have run at a site that has forgotten it does
// not count again, whoever asks. The site knows that a later request has not run.
func TestForgottenRequest(t *testing.T) {
	r := claimRig(t, func(c *core.Config) { c.Retention, c.Skew = 20_000, 2_000 })
	r.base = r.now.Wall - 50_000
	r.wantCode(r.try("a", -10, "x", r.tries(1)), answer.OK)
	r.wantCode(r.try("a", 10, "y", r.tries(1)), answer.OK)
	r.hold("a", true)
	r.wantCode(r.try("b", -10, "x", r.tries(2, "a")), answer.OK)
	r.wantCode(r.try("b", 10, "y", r.tries(2, "a")), answer.OK)
	r.wantCode(r.try("c", -10, "x", r.tries(3, "a", "b")), answer.OK)
	r.advance(25_000)
	r.try("a", 1, "sweeps", input.Tries{})
	r.wantCode(r.try("a", -10, "x", r.tries(1)), answer.Expired)
	r.hold("a", false)
	r.advance(20_000)
	r.wantClaims(0)
	if n := r.verdicts(); n[message.Forgotten] < 2 {
		t.Errorf("%v", n)
	}
	// The tokens of y are out at a, which cannot know.
	r.wantNets(1, 10, 0)

	r.base = r.now.Wall - 50_000
	r.hold("a", true)
	r.wantCode(r.try("b", -10, "late", r.tries(2, "a")), answer.OK)
	r.advance(15_000)
	r.hold("a", false)
	r.advance(10_000)
	r.wantNets(1, 0, 0)
	if r.wantCode(r.try("a", -10, "late", r.tries(1)), answer.Expired); r.cores["a"].Status().Requests > 1 {
		t.Error("what cannot come any more is remembered")
	}
}

// TestForgottenBeforeRestart: a site knows after a restart too that it forgot records,
// also when it did nothing else since.
func TestForgottenBeforeRestart(t *testing.T) {
	r := claimRig(t, func(c *core.Config) { c.Retention, c.Skew = 20_000, 2_000 })
	r.base = r.now.Wall - 50_000
	for i := range 200 {
		r.wantCode(r.try("a", -1, id("r", i), r.tries(1)), answer.OK)
	}
	r.hold("a", true)
	for i := range 200 {
		r.wantCode(r.try("b", -1, id("r", i), r.tries(2, "a")), answer.OK)
	}
	r.advance(25_000)
	r.cores["a"].Step(r.now, input.Wake{})
	r.drain("a")
	r.restart("a")
	r.advance(25_000)
	r.drain("a")
	r.restart("a")
	r.hold("a", false)
	r.advance(30_000)
	r.wantClaims(0)
	r.wantNets(-200, 0, 0)
}

// TestSettledAfterItWasForgotten: a parked release may be settled after its record has
// left memory. A restart finds the record on disk, and must not take the release for
// parked.
func TestSettledAfterItWasForgotten(t *testing.T) {
	for name, restart := range map[string]bool{"no restart": false, "a restart": true} {
		t.Run(name, func(t *testing.T) {
			r := claimRig(t, func(c *core.Config) { c.Retention, c.Skew = 20_000, 2_000 })
			r.base = r.now.Wall - 50_000
			r.hold("a", true)
			r.wantCode(r.try("c", -10, "x", r.tries(2, "a")), answer.OK)
			r.hold("c", true)
			r.wantCode(r.try("b", -10, "x", r.tries(3, "a", "c")), answer.OK)
			r.hold("b", true)
			r.advance(25_000)
			r.try("c", 1, "sweeps", input.Tries{})
			r.hold("a", false)
			r.hold("c", false)
			r.advance(10_000)
			r.wantNets(0, 0, -9)
			if restart {
				r.restart("c")
			}
			r.hold("b", false)
			r.advance(20_000)
			r.wantClaims(0)
			r.wantNets(0, 0, -9)
		})
	}
}

// TestSettledAfterItsEntityWasDeleted: a parked release may be settled after its record
// has left memory and another entity has got the name. The release stays a request of the
// deleted entity.
func TestSettledAfterItsEntityWasDeleted(t *testing.T) {
	r := claimRig(t, func(c *core.Config) { c.Retention, c.Skew = 20_000, 2_000 })
	r.base = r.now.Wall - 50_000
	r.hold("a", true)
	r.wantCode(r.try("c", -10, "x", r.tries(2, "a")), answer.OK)
	parked := r.recorded("c", stored.ReleaseRequest)
	r.wantCode(r.change("b", input.DeleteEntity, "e", 0, "delete"), answer.OK)
	r.wantCode(r.change("b", input.CreateEntity, "e", claimLimit, "create again"), answer.OK)
	r.advance(25_000)
	r.try("c", 1, "sweeps", input.Tries{})
	r.hold("a", false)
	r.advance(10_000)
	r.wantClaims(0)
	settled := r.recorded("c", stored.ReleaseRequest)
	if settled.Key != parked.Key || settled.State != stored.Dropped || settled.Generation != parked.Generation {
		t.Errorf("%+v\nwas parked as %+v", settled, parked)
	}
}

// recorded is the newest record of a kind on the disk of a site.
func (r *rig) recorded(site core.SiteID, kind stored.RequestKind) (newest stored.Request) {
	r.t.Helper()
	disk, err := r.disks[site].Load()
	if err != nil {
		r.t.Fatal(err)
	}
	blocks, err := disk.AllBlocks()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, b := range blocks {
		for _, record := range b.Records {
			if record.Kind == kind {
				newest = record
			}
		}
	}
	if newest.Kind != kind {
		r.t.Fatalf("%s has recorded no %v", site, kind)
	}
	return newest
}

// TestRestoredRecordsLastAnew: a site's down time does not count, as nobody could ask the
// site.
func TestRestoredRecordsLastAnew(t *testing.T) {
	r := claimRig(t, func(c *core.Config) { c.Retention, c.Skew = 20_000, 2_000 })
	r.base = r.now.Wall - 50_000
	r.wantCode(r.try("a", 10, "x", r.tries(1)), answer.OK)
	r.hold("a", true)
	r.wantCode(r.try("b", 10, "x", r.tries(2, "a")), answer.OK)
	r.now.Tick += 3_600_000
	r.now.Wall += 3_600_000
	r.restart("a")
	r.hold("a", false)
	r.advance(19_000)
	r.wantNets(0, 10, 0)
	r.wantVerdicts(0, 1, 0)
}

// TestRecordsAreKeptForMembersOutOfReach as long as fewer than half of them are out of
// reach.
func TestRecordsAreKeptForMembersOutOfReach(t *testing.T) {
	for name, tc := range map[string]struct {
		reachable []core.SiteID
		requests  int
		kept      bool
	}{
		"all in reach":          {[]core.SiteID{"b", "c"}, 1, false},
		"one out of reach":      {[]core.SiteID{"b"}, 1, true},
		"none in reach":         {[]core.SiteID{}, 49, true},
		"one, and half is full": {[]core.SiteID{"c"}, 50, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := claimRig(t, func(c *core.Config) { c.Retention, c.MaxRequests = 20_000, 100 })
			r.step("a", input.Reachable{Sites: tc.reachable})
			for i := range tc.requests {
				r.wantCode(r.try("a", 1, id("x", i), input.Tries{}), answer.OK)
				r.advance(1)
			}
			r.advance(60_000)
			r.try("a", 1, id("x", 0), input.Tries{})
			want := tc.requests + 1
			if tc.kept {
				want--
			}
			if v := r.view("a", "e"); v.Net != core.Tokens(want) {
				t.Errorf("net %d", v.Net)
			}
			r.step("a", input.Reachable{Sites: []core.SiteID{"b", "c"}})
			r.try("a", 1, "sweeps", input.Tries{})
			if n := r.cores["a"].Status().Requests; n > 2 {
				t.Errorf("%d are kept once all are in reach", n)
			}
		})
	}
}

// TestFullTableAnswersLater: clients that fill the table leave room for the claims of
// other sites. A claim that needs a record beyond that room is answered once there is
// room.
func TestFullTableAnswersLater(t *testing.T) {
	r := claimRig(t, func(c *core.Config) { c.Retention, c.MaxRequests = 20_000, 3 })
	r.base = r.now.Wall - 50_000
	r.wantCode(r.try("a", 1, "undone", r.tries(1)), answer.OK)
	r.wantCode(r.try("a", 1, "p", input.Tries{}), answer.OK)
	r.wantCode(r.try("a", 1, "q", input.Tries{}), answer.OK)
	r.wantCode(r.try("a", 1, "s", input.Tries{}), answer.Overloaded)
	if a := r.ask("b", "a", r.asked(-10, "w")); len(a) != 1 {
		t.Errorf("answered %v: clients have taken the room for what others ask", a)
	}
	ask, undo := r.asked(-10, "x"), r.asked(1, "undone")
	if a := r.ask("b", "a", ask); len(a) != 0 {
		t.Errorf("answered %v", a)
	}
	if a := r.ask("b", "a", undo); len(a) != 1 {
		t.Errorf("undoing needs no room: %v", a)
	}
	r.advance(21_000)
	r.step("a", input.Wake{})
	if a := r.ask("b", "a", ask); len(a) != 1 {
		t.Errorf("answered %v", a)
	}
}
