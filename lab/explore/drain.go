package explore

import (
	"fmt"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/handoff"
)

// A site that leaves for good: the entity's sequence adopts a view without the leaver, and
// the leaver hands all that it has to its heir by bequests. Then it says that it is empty.
// Who hears that hears the leaver no more.
//
// The decisions here are copies of decisions in site/core (hand_over.go, leaving.go): when
// a bequest may begin, when a leaver is empty, and that nobody hears a site that is out.
// The heir knows of the drain from the beginning. The leaver grants until it has applied
// the smaller view.

const (
	heir   = 1
	leaver = Sites - 1
)

// The names of the acts of a drain.
const (
	actHandOver = "hands over to its heir"
	actBequeath = "sends its bequest again"
	actEndLease = "ends its lease"
	actLeaves   = "says that it is empty"
)

func heirConfig(self avantan.SiteID) *handoff.Config {
	cfg := &handoff.Config{Self: self, MaxItems: 1, Backoff: backoff, MaxBackoff: 16 * backoff, Rand: &random{}}
	if err := cfg.Validate(); err != nil {
		panic(err) // a constant
	}
	return cfg
}

// drains reports whether the last site is drained.
func (v *Majority) drains() bool { return v.bounds.View == DrainView }

// learns reports whether the site votes no more.
func (n *majority) learns() bool { return !n.live.view.Has(n.live.site) }

// grants reports whether the site serves clients that acquire.
func (n *majority) grants() bool {
	return !n.variant.drains() || !n.learns() || n.variant.without[learnerGrantsNothing]
}

// takesReleases reports whether the site takes tokens back that it has not leased out.
func (n *majority) takesReleases() bool { return !n.variant.drains() || !n.learns() }

// handedOver is how far the handoffs are, for Rank.
func (n *majority) handedOver() int {
	r := 0
	for _, g := range n.hand.State().Given {
		r += 2 * int(g.Number)
	}
	for _, t := range n.hand.State().Taken {
		r += 2 * int(t.Number)
	}
	if n.hand.Open() {
		r--
	}
	return r
}

// mayBequeath reports whether a bequest may begin, as leaving.mayBequeath of site/core.
func (n *majority) mayBequeath() bool {
	outside := n.learns() || n.variant.without[handsOverOutside]
	return n.variant.drains() && n.site == leaver && outside && len(n.live.offers) == 0 && !n.hand.Open() && n.holds()
}

// holds reports whether the site has anything to hand over.
func (n *majority) holds() bool { return n.live.left != 0 || n.live.net != 0 }

// empty reports whether a leaver has handed over all, as leaving.rests of site/core. What
// it says must be durable.
func (n *majority) empty() bool {
	without := n.variant.without
	return n.site == leaver && n.learns() && len(n.live.offers) == 0 && n.live.left == 0 &&
		(n.live.net == 0 || without[netIsHandedOver]) && (!n.hand.Open() || without[emptyIsClosed])
}

// frozen reports whether the site's lease is in its open bequest.
func (n *majority) frozen() bool {
	open := n.hand.State().Open
	return open != nil && len(open.Estate.Items) > 0 && !n.variant.without[leasesAreFrozen]
}

func (n *majority) drainActs() []Act {
	var acts []Act
	if !n.variant.drains() {
		return nil
	}
	if n.mayBequeath() {
		acts = append(acts, Act{actHandOver, Free})
	}
	if n.hand.Open() {
		acts = append(acts, Act{actBequeath, Free})
	}
	if n.live.lease > 0 && !n.frozen() {
		acts = append(acts, Act{actEndLease, Free})
	}
	if n.empty() {
		acts = append(acts, Act{actLeaves, Free})
	}
	return acts
}

// drain lets an act of a drain happen.
func (n *majority) drain(act string) Step {
	switch act {
	case actHandOver:
		return n.hands(handoff.Input{Begin: siteNames[heir]})
	case actBequeath:
		n.hand.Retime(0)
		return n.hands(handoff.Input{})
	case actEndLease:
		for _, b := range []*books{n.live, n.disk} {
			b.serve(-b.lease)
			b.lease, b.ended = 0, true
		}
		return Step{}
	default:
		var step Step
		for to := range leaver {
			step.Send = append(step.Send, Packet{
				From: n.site, To: to, Key: fmt.Sprintf("empty %d", to), Body: &emptied{}, Text: "that it is empty",
			})
		}
		return step
	}
}

// emptied says that a leaver has handed over all. Members then retire it.
type emptied struct{}

// handedIn hands the site a message of a drain.
func (n *majority) handedIn(p *Packet) Step {
	switch m := p.Body.(type) {
	case *handoff.Message:
		return n.hands(handoff.Input{Receive: m})
	case *emptied:
		n.gone = true
		return n.hands(handoff.Input{Lost: siteNames[leaver]})
	default:
		panic(fmt.Sprintf("explore: a message of type %T", m))
	}
}

// hands takes a step of the site's handoffs.
func (n *majority) hands(in handoff.Input) Step {
	var step Step
	n.handAt(1, in, &step)
	n.hand.Retime(far)
	step.Broken = append(step.Broken, n.live.broken...)
	n.live.broken = nil
	return step
}

// handAt takes a step of the handoffs at a time, and does the work of the caller.
func (n *majority) handAt(now avantan.Tick, in handoff.Input, step *Step) {
	out := n.hand.Step(now, in)
	if out.Err != nil {
		step.Broken = append(step.Broken, Violation{SelfCheck, fmt.Sprintf("%s: %v", n.live.site, out.Err)})
	}
	if out.Persist {
		n.persist()
		if err := n.handed.Validate(); err != nil {
			step.Broken = append(step.Broken, Violation{SelfCheck, fmt.Sprintf("%s stores %v", n.live.site, err)})
		}
	}
	for i := range out.Messages {
		m := &out.Messages[i]
		to := n.variant.index(m.To)
		if n.outside(to) {
			continue
		}
		if why := n.unhanded(m); why != "" {
			step.Broken = append(step.Broken, Violation{DurableFirst, fmt.Sprintf("%s sends %s: %s", n.live.site, handText(m), why)})
		}
		step.Send = append(step.Send, Packet{From: n.site, To: to, Key: "hand" + string(m.Fingerprint(nil)), Body: m, Text: handText(m)})
	}
}

// unhanded names the claim of a message that is not durable; "" if there is none.
func (n *majority) unhanded(m *handoff.Message) string {
	open := n.handed.Open
	switch {
	case m.Kind == handoff.Bequeath && (open == nil || open.Number != m.Number):
		return "not open"
	case m.Taken > takenOf(&n.handed, m.To).Number:
		return "not taken"
	}
	return ""
}

// takenOf is the last bequest of a leaver that a site has taken.
func takenOf(s *handoff.State, leaver avantan.SiteID) handoff.Taken {
	for _, t := range s.Taken {
		if t.Leaver == leaver {
			return t
		}
	}
	return handoff.Taken{}
}

// handText describes a message.
func handText(m *handoff.Message) string {
	text := fmt.Sprint(m.Kind)
	if m.Kind == handoff.Bequeath {
		e := &m.Estate
		text += fmt.Sprintf(" #%d left %d owed %d net %d leases %d", m.Number, e.Left, e.Owed, e.Net, len(e.Items))
	}
	if m.Taken > 0 {
		text += fmt.Sprintf(", #%d taken, accepts %d", m.Taken, m.Accepted)
	}
	return text
}

// The books as handoffs see them. These change as in site/core.

// Holds implements handoff.Ledger.
func (b *books) Holds() (left, net avantan.Tokens) { return b.left, b.net }

// Items implements handoff.Ledger.
func (b *books) Items(int) (items []handoff.Item, held avantan.Tokens) {
	if b.lease == 0 {
		return nil, 0
	}
	return []handoff.Item{{Data: []byte("lease"), Tokens: b.lease}}, b.lease
}

// Usable implements handoff.Ledger.
func (b *books) Usable() avantan.Tokens { return b.left }

// Fits implements handoff.Ledger.
func (b *books) Fits(avantan.SiteID, *handoff.Estate) error { return nil }

// Debit implements handoff.Ledger.
func (b *books) Debit(_ avantan.SiteID, tokens avantan.Tokens) { b.left -= tokens }

// Credit implements handoff.Ledger.
func (b *books) Credit(_ avantan.SiteID, tokens avantan.Tokens) { b.left += tokens }

// Shift implements handoff.Ledger.
func (b *books) Shift(tokens avantan.Tokens) { b.left, b.net = b.left-tokens, b.net+tokens }

// TakeItem implements handoff.Ledger.
func (b *books) TakeItem(_ avantan.SiteID, item handoff.Item) {
	b.Shift(item.Tokens)
	b.lease += item.Tokens
}

// DropItem implements handoff.Ledger.
func (b *books) DropItem(_ avantan.SiteID, item handoff.Item) {
	b.Shift(-item.Tokens)
	b.lease = 0
}

func appendBool(dst []byte, b bool) []byte {
	if b {
		return append(dst, 1)
	}
	return append(dst, 0)
}
