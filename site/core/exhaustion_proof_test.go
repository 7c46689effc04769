package core

import (
	"testing"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/star"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
)

// TestDebtIsPaidOnceOthersCan: a site with less than nothing was shown that nobody has
// any tokens. Within seconds of the others' word that they can pay the whole debt it asks
// them, however small a part of the limit the debt is. It leaves them alone while they
// cannot.
func TestDebtIsPaidOnceOthersCan(t *testing.T) {
	const owed = 3
	for _, protocol := range []string{"majority", "star"} {
		for _, told := range []Tokens{0, owed - 1, owed, 10 * owed} {
			l := amongOthers(t, protocol, 0, -owed, 1000+owed)
			e := l.space.find("e")
			now := input.Now{Tick: 1, Wall: 1_700_000_000_000}
			l.now = now
			for range 8 {
				l.dry(e) // The pause is as long as it gets.
			}
			asked := e.redistributing
			word := func(left Tokens) {
				for _, from := range []SiteID{"b", "c"} {
					l.Step(now, input.Deliver{From: from, Messages: []message.Envelope{{Gossip: &message.Gossip{
						From: from, To: "a", Summaries: []message.Summary{{Entity: "e", Generation: 1, Left: left, Net: 1000 - left, Busy: true}},
					}}}})
					left = 0
				}
			}
			for end := now.Tick + 4*l.cfg.Tell; now.Tick < end && !asked(); {
				now.Tick += l.cfg.Tell / 2
				word(told)
				if at := l.WakeAt(); at != 0 && at <= now.Tick {
					l.Step(now, input.Wake{})
				}
			}
			if want := told >= owed; asked() != want {
				t.Errorf("%s: %d are owed, others tell of %d: asked for tokens: %t", protocol, owed, told, asked())
			}
		}
	}
}

// TestGivesUpByThePressOfTheInstance: a star instance in which nobody offered anything
// proves that there is nothing only if that instance pressed. That the site has come to
// press since proves nothing: its acquire waits on.
func TestGivesUpByThePressOfTheInstance(t *testing.T) {
	for _, press := range []avantan.Press{avantan.PressSpare, avantan.PressAll} {
		l := amongOthers(t, "star", 0, 0, 1000)
		e := l.space.find("e")
		now := input.Now{Tick: 1, Wall: 1_700_000_000_000}
		// Direct transfers have brought too little: an instance comes next.
		e.rebalance.press, e.rebalance.short = press, true
		l.Step(now, &input.Acquire{Call: 1, Entity: "e", Tokens: 50, Wait: 5000, Request: attempt.Key{1}})
		id, open := e.star.Collecting()
		if !open {
			t.Fatal("no instance was begun")
		}
		if e.rebalance.ledPress != press {
			t.Fatalf("the instance presses %v, want %v", e.rebalance.ledPress, press)
		}
		e.rebalance.press = avantan.PressAll
		for _, from := range []SiteID{"b", "c"} {
			l.Step(now, input.Deliver{From: from, Messages: []message.Envelope{{Entity: "e", Generation: 1, Star: &star.Message{
				Kind: star.ElectionOk, From: from, To: "a", ID: id, Contribution: &avantan.Contribution{Site: from},
			}}}})
		}
		if waits, want := e.queue.len() > 0, press < avantan.PressAll; waits != want {
			t.Errorf("after an instance that pressed %v the acquire waits: %t, want %t", press, waits, want)
		}
	}
}
