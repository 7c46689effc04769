package sim

import (
	"slices"

	"github.com/samya-db/samya/avantan/handoff"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/stored"
)

// The sums of bequests: the tokens that move between the books of sites, and that two sites or no
// site count meanwhile.

// bequeathed is how many tokens a site's bequests have brought it, less the tokens they
// took, as of its last record.
func (q *sequence) bequeathed(n *node, durable bool) core.Tokens {
	if q.handoffs == nil {
		return 0
	}
	return q.handoffs.view(n, durable).moved()
}

// counts is by how many tokens the bequests of an entity change the sum of its nets, and by
// how many the bequests of entities below do.
func (q *sequence) counts(durable bool) (own, below core.Tokens) {
	if q.handoffs == nil {
		return 0, 0
	}
	for i := range q.handoffs.views {
		v := &q.handoffs.views[i][1]
		if durable {
			v = &q.handoffs.views[i][0]
		}
		own += v.counts.net()
		below += v.below.net()
	}
	return own, below
}

// bequests adds up the changes by open bequests in the sums over all sites: tokens that are
// in no books, and by how much the nets exceed the tokens out.
func (o *observer) bequests(q *sequence, durable bool) (inNoBooks, twice core.Tokens) {
	if q.handoffs == nil {
		return 0, 0
	}
	for _, n := range o.s.nodes {
		list := q.handoffs.view(n, durable).dropped
		dropped := len(list)
		if b := n.handoffs(q, durable).Open; b != nil {
			list = append(slices.Clone(list), b)
		}
		for i, b := range list {
			if i < dropped {
				twice -= o.s.leavesWith(q.id.entity, &b.Estate)
			}
			if o.tookBequest(q, n, durable, b) {
				inNoBooks += b.Estate.Owed
				twice += max(0, b.Estate.Net) + items(&b.Estate)
				continue
			}
			inNoBooks += b.Estate.Left
			twice += max(0, -b.Estate.Net)
		}
	}
	return inNoBooks, twice
}

// twice is the most by which the nets of an entity exceed the tokens out. A bequest of an
// entity below counts too.
func (o *observer) twice(q *sequence) (sum core.Tokens) {
	for id, other := range o.sequences {
		if other == q || other.handoffs != nil && o.planted[q.id.entity] && id.entity != "" {
			_, twice := o.bequests(other, false)
			sum += twice
		}
	}
	return sum
}

// shift is a number of tokens that a bequest moves into a site's net, or out of it.
type shift struct {
	name   string
	tokens core.Tokens
}

// shifts are the tokens that bequests move into a site's nets, or out of them, in a
// transaction. Leases move their tokens by their own records.
func (o *observer) shifts(n *node, r *stored.Records) []shift {
	var list []shift
	for i := range r.Entities {
		e := &r.Entities[i]
		var was handoff.State
		if before := n.durable.Entities[e.Name]; before.Generation == e.Generation {
			was = before.Handoff
		}
		q := o.sequence(sequenceID{e.Name, e.Generation})
		h := o.handedNow(n, q, r, &was, &e.Handoff)
		switch {
		case h.closed == nil:
		case h.dropped && !o.s.comesBack(e.Name):
		default:
			// Tokens out of a rate quota leave the books with a lost heir as well.
			list = append(list, shift{e.Name, -max(0, h.closed.Estate.Net)})
		}
		if h.opened != nil {
			list = append(list, shift{e.Name, max(0, -h.opened.Estate.Net)})
		}
		for _, t := range h.takes {
			if est := o.estate(q, t.Leaver, n, t.Number); est != nil {
				list = append(list, shift{e.Name, est.Net})
			}
		}
	}
	return slices.DeleteFunc(list, func(s shift) bool { return s.tokens == 0 })
}

// handedNow is handedOf for a transaction that is about to become durable.
func (o *observer) handedNow(n *node, q *sequence, r *stored.Records, was, is *handoff.State) handed {
	if q.handoffs == nil || r.Catalogue == nil {
		return handedBetween(was, is)
	}
	return o.handedOf(n, q, q.handoffs.view(n, true), &r.Catalogue.Roster, was, is)
}

// hands reports whether a transaction moves tokens by bequests.
func (o *observer) hands(n *node, r *stored.Records) bool {
	for i := range r.Entities {
		e := &r.Entities[i]
		var was handoff.State
		if before := n.durable.Entities[e.Name]; before.Generation == e.Generation {
			was = before.Handoff
		}
		q := o.sequence(sequenceID{e.Name, e.Generation})
		if h := o.handedNow(n, q, r, &was, &e.Handoff); h.closed != nil || h.opened != nil || len(h.takes) > 0 {
			return true
		}
	}
	return false
}
