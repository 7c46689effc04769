package sim

import (
	"slices"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/stored"
)

// inherited finds the lease of a leaver that a record of its heir takes over in a
// transaction; nil for a lease of the site's own.
func (o *observer) inherited(n *node, r *stored.Records, rec *stored.Lease) *lease {
	if !o.s.o.Leaves {
		return nil
	}
	for i := range r.Entities {
		e := &r.Entities[i]
		if e.Name != rec.Entity || e.Generation != rec.Generation {
			continue
		}
		var before stored.Entity
		if was := n.durable.Entities[e.Name]; was.Generation == e.Generation {
			before = was
		}
		q := o.sequence(sequenceID{e.Name, e.Generation})
		for _, t := range o.handedNow(n, q, r, &before.Handoff, &e.Handoff).takes {
			est := o.estate(q, t.Leaver, n, t.Number)
			for j := 0; est != nil && j < len(est.Items); j++ {
				if idOf(&est.Items[j]) == rec.ID {
					return o.s.nodes[o.place(t.Leaver)].heldAs(rec.ID)
				}
			}
		}
	}
	return nil
}

// heldAs is the lease with an id that a site holds and has not handed over; nil for none.
func (n *node) heldAs(id string) *lease {
	for _, l := range n.live() {
		if l.op.requestID == id && !l.shadow && !l.undone {
			return l
		}
	}
	return nil
}

// inherits takes in that an heir has durably taken a lease. The leaver still counts its
// tokens, as a shadow, until it hears so. It reports whether there was such a lease.
func (o *observer) inherits(n *node, l *lease, rec *stored.Lease) bool {
	if l == nil {
		return false
	}
	old := l.home
	shadow := *l
	shadow.shadow, shadow.counted, shadow.renewals = true, 0, nil
	old.leases[l.number] = &shadow
	if l.op.share {
		old.shares[slices.Index(old.shares, l)] = &shadow
		n.shares = append(n.shares, l)
		o.s.report.SharesInherited++
	}
	mine := n.leases[rec.Number]
	if mine != nil && !mine.ended && mine.op == l.op {
		// The site has a lease of that request itself, of another attempt.
		o.takesAlong(n, mine, rec.Tokens-mine.tokens)
		mine.tokens = rec.Tokens
		mine.expires = rec.Expires
		l.ended, l.home = true, n
		o.less(l, 0)
		return true
	}
	if rec.Tokens != l.tokens {
		o.s.fail(Leases, "%s takes over %+v, and lease #%d of %s has %d tokens", n.id, rec, l.op.id, old.id, l.tokens)
	}
	l.home, l.number, l.block = n, rec.Number, 0
	n.leases[rec.Number], l.op.at[n.i].lease = l, l
	l.renewals, l.takenIn = nil, o.batches
	// Clocks differ, and the time on the way does not count.
	ttl := micros(rec.TTL) * millisecond
	l.earliest -= ttl/40 + second
	l.expires, l.ttl, l.latest, l.whileDown = rec.Expires, ttl, o.s.now+l.lasts(ttl), false
	o.takesAlong(n, l, rec.Tokens)
	o.s.report.LeasesInherited++
	return true
}

// unshadowed ends a shadow: the leaver knows that the heir has the lease.
func (o *observer) unshadowed(n *node, l *lease) {
	l.ended = true
	o.takesAlong(n, l, -l.tokens)
	l.tokens = 0
}

// takesAlong counts tokens that a lease takes along to an heir. Tokens of a rate quota move by
// themselves, unless they are held: they may have come back by the clock.
func (o *observer) takesAlong(n *node, l *lease, tokens core.Tokens) {
	if l.op.share || !o.s.comesBack(l.op.entity) {
		o.movesLease(n, l, tokens)
	}
}

// onItsWay reports whether a lease is in a bequest under way of its home: nobody may
// change it there.
func (l *lease) onItsWay() bool {
	q := l.home.s.observe.sequence(sequenceID{l.op.entity, l.generation})
	if q.handoffs == nil {
		return false
	}
	for _, durable := range []bool{true, false} {
		if b := l.home.handoffs(q, durable).Open; b != nil {
			for i := range b.Estate.Items {
				if idOf(&b.Estate.Items[i]) == l.op.requestID {
					return true
				}
			}
		}
	}
	return false
}

// heirOf is the member that has a site's leases, or will; the site itself if there is none.
func (s *sim) heirOf(n *node) *node {
	roster := &s.observe.catalogue.last().roster
	seat := roster.Seat(n.id)
	if seat == nil || seat.Heir == "" {
		return n
	}
	return s.nodes[slices.Index(s.names, seat.Heir)]
}
