package sim

import (
	"slices"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/transfer"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/policy"
	"github.com/samya-db/samya/site/core/stored"
)

// pair are two sites, by their place in the cluster.
type pair struct{ donor, receiver int }

// transfers is the knowledge of an observer of all sites about the direct transfers of a
// sequence.
type transfers struct {
	names []core.SiteID
	// views are the sites' parts, by site: durable and handed over.
	views [][2]transferView
	// sent are the amounts of the durable debits of a pair, by number from 1.
	sent map[pair][]core.Tokens
	// credited are the last numbers durably taken in, and when that was; asked the
	// numbers of the last asks that have left the receiver.
	credited map[pair]uint64
	at       map[pair]micros
	asked    map[pair]uint64
	// dropped are the last numbers durably dropped with a lost receiver.
	dropped map[pair]uint64
	// brief are the amounts of the last transfers that were made and dropped in a single
	// transaction.
	brief map[pair]core.Tokens
	// open is how many durable debits are not durably credited. over is set once a site
	// has dropped the entity: then open counts no more.
	open int
	over bool
}

// amount is the amount of a durable debit; 0 if there is none.
func (x *transfers) amount(p pair, seq uint64) core.Tokens {
	if seq == 0 || seq > uint64(len(x.sent[p])) {
		return 0
	}
	return x.sent[p][seq-1]
}

// transferView is a site's part, as of its last record.
type transferView struct {
	reserved, fetches uint64
	debits            []transfer.Debit
	credits           []transfer.Credit
	// given and got are the tokens that it has sent and taken in so far.
	given, got core.Tokens
	// dropped are the transfers that went to sites lost for good, and were dropped.
	dropped []droppedTransfer
	// pledged is the instance of the majority variant that it has set aside for; 0
	// for none.
	pledged avantan.Instance
}

func (v *transferView) moved() core.Tokens { return v.got - v.given }

func debitTo(list []transfer.Debit, receiver core.SiteID) (d transfer.Debit) {
	for i := range list {
		if list[i].Receiver == receiver {
			return list[i]
		}
	}
	return d
}

func creditOf(list []transfer.Credit, donor core.SiteID) uint64 {
	for i := range list {
		if list[i].Donor == donor {
			return list[i].Seq
		}
	}
	return 0
}

// Strategies of a site: under transferStrategy the site asks others by its own.
const (
	instanceStrategy = "instance"
	transferStrategy = "transfer"
)

// chooseStrategies says how sites get tokens. Where the seed chooses, at least a single
// site asks others by its own, and has acquires wait for the tokens to come.
func (s *sim) chooseStrategies() {
	names := policy.StrategyNames()
	for _, n := range s.nodes {
		n.cfg.Strategy = s.o.Strategy
		if s.o.Strategy == "" {
			n.cfg.Strategy = names[s.r.IntN(len(names))]
		}
	}
	if s.o.Strategy == "" {
		one := s.nodes[s.r.IntN(len(s.nodes))]
		one.cfg.Strategy = transferStrategy
		if one.cfg.Admission == "refuse" {
			one.cfg.Admission = "wait"
		}
	}
}

// transfersOf reports whether a transfer from or to a site is under way, by the durable
// records.
func (o *observer) transfersOf(n *node) bool {
	for id, q := range o.sequences {
		if q.direct == nil || q.direct.over || q.direct.open == 0 || id.entity == "" {
			continue
		}
		for p, sent := range q.direct.sent {
			if (p.donor == n.i || p.receiver == n.i) && q.direct.credited[p] < uint64(len(sent)) {
				return true
			}
		}
	}
	return false
}

// direct returns the direct transfers of the sequence.
func (o *observer) direct(q *sequence) *transfers {
	if q.direct == nil {
		q.direct = &transfers{
			names: o.s.names,
			views: make([][2]transferView, len(o.s.names)), sent: make(map[pair][]core.Tokens),
			credited: make(map[pair]uint64), dropped: make(map[pair]uint64), brief: make(map[pair]core.Tokens), at: make(map[pair]micros), asked: make(map[pair]uint64),
		}
	}
	return q.direct
}

// transferred is how many tokens a site's direct transfers have given it, less the tokens
// they took, as of its last record: durable, or handed over.
func (q *sequence) transferred(n *node, durable bool) core.Tokens {
	if q.direct == nil {
		return 0
	}
	return q.direct.view(n, durable).moved()
}

func (x *transfers) view(n *node, durable bool) *transferView {
	if durable {
		return &x.views[n.i][0]
	}
	return &x.views[n.i][1]
}

// transferRecord takes in the direct transfers of a record of a site.
func (o *observer) transferRecord(n *node, q *sequence, durable bool, e *stored.Entity) {
	is := &e.Transfer
	if q.direct == nil && is.Reserved == 0 && len(is.Debits) == 0 && len(is.Credits) == 0 {
		return
	}
	x := o.direct(q)
	view := x.view(n, durable)
	if is.Reserved < view.reserved || e.Fetches < view.fetches {
		o.s.fail(Monotonic, "%s: %v: numbers of asks reserved go from %d to %d, rounds from %d to %d", n.id, q.id,
			view.reserved, is.Reserved, view.fetches, e.Fetches)
	}
	for i := range view.debits {
		was := &view.debits[i]
		if now := debitTo(is.Debits, was.Receiver); now.Seq < was.Seq || now.Asked < was.Asked {
			o.s.fail(Monotonic, "%s: %v: debit %+v becomes %+v", n.id, q.id, *was, now)
		}
	}
	for _, was := range view.credits {
		if now := creditOf(is.Credits, was.Donor); now < was.Seq {
			o.s.fail(Monotonic, "%s: %v: credit %+v becomes number %d", n.id, q.id, was, now)
		}
	}
	o.keptUnderWay(n, q, durable, view, e)
	for i := range is.Debits {
		o.debited(n, q, durable, debitTo(view.debits, is.Debits[i].Receiver), is.Debits[i])
	}
	for _, c := range is.Credits {
		o.credited(n, q, durable, creditOf(view.credits, c.Donor), c)
	}
	view.reserved, view.fetches, view.debits, view.credits = is.Reserved, e.Fetches, is.Debits, is.Credits
}

// keptUnderWay checks that a site which sets tokens aside for an instance tells its
// tokens under way to others as kept. Else the instance would show that there are no
// tokens when there are. Debits that came with the same record may have come later, out
// of the kept tokens. A site that was told that others are out of reach need not count
// them.
func (o *observer) keptUnderWay(n *node, q *sequence, durable bool, was *transferView, e *stored.Entity) {
	before := was.pledged
	was.pledged = 0
	if e.Protocol.Pledge == nil {
		return
	}
	if was.pledged = e.Protocol.Applied + 1; was.pledged == before || n.told != 0 || durable {
		return
	}
	var sum core.Tokens
	for _, d := range was.debits {
		if now := debitTo(e.Transfer.Debits, d.Receiver); now == d {
			sum += d.Amount
		}
	}
	if kept := e.Protocol.Pledge.Kept; kept < sum {
		o.s.fail(Refusal, "%s: %v: has %d under way, and tells that it kept %d of its tokens", n.id, q.id, sum, kept)
	}
}

// debited checks a debit of a record against the debit before: another transfer is made,
// and its amount forgotten, only once it is durably credited.
func (o *observer) debited(n *node, q *sequence, durable bool, was, is transfer.Debit) {
	x, p := q.direct, pair{n.i, slices.Index(o.s.names, is.Receiver)}
	if is.Seq > is.Asked {
		o.s.fail(Integrity, "%s: %v: debit %+v answers no ask", n.id, q.id, is)
	}
	if is.Seq == was.Seq && n.lostMembers(durable).has(p.receiver) && was.Amount > 0 && is.Amount == 0 && x.credited[p] < was.Seq {
		o.dropsTransfer(n, q, durable, was)
	} else if (is.Seq > was.Seq || is.Amount == 0) && x.credited[p] < was.Seq && !x.view(n, durable).hasDropped(p.receiver, was.Seq) {
		o.s.fail(Integrity, "%s: %v: debit %+v becomes %+v, credited is number %d", n.id, q.id, was, is, x.credited[p])
	}
	switch {
	case is.Seq == was.Seq:
		if is.Amount != was.Amount && is.Amount != 0 {
			o.s.fail(Integrity, "%s: %v: debit %+v becomes %+v", n.id, q.id, was, is)
		}
		return
	case is.Seq == was.Seq+1 && is.Amount == 0 && n.lostMembers(durable).has(p.receiver):
		// It was made and dropped in the same transaction.
		amount := o.sentNow(q, durable, p, is)
		x.view(n, durable).given += amount
		if durable {
			o.leaves(q, p, is.Seq, amount)
		}
		was = is
		was.Amount = amount
		o.dropsTransfer(n, q, durable, was)
		return
	case is.Seq != was.Seq+1 || is.Amount < 1:
		o.s.fail(Integrity, "%s: %v: debit %+v becomes %+v", n.id, q.id, was, is)
		return
	case is.Asked == was.Asked:
		o.s.fail(ExactlyOnce, "%s: %v: ask %d is given to again: debit %+v becomes %+v", n.id, q.id, is.Asked, was, is)
	}
	if n.knewLost(durable, is.Receiver) {
		o.s.fail(Lost, "%s: %v: gives to a lost site: debit %+v", n.id, q.id, is)
	}
	x.view(n, durable).given += is.Amount
	if durable {
		o.leaves(q, p, is.Seq, is.Amount)
		o.s.crashUnderWay(p)
		o.s.loser.begins(inTransfer, p.receiver)
	}
}

// leaves notes a durable debit.
func (o *observer) leaves(q *sequence, p pair, seq uint64, amount core.Tokens) {
	x := q.direct
	switch {
	case seq == uint64(len(x.sent[p]))+1:
		x.sent[p] = append(x.sent[p], amount)
		o.s.report.Transfers++
		if !x.over {
			x.open++
			o.underWay++
		}
	case x.amount(p, seq) != amount:
		o.s.fail(Integrity, "%v: transfer %d from %s to %s is of %d, before they were of %v", q.id, seq,
			o.s.names[p.donor], o.s.names[p.receiver], amount, x.sent[p])
	}
}

// credited checks a credit of a record against its number before. Transfers are taken in
// singly, and only after the donor has durably taken out the tokens.
func (o *observer) credited(n *node, q *sequence, durable bool, was uint64, is transfer.Credit) {
	if is.Seq == was {
		return
	}
	x, p := q.direct, pair{slices.Index(o.s.names, is.Donor), n.i}
	if is.Seq != was+1 {
		o.s.fail(AppliedOnce, "%s: %v: credit %+v, before number %d", n.id, q.id, is, was)
		return
	}
	amount := x.amount(p, is.Seq)
	if amount == 0 {
		o.s.fail(Durability, "%s: %v: credits %+v, durably sent are %v", n.id, q.id, is, x.sent[p])
		return
	}
	if n.knewLost(durable, is.Donor) {
		o.s.fail(Lost, "%s: %v: credits %+v of a lost site", n.id, q.id, is)
	}
	x.view(n, durable).got += amount
	if durable {
		o.s.report.Transferred += int(amount)
		o.arrived(q, p, is.Seq)
	}
}

// arrived notes a durable credit.
func (o *observer) arrived(q *sequence, p pair, seq uint64) {
	x := q.direct
	if seq <= x.credited[p] {
		return
	}
	x.credited[p], x.at[p] = seq, o.s.now
	if !x.over && x.dropped[p] != seq {
		x.open--
		o.underWay--
	}
}

// notUnderWay is told that a site drops an entity: tokens under way go to nobody any
// more.
func (o *observer) notUnderWay(q *sequence) {
	if q.direct != nil && !q.direct.over {
		q.direct.over = true
		o.underWay -= q.direct.open
	}
}

// inNoBooks is how many tokens are in no site's books: taken out by the donor, and not
// taken in by the receiver; by the records alone.
func (o *observer) inNoBooks(q *sequence, durable bool) core.Tokens {
	if q.direct == nil {
		return 0
	}
	var sum core.Tokens
	for _, n := range o.s.nodes {
		for _, d := range n.transfers(q, durable).Debits {
			if d.Amount == 0 {
				continue
			}
			receiver := o.s.nodes[slices.Index(o.s.names, d.Receiver)]
			if creditOf(receiver.transfers(q, durable).Credits, n.id) < d.Seq {
				sum += d.Amount
			}
		}
	}
	return sum
}

// transfers returns the direct transfers of a sequence by a site's record.
func (n *node) transfers(q *sequence, durable bool) *transfer.State {
	d := n.drained
	if durable || d == nil {
		d = n.durable
	}
	if e, found := d.Entities[q.id.entity]; found && e.Generation == q.id.generation {
		return &e.Transfer
	}
	return new(transfer.State)
}

// settlesIn is how long after healing, and after its credit, a transfer may still
// be sent again because its acknowledgement was lost.
const settlesIn = 25 * second

// transferMessage checks that a message that leaves rests on durable records.
func (o *observer) transferMessage(from *node, e *message.Envelope) {
	m := e.Transfer
	if err := m.Validate(); err != nil {
		o.s.fail(Sound, "%s sends: %w", from.id, err)
		return
	}
	q := o.sequence(sequenceID{e.Entity, e.Generation})
	x := o.direct(q)
	to := slices.Index(o.s.names, m.To)
	out, in := pair{from.i, to}, pair{to, from.i}
	if rec, found := from.durable.Entities[e.Entity]; !found || rec.Generation != e.Generation {
		// The entity was deleted in the same batch, so that nothing else tells.
		switch m.Kind {
		case transfer.Transfer:
			o.leaves(q, out, m.Seq, m.Amount)
		case transfer.Ack:
			o.arrived(q, in, m.Seq)
		}
		o.notUnderWay(q)
		return
	}
	view := x.view(from, true)
	fail := func(why string) {
		o.s.fail(Durability, "%s sends %+v of %v: %s; durable is %+v", from.id, *m, q.id, why, *view)
	}
	switch m.Kind {
	case transfer.Ask:
		if view.reserved < m.Ask {
			fail("its number is not reserved")
		}
		if creditOf(view.credits, m.To) < m.Seq {
			fail("it acknowledges what is not credited")
		}
		if m.Ask <= x.asked[in] {
			o.s.fail(Monotonic, "%s sends %+v of %v, before ask %d", from.id, *m, q.id, x.asked[in])
		}
		x.asked[in] = m.Ask
	case transfer.Transfer:
		if d := debitTo(view.debits, m.To); d.Seq < m.Seq || x.amount(out, m.Seq) != m.Amount {
			fail("there is no such debit")
		}
		// A site that is lost for good acknowledges nothing.
		if o.s.healed && !from.writtenOff() && !o.s.nodes[to].struck && m.Seq <= x.credited[out] && o.s.now-max(o.s.healedAt, x.at[out]) > settlesIn {
			o.s.fail(Liveness, "%s sends %+v of %v, which was credited long ago", from.id, *m, q.id)
		}
	case transfer.Ack:
		if creditOf(view.credits, m.To) < m.Seq {
			fail("it is not credited")
		}
	}
}
