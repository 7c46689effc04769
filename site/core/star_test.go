package core

import (
	"testing"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/star"
	"github.com/samya-db/samya/redistribute"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
)

// TestConcludeTakesTheLower: an instance that ends without its outcome gives a site the
// lower of its offer and its grant, and leaves nothing set aside. The rest leaves the
// site's part of the tokens.
func TestConcludeTakesTheLower(t *testing.T) {
	for name, test := range map[string]struct{ others, left Tokens }{
		"a donor keeps its grant":    {others: 0, left: 50},
		"a gainer keeps its offer":   {others: 300, left: 100},
		"the others ask for no more": {others: 100, left: 100},
	} {
		t.Run(name, func(t *testing.T) {
			l := amongOthers(t, "star", 0, 100, 0)
			e := l.space.find("e")
			ledger := &starLedger{entityLedger{c: l.rebalancing, e: e}}
			if err := e.books.Pledge(100); err != nil {
				t.Fatal(err)
			}
			v := &avantan.Value{Policy: redistribute.Paper, Contributions: []avantan.Contribution{{Site: "a", Offered: 100}, {Site: "b", Offered: test.others}}}
			ledger.Conclude(star.ID{Leader: "b", Counter: 1}, v)
			if got := e.books.Left(); got != test.left || e.books.Aside() != 0 || e.books.Escrow() != test.left {
				t.Errorf("%d left, %d set aside, %d in all, want %d", got, e.books.Aside(), e.books.Escrow(), test.left)
			}
		})
	}
}

// TestStrangerInAValue: a star value that names a site that joined without this site's
// knowledge is no fault. This site asks the sender for the catalogue.
func TestStrangerInAValue(t *testing.T) {
	l := amongOthers(t, "star", 0, 100, 0)
	v := &avantan.Value{Policy: redistribute.Paper, Contributions: []avantan.Contribution{{Site: "a"}, {Site: "b"}, {Site: "z"}}}
	m := &star.Message{Kind: star.Accept, From: "b", To: "a", ID: star.ID{Leader: "b", Counter: 1}, Value: v}
	l.deliver(input.Deliver{From: "b", Messages: []message.Envelope{{Entity: "e", Generation: 1, Star: m}}})
	asked := false
	for _, e := range l.out.Messages {
		asked = asked || e.Entity == "" && e.Message.Kind == avantan.CatchUpAsk && e.Message.To == "b"
	}
	if len(l.out.Events) > 0 || !asked {
		t.Errorf("events %+v, messages %+v", l.out.Events, l.out.Messages)
	}
}
