package explore

import (
	"fmt"
	"slices"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/transfer"
)

// LostCredit, of a site: nothing is credited from a site that is written off (direct
// transfers alone).
const LostCredit = "lost-credit"

// remember compares the durable state with the old durable state, and notes new transfers.
func (n *transferNode) remember(old *transfer.State, step *Step) {
	if err := n.state.Validate(); err != nil {
		n.broke(step, SelfCheck, "stores %v", err)
	}
	for _, d := range n.state.Debits {
		to := slices.Index(siteNames[:], d.Receiver)
		last := n.lastSent(to)
		switch {
		case d.Seq == last.seq && (d.Amount == 0 || d.Amount == last.amount):
		case d.Seq == last.seq+1 && d.Amount > 0:
			n.sent = append(n.sent, sentTokens{to, d.Seq, d.Amount})
		default:
			n.broke(step, Promises, "transfer %d of %d to %s comes after %d of %d", d.Seq, d.Amount, d.Receiver, last.seq, last.amount)
		}
	}
	for from, name := range siteNames {
		if was, is := creditOf(old, name), creditOf(&n.state, name); is < was {
			n.broke(step, Promises, "the credits from %s fall from %d to %d", name, was, is)
		} else if is > was && n.lost.has(from) {
			n.broke(step, LostCredit, "credits transfer %d from %s, which is lost", is, name)
		}
	}
}

// lastSent is the last transfer to a site.
func (n *transferNode) lastSent(to int) (last sentTokens) {
	for _, s := range n.sent {
		if s.to == to {
			last = s
		}
	}
	return last
}

// creditOf is the number of the last transfer from a donor that is credited.
func creditOf(s *transfer.State, donor avantan.SiteID) uint64 {
	for _, c := range s.Credits {
		if c.Donor == donor {
			return c.Seq
		}
	}
	return 0
}

// unfounded names the claim of a message that is not durable; "" if there is none.
func (n *transferNode) unfounded(m *transfer.Message) string {
	to := slices.Index(siteNames[:], m.To)
	switch m.Kind {
	case transfer.Ask:
		if m.Ask > n.state.Reserved {
			return "not reserved"
		}
		if m.Seq > creditOf(&n.state, m.To) {
			return "not credited"
		}
	case transfer.Transfer:
		if !slices.Contains(n.sent, sentTokens{to, m.Seq, m.Amount}) {
			return "not debited"
		}
	case transfer.Ack:
		if m.Seq > creditOf(&n.state, m.To) {
			return "not credited"
		}
	}
	return ""
}

// Check implements Variant.
func (v *Transfer) Check(nodes [Sites]Node) []Violation {
	var broken []Violation
	fail := func(invariant, format string, args ...any) {
		broken = append(broken, Violation{invariant, fmt.Sprintf(format, args...)})
	}
	var all [Sites]*transferNode
	for i, n := range nodes {
		all[i] = n.(*transferNode)
	}
	limit := Sites * avantan.Tokens(v.bounds.Tokens)
	for _, w := range []struct {
		name string
		of   func(n *transferNode) (*transfer.State, *transferBooks)
	}{
		{"durable", func(n *transferNode) (*transfer.State, *transferBooks) { return &n.state, n.disk }},
		{"live", func(n *transferNode) (*transfer.State, *transferBooks) { return n.machine.State(), n.live }},
	} {
		var sum, usable avantan.Tokens
		for i, n := range all {
			st, books := w.of(n)
			usable += books.left + books.net
			if books.left < 0 {
				fail(Exclusivity, "%s: %s has given what it had not: %v", w.name, siteNames[i], n)
			}
			for _, s := range n.sent {
				of, _ := w.of(all[s.to])
				if creditOf(of, siteNames[i]) >= s.seq {
					continue
				}
				// Under way, or dropped for a lost receiver, for ever.
				sum += s.amount
				k := slices.IndexFunc(st.Debits, func(d transfer.Debit) bool { return d.Receiver == siteNames[s.to] })
				if kept := k >= 0 && st.Debits[k].Seq == s.seq && st.Debits[k].Amount == s.amount; !kept && !n.lost.has(s.to) {
					fail(Forgetting, "%s: %s forgets transfer %d of %d to %s, which has not credited it", w.name, siteNames[i], s.seq, s.amount, siteNames[s.to])
				}
			}
		}
		if sum+usable != limit {
			fail(Conservation, "%s: there are %d tokens and %d under way, of %d", w.name, usable, sum, limit)
		}
		if usable > limit {
			fail(OverGrant, "%s: all sites may use %d tokens of %d, the lost included", w.name, usable, limit)
		}
	}
	return broken
}

// Heal implements Variant. All messages on their way are lost. From now on every message
// arrives, in the order of sending. A lost site is silent, and all others know of the loss.
func (v *Transfer) Heal(nodes [Sites]Node) []Violation {
	var all [Sites]*transferNode
	var lost losses
	for i, n := range nodes {
		v.cfg[i].Rand.(*random).state = uint64(i)
		lost |= n.(*transferNode).lost
	}
	var step Step
	for i, n := range nodes {
		n := n.Clone().(*transferNode)
		n.machine.Retime(func(transfer.Timer, avantan.SiteID, avantan.Tick) avantan.Tick { return 1 + avantan.Tick(i) })
		all[i], nodes[i] = n, n
		if lost != 0 && !lost.has(i) {
			n.lost = lost
			n.run(1, transfer.Input{}, &step)
		}
	}
	now := avantan.Tick(1)
	for range healSteps {
		if step.Broken != nil {
			return step.Broken
		}
		if len(step.Send) > 0 {
			p := step.Send[0]
			step.Send = step.Send[1:]
			if !lost.has(p.To) {
				all[p.To].run(now, transfer.Input{Receive: p.Body.(*transfer.Message)}, &step)
			}
			continue
		}
		var next *transferNode
		var at avantan.Tick
		for i, o := range all {
			if t, ok := o.machine.WakeAt(); ok && !lost.has(i) && (next == nil || t < at) {
				next, at = o, t
			}
		}
		if next == nil {
			return v.Check(nodes)
		}
		now = max(now, at)
		next.run(now, transfer.Input{}, &step)
	}
	return []Violation{{Liveness, fmt.Sprintf("not at rest after %d steps", healSteps)}}
}
