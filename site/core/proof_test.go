package core

import (
	"slices"
	"testing"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/star"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/policy"
)

// rightAfter shows an exhaustion of an entity and ends it at once.
func rightAfter(c *Core, e *entity) {
	c.dry(e)
	*e.exhaustion = exhaustion{shown: e.exhaustion.shown, ended: c.now.Tick}
}

// TestAsksForTheLittleThatLacks: after an exhaustion the site refuses an acquire on the word
// of others only if they tell of less than the acquire lacks. Tokens that the site has
// promised to the instance that looks for the rest are not part of that lack.
func TestAsksForTheLittleThatLacks(t *testing.T) {
	const asked, left = 83, 80
	for _, protocol := range []string{"majority", "star"} {
		for _, told := range []Tokens{0, asked - left - 1, asked - left} {
			l := amongOthers(t, protocol, 0, left, 1000-left)
			e := l.space.find("e")
			now := input.Now{Tick: 1, Wall: 1_700_000_000_000}
			l.now = now
			rightAfter(l.Core, e)
			for _, word := range wordOf(0) {
				l.Step(now, word)
			}
			e.views[slices.Index(l.cfg.Members, "b")].left = told
			// Direct transfers have brought too little: an instance comes next.
			e.rebalance.press, e.rebalance.short = avantan.PressAll, true
			l.Step(now, &input.Acquire{Call: 1, Entity: "e", Tokens: asked, Wait: 5000, Request: attempt.Key{1}})
			if want := told >= asked-left; e.redistributing() != want || (e.queue.len() == 1) != want {
				t.Errorf("%s: %d lack, others tell of %d: redistributions %t, %d wait", protocol, asked-left, told, e.redistributing(), e.queue.len())
				continue
			} else if !want {
				continue
			}
			offers(l, now, "b", told-1)
			offers(l, now, "c", 0)
			if e.usable() != 0 {
				t.Errorf("%s: %d are not promised", protocol, e.usable())
			}
			if e.queue.len() != 1 {
				t.Errorf("%s: %d wait while the instance is under way, want 1", protocol, e.queue.len())
			}
		}
	}
}

// offers delivers a member's offer to the instance that a leads.
func offers(l *sharded, now input.Now, from SiteID, tokens Tokens) {
	e := l.space.find("e")
	offer := avantan.Contribution{Site: from, Offered: tokens}
	m := message.Envelope{Entity: "e", Generation: 1}
	if e.star != nil {
		id, _ := e.star.Collecting()
		m.Star = &star.Message{Kind: star.ElectionOk, From: from, To: "a", ID: id, Contribution: &offer}
	} else {
		m.Message = avantan.Message{
			Kind: avantan.ElectionOk, From: from, To: "a", Instance: 1, Ballot: e.majority.State().Promised, Contribution: &offer,
		}
	}
	l.Step(now, input.Deliver{From: from, Messages: []message.Envelope{m}})
}

// elected delivers the election of a leader of the majority variant, or of the star
// variant, to a.
func elected(l *sharded, now input.Now, variant policy.Variant, press avantan.Press) {
	if variant == policy.Majority {
		l.Step(now, input.Deliver{From: "b", Messages: []message.Envelope{{Entity: "e", Generation: 1, Message: avantan.Message{
			Kind: avantan.Election, From: "b", To: "a", Instance: 1, Ballot: avantan.Ballot{Number: 1, Site: "b"}, Press: press,
		}}}})
		return
	}
	l.Step(now, input.Deliver{From: "c", Messages: []message.Envelope{{Entity: "e", Generation: 1, Star: &star.Message{
		Kind: star.Election, From: "c", To: "a", ID: star.ID{Leader: "c", Counter: 1}, Press: press,
	}}}})
}

// TestPledgesTellWhatIsBound: a contribution to the majority variant tells, as kept, the
// tokens that the site has promised to the star variant. Otherwise an instance in which
// nobody kept anything would prove that there is nothing.
func TestPledgesTellWhatIsBound(t *testing.T) {
	const left = 100
	l := amongOthers(t, "star", 0, left, 1000)
	e := l.space.find("e")
	now := input.Now{Tick: 1, Wall: 1_700_000_000_000}
	elected(l, now, policy.Star, avantan.PressAll)
	elected(l, now, policy.Majority, avantan.PressAll)
	if got := e.majority.State().Pledge.Kept; got != left {
		t.Errorf("the contribution keeps %d, want %d", got, left)
	}
}

// TestWaitsWhileTheSiteStandsStill: an instance brings the tokens for a waiting acquire
// while the site must not use them. The acquire is not refused, and is granted once the
// site may use them.
func TestWaitsWhileTheSiteStandsStill(t *testing.T) {
	const asked = 50
	l := amongOthers(t, "star", 0, 0, 1000)
	e := l.space.find("e")
	now := input.Now{Tick: 1, Wall: 1_700_000_000_000}
	e.rebalance.press, e.rebalance.short = avantan.PressAll, true
	l.Step(now, &input.Acquire{Call: 1, Entity: "e", Tokens: asked, Wait: 5000, Request: attempt.Key{1}})
	id, open := e.star.Collecting()
	if !open {
		t.Fatal("no instance was begun")
	}
	for _, kind := range []star.Kind{star.ElectionOk, star.AcceptOk} {
		if kind == star.AcceptOk {
			elected(l, now, policy.Majority, avantan.PressHold)
		}
		for _, from := range []SiteID{"b", "c"} {
			m := &star.Message{Kind: kind, From: from, To: "a", ID: id}
			if kind == star.ElectionOk {
				m.Contribution = &avantan.Contribution{Site: from, Offered: asked / 2}
			}
			l.Step(now, input.Deliver{From: from, Messages: []message.Envelope{{Entity: "e", Generation: 1, Star: m}}})
		}
	}
	if e.books.Left() != asked || e.usable() != 0 || e.queue.len() != 1 {
		t.Fatalf("%d left, %d usable, %d wait; want %d, 0, 1", e.books.Left(), e.usable(), e.queue.len(), asked)
	}
	l.Step(now, input.Deliver{From: "b", Messages: []message.Envelope{{Entity: "e", Generation: 1, Message: avantan.Message{
		Kind: avantan.Decision, From: "b", To: "a", Instance: 1,
		Value: &avantan.Value{Policy: settling + l.cfg.Policy, Contributions: []avantan.Contribution{*e.majority.State().Pledge, {Site: "b"}, {Site: "c"}}},
	}}}})
	if e.books.Left() != 0 || e.queue.len() != 0 {
		t.Errorf("the site may use its tokens: %d left, %d wait; want 0, 0", e.books.Left(), e.queue.len())
	}
}

// TestSuspicionThatPassesWakesNobody: a suspicion passes before an audit has begun. The
// site forgets the suspicion at once, and asks for no wake in the past.
func TestSuspicionThatPassesWakesNobody(t *testing.T) {
	l := amongOthers(t, "majority", 0, 100, 1000)
	e := l.space.find("e")
	l.now = input.Now{Tick: 2 * watchFor, Wall: 1_700_000_000_000}
	l.auditOf(e).suspected = l.now.Tick
	l.suspect(e)
	if at := e.auditWake(); e.audit != nil || at != 0 {
		t.Errorf("at %d the audit %+v wants a wake at %d", l.now.Tick, e.audit, at)
	}
}
