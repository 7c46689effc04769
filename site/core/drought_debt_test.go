package core

import "testing"

// TestDebtIsPaidOnceOthersCan: a site with less than nothing that was shown that nobody
// has any tokens asks for them within seconds of the others' word that they can pay all
// of it, however little that is of the limit, and leaves them alone while they cannot.
func TestDebtIsPaidOnceOthersCan(t *testing.T) {
	const owed = 3
	for _, protocol := range []string{"majority", "star"} {
		for _, told := range []Tokens{0, owed - 1, owed, 10 * owed} {
			l := amongOthers(t, protocol, 0, -owed, 1000+owed)
			e := l.space.find("e")
			now := Now{Tick: 1, Wall: 1_700_000_000_000}
			l.now = now
			for range 8 {
				l.dry(e) // The pause is as long as it gets.
			}
			asked := e.hunting
			word := func(left Tokens) {
				for _, from := range []SiteID{"b", "c"} {
					l.Step(now, Deliver{From: from, Messages: []Envelope{{Gossip: &Gossip{
						From: from, To: "a", Summaries: []Summary{{Entity: "e", Generation: 1, Left: left, Net: 1000 - left, Busy: true}},
					}}}})
					left = 0
				}
			}
			for end := now.Tick + 4*l.cfg.Tell; now.Tick < end && !asked(); {
				now.Tick += l.cfg.Tell / 2
				word(told)
				if at := l.WakeAt(); at != 0 && at <= now.Tick {
					l.Step(now, Wake{})
				}
			}
			if want := told >= owed; asked() != want {
				t.Errorf("%s: %d are owed, others tell of %d: asked for tokens: %t", protocol, owed, told, asked())
			}
		}
	}
}
