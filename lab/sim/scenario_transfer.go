package sim

import (
	"slices"

	"github.com/samya-db/samya/avantan/transfer"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/message"
)

// transferScenarios are failures while tokens are under way from site to site.
func transferScenarios() []Scenario {
	everyEffect := everyEffectScenario()
	everyEffect.Name = "transfer-" + everyEffect.Name
	everyEffect.About = "while tokens go from site to site, each site crashes in turn before and after each transaction, message and answer of it"
	everyEffect.strategy = transferStrategy
	list := []Scenario{everyEffect}
	for _, l := range []struct {
		name, about string
		donor       bool
	}{
		{"transfer-receiver-crash", "the site that asked crashes when tokens have left a donor", false},
		{"transfer-donor-crash", "a donor crashes when its tokens have left, and they are lost on their way", true},
	} {
		expected := "the others serve meanwhile; the tokens come within " + millisText(resent) + " of its return"
		list = append(list, Scenario{
			Name: l.name, About: l.about, Seeds: 20, strategy: transferStrategy,
			expected: map[string]string{"majority": expected, "star": expected, "auto": expected},
			play:     func(st *stage) { st.playUnderWay(l.donor) },
		})
	}
	return list
}

// resent is how long after both sites are back a transfer may still be under way:
// the longest pause of its donor, and a round trip.
const resent blocks = 8000 + 300

// playUnderWay has the donor or the receiver of a transfer crash just as it leaves.
func (st *stage) playUnderWay(donor bool) {
	const receiver = 0
	lost := -1
	st.sending = func(from *node, e *message.Envelope) {
		if e.Transfer == nil || e.Transfer.Kind != transfer.Transfer || lost >= 0 {
			return
		}
		if lost = receiver; donor {
			lost = from.i
			from.fuse = 1
		} else {
			st.nodes[receiver].crash()
		}
		for i := range st.cut {
			st.cut[lost][i], st.cut[i][lost] = i != lost, i != lost
		}
	}
	st.acquire(receiver, short, 10*second)
	if !st.until(8*second, func() bool { return lost >= 0 }) {
		st.wrong("no tokens were sent")
		return
	}
	st.run(lossLasts)
	under := st.underWay()
	if under == 0 || st.nodes[lost].up {
		st.wrong("%d tokens are under way, %s is up: %t", under, st.names[lost], st.nodes[lost].up)
	}
	st.told("tokens under way", int64(under))
	other := slices.IndexFunc(st.nodes, func(n *node) bool { return n.up && n.drained.Books[stageEntity].Left > 0 })
	if other < 0 {
		st.wrong("nobody has anything left")
	} else if a := st.acquire(other, 1, 0); !st.until(second, a.ok) {
		st.wrong("%v", a)
	}
	st.mend()
	began := st.now
	if !st.until(micros(resent)*millisecond, func() bool { return st.underWay() == 0 }) {
		st.wrong("%d tokens are still under way", st.underWay())
	}
	st.millis("came after", st.now-began)
	st.allAcquired()
}

// underWay is how many tokens are in no site's books.
func (st *stage) underWay() core.Tokens {
	q := st.observe.created[stageEntity][0]
	return st.observe.inNoBooks(q, false)
}
