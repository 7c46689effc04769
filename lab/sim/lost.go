package sim

import (
	"slices"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/handoff"
	"github.com/samya-db/samya/avantan/star"
	"github.com/samya-db/samya/avantan/transfer"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/stored"
)

// The model of what is lost with a site. The observer knows the data of a lost site as ever,
// and what the site still grants if it is only cut off.

// lostTokens is the part of a limitChange that writes tokens off.
type lostTokens struct {
	Tokens  core.Tokens `json:"tokens"`
	Version uint16      `json:"version"`
}

// writtenOff are the tokens of an entity that are written off with the sites lost up to a
// version of the roster. back are the tokens that were written off and came back.
type writtenOff struct {
	tokens    core.Tokens
	appraised uint16
	back      core.Tokens
}

// lostOf reports whether a site is written off by a roster.
func lostOf(r *stored.Roster, site core.SiteID) bool {
	seat := r.Seat(site)
	return seat != nil && seat.State == stored.SeatLost
}

// writtenOff reports whether the site is written off, as decided.
func (n *node) writtenOff() bool { return lostOf(&n.s.observe.catalogue.last().roster, n.id) }

// lostMembers are the sites that are written off, as a site knows by its last record.
func (n *node) lostMembers(durable bool) (lost members) {
	d := n.drained
	if durable || d == nil {
		d = n.durable
	}
	r := d.roster()
	if r == nil || r.Losses == 0 {
		return 0
	}
	for i, name := range n.s.names {
		if name != n.id && lostOf(r, name) {
			lost |= 1 << i
		}
	}
	return lost
}

// knewLost reports whether a site knew before the record under check that another is lost.
func (n *node) knewLost(durable bool, site core.SiteID) bool {
	known := n.knew[1]
	if durable {
		known = n.knew[0]
	}
	return known.has(n.s.observe.place(site))
}

// appliedNow counts the slices that a record applies and keeps.
func appliedNow(was, is []star.Slice) (applied uint64) {
	for i := range is {
		before := slices.IndexFunc(was, func(s star.Slice) bool { return s.ID == is[i].ID })
		if is[i].Committed && !is[i].Concluded && (before < 0 || !was[before].Committed) {
			applied++
		}
	}
	return applied
}

// starMoves are the grants less the offers of a value, by site; nil if there are none.
func (o *observer) starMoves(q *sequence, v *avantan.Value) []core.Tokens {
	grants, _ := o.grants(q, v, 0, 0)
	if grants == nil {
		return nil
	}
	moves := make([]core.Tokens, len(o.s.names))
	for k, c := range v.Contributions {
		moves[o.place(c.Site)] = grants[k] - c.Offered
	}
	return moves
}

// starConcluded notes that a site has ended an instance without its outcome.
func (o *observer) starConcluded(n *node, q *sequence, durable bool, view *starView, id star.ID, x *starInstance, v *avantan.Value) {
	self := members(1) << n.i
	r, lost := o.membersOf(v), n.lostMembers(durable)
	if moves := o.starMoves(q, v); moves != nil {
		view.moved += min(0, moves[n.i])
	}
	first := x.concluded == 0
	leader := members(1) << o.place(id.Leader)
	switch {
	case r&lost == 0 || first && r&lost&^leader == 0:
		o.s.fail(Lost, "%s: %v: ends %v without its outcome, and knows of no lost vote: %b of %b are lost", n.id, q.id, id, lost, r)
	case first && r&^lost&^(x.accepted|self) != 0:
		o.s.fail(Lost, "%s: %v: ends %v without its outcome, accepted by %b of %b, lost are %b", n.id, q.id, id, x.accepted, r, lost)
	case first && r&^lost&(x.applied|x.aborted) != 0:
		o.s.fail(Lost, "%s: %v: ends %v without its outcome, which %b know", n.id, q.id, id, x.applied|x.aborted)
	}
	if !durable {
		return
	}
	if first {
		x.unsure = r &^ lost
	}
	x.concluded |= self
	o.s.report.Concluded++
}

// certain checks that a site which ends an instance with its outcome may know it.
func (o *observer) certain(n *node, q *sequence, id star.ID, x *starInstance) {
	if x.unsure.has(n.i) {
		o.s.fail(Lost, "%s: %v: ends %v with an outcome, others without: %b", n.id, q.id, id, x.concluded)
	}
}

// namesLost checks the losses that a site tells of in a vote.
func (o *observer) namesLost(from *node, m *star.Message) {
	for _, site := range m.Lost {
		if !from.lostMembers(true).has(o.place(site)) {
			o.s.fail(Durability, "%s sends %+v, and does not durably know of the loss of %s", from.id, *m, site)
		}
	}
}

// droppedTransfer is a direct transfer that its donor has dropped, as the receiver is lost.
type droppedTransfer struct {
	receiver int
	seq      uint64
	amount   core.Tokens
}

func (v *transferView) hasDropped(receiver int, seq uint64) bool {
	return slices.ContainsFunc(v.dropped, func(d droppedTransfer) bool { return d.receiver == receiver && d.seq == seq })
}

// dropsTransfer notes that a site drops a debit whose receiver is lost. Its tokens stay out of
// the books.
func (o *observer) dropsTransfer(n *node, q *sequence, durable bool, was transfer.Debit) {
	x, p := q.direct, pair{n.i, o.place(was.Receiver)}
	view := x.view(n, durable)
	view.dropped = append(slices.Clone(view.dropped), droppedTransfer{p.receiver, was.Seq, was.Amount})
	if !durable {
		return
	}
	o.s.report.LostTransfers++
	if x.dropped[p] = was.Seq; !x.over {
		x.open--
		o.underWay--
	}
}

// sentNow is the amount of a transfer that a site makes and drops in the same transaction: the
// message of that transaction tells it.
func (o *observer) sentNow(q *sequence, durable bool, p pair, d transfer.Debit) core.Tokens {
	if durable {
		return q.direct.brief[p]
	}
	for i := range o.messages {
		e := &o.messages[i]
		if m := e.Transfer; m != nil && e.Entity == q.id.entity && m.Kind == transfer.Transfer && m.To == d.Receiver && m.Seq == d.Seq {
			q.direct.brief[p] = m.Amount
			return m.Amount
		}
	}
	return 0
}

// dropped is how many tokens of dropped transfers are in no books.
func (q *sequence) dropped(durable bool) (sum core.Tokens) {
	if q.direct == nil {
		return 0
	}
	for i := range q.direct.views {
		v := &q.direct.views[i][1]
		if durable {
			v = &q.direct.views[i][0]
		}
		for _, d := range v.dropped {
			to := &q.direct.views[d.receiver][1]
			if durable {
				to = &q.direct.views[d.receiver][0]
			}
			if creditOf(to.credits, q.direct.names[i]) < d.seq {
				sum += d.amount
			}
		}
	}
	return sum
}

// tookBequest reports whether the heir of a bequest has taken it, by its last record.
func (o *observer) tookBequest(q *sequence, n *node, durable bool, b *handoff.Bequest) bool {
	view := q.handoffs.view(o.s.nodes[o.place(b.Heir)], durable)
	i := slices.IndexFunc(view.took, func(t handoff.Taken) bool { return t.Leaver == n.id })
	return i >= 0 && view.took[i].Number >= b.Number
}

// bequestDropped checks that a bequest is dropped with its heir only.
func (o *observer) bequestDropped(n *node, q *sequence, b *handoff.Bequest) {
	o.s.report.LostBequests++
	if !n.lostMembers(true).has(o.place(b.Heir)) {
		o.s.fail(Lost, "%s: %v: drops bequest %d to %s, which is not lost", n.id, q.id, b.Number, b.Heir)
	}
}

// leasesForgotten takes in that a transaction drops bequests with leases. The leaver forgets
// the leases, and counts their tokens as out. A lost heir may have taken the leases.
func (o *observer) leasesForgotten(n *node, r *stored.Records) {
	for i := range r.Entities {
		e := &r.Entities[i]
		var was handoff.State
		if before := n.durable.Entities[e.Name]; before.Generation == e.Generation {
			was = before.Handoff
		}
		h := handedBetween(&was, &e.Handoff)
		if !h.dropped {
			continue
		}
		for j := range h.closed.Estate.Items {
			id := idOf(&h.closed.Estate.Items[j])
			for _, l := range n.live() {
				if l.op.requestID == id {
					l.forgotten = true
				}
			}
		}
	}
}

// leaseForgotten ends a lease that was forgotten. Its client may go by the lease until its
// time is over.
func (o *observer) leaseForgotten(n *node, l *lease) {
	l.ended = true
	if l.op.share {
		// Its tokens leave the books, as tokens left do: the heir may have it.
		o.movesLease(n, l, -l.tokens)
	}
	o.s.after(max(0, l.latest-o.s.now), func() { o.less(l, 0) })
}

// askedLost reports whether a site has asked another about a request that is lost, as it
// knows. A transaction may make a claim and end it at once, as no lost site answers: the claim
// itself names the lost site.
func (o *observer) askedLost(n *node, p *op, q *recorded) bool {
	lost := n.lostMembers(false)
	for i, bound := range q.asked {
		if bound > 0 && lost.has(i) {
			return true
		}
	}
	return o.batch != nil && slices.ContainsFunc(o.batch.Claims, func(c stored.Claim) bool {
		return c.Key == p.key && slices.ContainsFunc(c.Sites, func(site core.SiteID) bool { return lost.has(o.place(site)) })
	})
}

// appraised checks, once nothing moves any more, that exactly those tokens of each entity are
// written off that nobody has who is left.
func (s *sim) appraised() {
	if s.loser == nil || s.violation != nil {
		return
	}
	last := &s.observe.catalogue.last().roster
	for _, name := range s.admin.names {
		e, found := s.inside()[0].durable.Entities[name]
		if !found {
			continue
		}
		var held core.Tokens
		for _, n := range s.inside() {
			e, b := n.durable.Entities[name], n.durable.Books[name]
			held += holdings(&e, &b)
		}
		if max(e.Born, e.Appraised) < last.Losses {
			s.fail(Liveness, "after healing, what the lost sites held of %q is not written off: %+v", name, e)
		}
		if rest := e.Limit - e.Surplus + e.Debt - held; rest != e.WrittenOff {
			s.fail(Lost, "after healing, %d of %q are written off, nobody has %d", e.WrittenOff, name, rest)
		}
	}
}

// astray is how many tokens of an entity are out of lost sites that do not know, as other
// sites do, where the entity stands, or that it was deleted.
func (o *observer) astray(others *Memory, name string) (sum core.Tokens) {
	for _, n := range o.s.nodes {
		if !n.writtenOff() {
			continue
		}
		of := func(m *Memory) (list []uint64) {
			for _, above := range m.chain(name) {
				list = append(list, m.Entities[above].Generation)
			}
			return list
		}
		if !slices.Equal(of(n.durable), of(others)) {
			own := o.own[n.i][name]
			sum += max(own, -own)
		}
	}
	return sum
}

// astrayBelow is how many tokens are out of lost sites of entities that ever stood below an
// entity. Released elsewhere, they are missing there: the lost site does not know of the move.
func (o *observer) astrayBelow(q *sequence) (sum core.Tokens) {
	for name := range o.everBelow(q.id.entity) {
		sum += o.astray(o.s.inside()[0].durable, name)
	}
	return sum
}

// beyondEscrow is how many tokens of an entity are out of lost sites beyond what is written off
// with them. A lost site with fewer than zero tokens left had more out than it held. Released
// elsewhere, these tokens are rightly kept out: the others held them back all the time.
func (o *observer) beyondEscrow(q *sequence) core.Tokens {
	var out, written core.Tokens
	for _, n := range o.s.nodes {
		e, found := n.durable.Entities[q.id.entity]
		switch {
		case !found || e.Generation != q.id.generation:
		case n.writtenOff():
			out += n.durable.Books[q.id.entity].Net
		default:
			written = max(written, e.WrittenOff)
		}
	}
	return max(0, out-written)
}
