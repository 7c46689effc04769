package sim

import (
	"fmt"
	"slices"

	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// Clients that draw also reserve tokens of rate quotas by leases, and settle the leases: they
// commit tokens, release some, or let the lease end. Tokens that come back may be granted
// again, so the judges take the tokens off the grant. In a window tokens come back only while
// the window of the grant lasts, of a bucket or sliding window only until the next start of
// the site that granted them, and at no heir. To an allocation above, the tokens come back
// wherever the lease is.
//
// The judges take off all that the lease has less. The site may give back fewer tokens, as
// others have come back by the clock. An interval that begins after the grant counts
// whatever comes back too early.

// reservation is the model of a lease of rate quotas.
type reservation struct {
	key  attempt.Key
	name string
	// by is the site that granted it, in that site's life; home is the site that has it now,
	// by the number.
	by, home *node
	life     int
	number   uint64
	// tokens are the tokens that it durably holds, kept the committed tokens.
	tokens, kept core.Tokens
	// levels are the entity and the entities above it, as they were at the grant; none before
	// the grant is judged. early are the tokens that come back by the transaction of the grant.
	levels []reservedAt
	early  core.Tokens
	ended  bool
}

// reservedAt is a level with tokens of a reservation.
type reservedAt struct {
	id sequenceID
	// kind is empty for an allocation.
	kind   rates.Kind
	window int64
}

// reserving has a draw ask for a lease.
func (s *sim) reserving(d *draw, a *input.Acquire) {
	t, isRate := s.rates[a.Entity]
	if isRate && t.Keys || templateOf(a.Entity) != a.Entity || !s.chance(250) {
		return
	}
	s.draws++
	id := fmt.Sprintf("reserve-%d", s.draws)
	r := &reservation{key: attempt.KeyOf(id), name: a.Entity}
	s.drawnKeys[r.key], s.reservations[r.key] = true, r
	d.reserves, a.Request, a.Once = r, r.key, false
	a.Lease = &input.LeaseTerms{ID: id, TTL: core.Tick(100 + s.r.IntN(either(s.chance(500), 1000, 20_000)))}
	if s.o.Leaves && s.chance(300) {
		a.Lease.TTL += core.Tick(30_000 + s.r.IntN(60_000)) // some leases go to heirs
	}
}

// reserved has a client settle a lease that it has got of a site.
func (s *sim) reserved(n *node, r *reservation, ttl core.Tick) {
	s.report.Reserved++
	if early := r.early; early > 0 {
		r.early = 0
		s.observe.takesOff(n, &stored.Records{}, r, early)
	}
	s.after(1+s.r.Int64N(1+int64(ttl))*millisecond*12/10, func() { s.settle(r) })
}

// settle settles a lease, in part or in whole, once or several times.
func (s *sim) settle(r *reservation) {
	n := r.home
	if s.healed || r.ended || n == nil || !n.up || n.out || n.stale != nil {
		return // the lease ends by itself
	}
	key, tokens := s.drawKey(), core.Tokens(0)
	if r.tokens > 0 {
		tokens = 1 + core.Tokens(s.r.Int64N(int64(r.tokens)))
	}
	switch {
	case s.chance(400):
		s.settles[key] = r
		n.step(&input.CommitLease{Call: &draw{back: true}, Lease: r.key, Tokens: tokens, Request: key})
		return
	case s.chance(500):
		n.step(&input.Release{
			Call: &draw{back: true}, Request: key, Entity: r.name, Tokens: tokens, Lease: &input.LeaseRef{Home: n.id, Request: r.key},
		})
	case s.chance(300):
		n.step(&input.RenewLease{Call: &draw{back: true}, Lease: r.key})
	default:
		return
	}
	s.after(micros(s.r.IntN(2000))*millisecond, func() { s.settle(r) })
}

// reservesAt notes that a level of a reservation has granted its tokens.
func (r *reservation) reservesAt(id sequenceID, kind rates.Kind, window int64) {
	if r != nil {
		r.levels = append(r.levels, reservedAt{id, kind, window})
	}
}

// reservationStored takes in a lease of a client that draws, about to become durable. It
// reports whether the lease is of such a client.
func (o *observer) reservationStored(n *node, r *stored.Records, rec *stored.Lease) bool {
	of := o.s.reservations[attempt.KeyOf(rec.ID)]
	if of == nil {
		return false
	}
	switch {
	case of.by == nil:
		of.by, of.life, of.tokens = n, n.life, rec.Tokens
	case of.ended || rec.Tokens > of.tokens:
		o.s.fail(Leases, "%s stores %+v, after a reservation with %d tokens, ended: %t", n.id, rec, of.tokens, of.ended)
		return true
	case n != of.home && rec.Tokens < of.tokens:
		o.s.fail(Leases, "%s takes over %+v, and the lease has %d tokens", n.id, rec, of.tokens)
		return true
	default:
		o.givesReserved(n, r, of, of.tokens-rec.Tokens)
	}
	of.home, of.number = n, rec.Number
	n.reserved[rec.Number] = of
	return true
}

// reservationEnded takes in the end of a lease of a client that draws. It reports whether the
// lease is of such a client. A site that leaves forgets a lease that its heir has.
func (o *observer) reservationEnded(n *node, r *stored.Records, number uint64) bool {
	of := n.reserved[number]
	if of == nil {
		return false
	}
	delete(n.reserved, number)
	if of.home == n && !of.ended {
		o.s.report.ReservedEnded++
		o.givesReserved(n, r, of, of.tokens-of.kept)
		o.unreserves(of, of.kept)
		of.tokens, of.ended = 0, true
	}
	return true
}

// givesReserved takes in that a lease has less.
func (o *observer) givesReserved(n *node, r *stored.Records, of *reservation, back core.Tokens) {
	of.tokens -= back
	switch {
	case back == 0:
	case len(of.levels) == 0:
		of.early += back
	default:
		o.takesOff(n, r, of, back)
	}
}

// takesOff takes tokens off the grants of a lease, at each level to which they may come back.
func (o *observer) takesOff(n *node, r *stored.Records, of *reservation, back core.Tokens) {
	if o.s.tracing {
		o.s.note("%s: a lease of %s gives back %d tokens, to %v", n.id, of.name, back, of.levels)
	}
	for i, l := range of.levels {
		e := n.durable.Entities[l.id.entity]
		is := stateIn(r, &e)
		switch {
		case is.Generation != l.id.generation:
			if i == 0 {
				return // the entity was deleted, and nothing comes back through it
			}
		case l.kind == "":
			o.allocations[l.id] -= back
			o.reserved[l.id] -= back
		case n != of.by:
		case l.kind == rates.Window:
			if e.Rate.Window == l.window || is.Rate.Window == l.window {
				o.s.report.ReservedBack++
				o.givenIn(l.id, l.window, n.i, back)
			}
		case n.life == of.life:
			o.s.report.ReservedBack++
			for j := range o.flow[l.id] {
				if g := &o.flow[l.id][j]; g.of == of {
					g.tokens = max(0, g.tokens-back)
				}
			}
		}
	}
}

// unreserves has tokens of an allocation be out as any others, once a lease is committed.
func (o *observer) unreserves(of *reservation, kept core.Tokens) {
	for _, l := range of.levels {
		if l.kind == "" {
			o.reserved[l.id] -= kept
		}
	}
}

// stateIn is the state of an entity after a transaction.
func stateIn(r *stored.Records, was *stored.Entity) stored.Entity {
	for i := range r.Entities {
		if r.Entities[i].Name == was.Name {
			return r.Entities[i]
		}
	}
	if slices.Contains(r.Deleted, was.Name) {
		return stored.Entity{}
	}
	return *was
}

// commitsReserved notes the tokens of a lease that a record commits.
func (o *observer) commitsReserved(q *stored.Request) {
	if r := o.s.settles[q.Key]; r != nil && q.Kind == stored.CommitRequest && q.State == stored.Ran {
		r.kept = q.Tokens
	}
}

// reservedElsewhere reports whether another site has ever held a lease of an entity that sites
// hand over. Tokens of a lease may have come back by the clock. A leaver then bequeaths a
// number below zero at first. The tokens of the lease follow, in a lease or without.
func (o *observer) reservedElsewhere(n *node, q *sequence) bool {
	if q.handoffs == nil {
		return false
	}
	for _, r := range o.s.reservations {
		if r.by != nil && r.by != n && r.name == q.id.entity {
			return true
		}
	}
	return false
}
