package sim

import (
	"slices"

	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/stored"
)

// Clients lease shares of buckets and windows, renew them, give them back, commit them, or
// let them expire. The holder of a share of a bucket grants tokens from a bucket of its own,
// and its grants are judged with those of sites (flows.go). The holder of a share of a window
// may grant all its tokens in each window of the lease, as the site draws it, and in the next
// window after its end: its clock may be ahead by a window. So its tokens count as granted in
// each of these, whatever it grants.
//
// The books of a site have the tokens of its shares out as long as the shares live, and those
// of a window for two windows more.

// shareable reports whether an entity has leases of share.
func (s *sim) shareable(name string) bool {
	t, rated := s.rates[name]
	return rated && t.Kind != rates.Sliding && !t.Keys && name == templateOf(name) && !s.inTree(name)
}

// ofShare has an acquire ask for a lease of share.
func (p *op) ofShare(s *sim) {
	p.share, p.ttl = true, micros(3000+s.r.IntN(30_000))*millisecond
	switch {
	case s.o.Leaves && s.chance(700):
		// Else leases end before the records of their acquires do, and go to no heir.
		p.ttl = micros(90+s.r.IntN(300)) * second
	case s.faults.Has(ClockStep):
		p.ttl *= 3
	}
}

// startSharing starts the clients that lease shares, in some runs.
func (s *sim) startSharing() {
	var names []string
	for _, name := range slices.Concat(s.admin.names, s.drawn) {
		if s.shareable(name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 || !s.chance(600) {
		return
	}
	for range 1 + s.r.IntN(4) {
		c := &client{s: s, held: make(map[string]core.Tokens), big: 1 + s.r.IntN(20), pause: 50 + s.r.IntN(1000)}
		s.after(micros(1000+s.r.IntN(1000))*millisecond, func() { c.nextShare(names) })
	}
}

// nextShare leases a share of a quota, or uses a lease.
func (c *client) nextShare(names []string) {
	s := c.s
	if s.healed {
		return
	}
	again := func() {
		s.after(micros(1+s.r.IntN(2*c.pause))*millisecond, func() { c.nextShare(names) })
	}
	switch {
	case s.now >= s.faultsEnd-s.load.quiet:
		again()
	case len(c.leases) > 0 && s.chance(500):
		c.useLease(again)
	default:
		p := &op{kind: acquire, entity: names[s.r.IntN(len(names))], site: s.someSite(), tokens: core.Tokens(1 + s.r.IntN(c.big)), least: 1}
		p.ofShare(s)
		p.then = func(a *answer.Answer) {
			c.took(p, a)
			again()
		}
		p.roam(s)
		s.issue(p)
	}
}

// holds has the holder of a share of a bucket grant tokens until its lease ends, as far as the
// holder knows.
func (s *sim) holds(l *lease) {
	t := s.rates[l.op.entity]
	if t.Kind != rates.Bucket {
		return
	}
	l.level, l.levelAt = float64(l.counted), s.now
	pace := 1 + s.r.Int64N(s.periodOf(&t))
	saves := s.chance(500)
	var next func()
	next = func() {
		left := l.lastsUntil() - s.now
		if left < 0 || l.quit || l.deleted || s.healed || s.violation != nil {
			return
		}
		if wait := 1 + s.r.Int64N(2*pace); wait < left {
			if !saves || s.chance(200) {
				s.holderGrants(l, &t)
			}
			s.after(wait, next)
			return
		}
		// Later it may have no more time.
		s.holderGrants(l, &t)
		s.after(left+1, next)
	}
	next()
}

// holderGrants has the holder of a share of a bucket grant what it has.
func (s *sim) holderGrants(l *lease, t *rates.Terms) {
	most := float64(l.counted)
	l.level = min(most, l.level+most*float64(s.now-l.levelAt)/float64(s.periodOf(t)))
	l.levelAt = s.now
	if tokens := core.Tokens(l.level); tokens > 0 {
		l.level -= float64(tokens)
		s.report.SharesGranted++
		s.observe.flows(s.observe.sequence(sequenceID{l.op.entity, l.generation}), l.op.entity, t,
			flowing{from: s.now, until: s.now, tokens: tokens, site: l.home.i})
	}
}

// lastsUntil is the time until which a holder may rely on its lease, even if its renewals
// under way fail.
func (l *lease) lastsUntil() micros {
	until := l.earliest
	for _, r := range l.renewals {
		ttl := r.op.ttl
		if ttl == 0 {
			ttl = l.ttl
		}
		until = min(until, r.at+l.lasts(ttl))
	}
	return until - early
}

// endedShare are tokens of a lease of share that has ended in a window, or in a later one.
type endedShare struct {
	id     sequenceID
	window int64
	tokens core.Tokens
}

// ended is the number of tokens of ended shares that a site counts as out.
func ended(r *stored.Rate) core.Tokens { return r.Ended.Last + r.Ended.Before }

// sharesIn counts the tokens of shares of windows as granted in each window of their lives,
// and notes shares that have ended.
func (o *observer) sharesIn(n *node, r *stored.Records) {
	if len(n.shares) == 0 {
		return
	}
	for _, l := range n.shares {
		if l.shadow || l.deleted || l.forgotten || l.home != n {
			continue
		}
		name := l.op.entity
		was := n.durable.Entities[name]
		is := was
		for i := range r.Entities {
			if r.Entities[i].Name == name {
				is = r.Entities[i]
			}
		}
		had := l.had
		if had == 0 {
			had = l.whole // granted by this transaction, which may end it, too
		}
		lost := had - l.tokens
		if t := o.s.rates[name]; t.Kind == rates.Window && is.Generation == l.generation {
			first := is.Rate.Window
			if was.Generation == is.Generation {
				first = was.Rate.Window
				if o.note.wall > 0 {
					first = max(first, o.s.windowAt(name, o.note.wall))
				}
			}
			if l.had == 0 {
				l.countedTo = max(l.countedTo, is.Rate.Window-1)
			}
			if lost > 0 {
				o.shareIn(l, first, had)
				if l.countedTo == first {
					o.grantedIn(o.sequence(sequenceID{name, l.generation}), name, first+1, lost, nowhere)
				}
				n.endedShares = append(n.endedShares, endedShare{sequenceID{name, l.generation}, first, lost})
			}
			o.shareIn(l, is.Rate.Window, l.tokens)
		}
		if lost > 0 {
			o.s.report.SharesEnded++
		}
		l.had = l.tokens
	}
	n.shares = slices.DeleteFunc(n.shares, func(l *lease) bool { return l.ended || l.deleted || n.leases[l.number] != l })
}

// nowhere is the site of grants that no reset gives back.
const nowhere = -1

// shareIn counts tokens of a lease in each window up to a window, if not done yet.
func (o *observer) shareIn(l *lease, window int64, tokens core.Tokens) {
	for l.countedTo < window {
		l.countedTo++
		o.grantedIn(o.sequence(sequenceID{l.op.entity, l.generation}), l.op.entity, l.countedTo, tokens, nowhere)
	}
}

// inShares is the number of tokens that the leases of share of a site hold.
func (n *node) inShares(b *stored.Books) (held core.Tokens) {
	for _, l := range n.shares {
		if l.op.entity == b.Name && l.generation == b.Generation && !l.deleted && !l.forgotten {
			held += l.tokens
		}
	}
	return held
}

// inEndedShares is the number of tokens of ended leases of share that are still out.
func (n *node) inEndedShares(b *stored.Books) (out core.Tokens) {
	for _, e := range n.endedShares {
		if e.id == (sequenceID{b.Name, b.Generation}) {
			out += e.tokens
		}
	}
	return out
}

// sharesOut checks that the tokens in shares are out by the books of a site, and so are those
// of shares of a window that have ended. It returns the number of tokens in shares.
func (o *observer) sharesOut(n *node, q *sequence, b *stored.Books, is *stored.Rate) core.Tokens {
	held := n.inShares(b)
	stays := held
	n.endedShares = slices.DeleteFunc(n.endedShares, func(e endedShare) bool { return e.id == q.id && is.Window >= e.window+2 })
	if !o.departing[n.id] {
		stays += n.inEndedShares(b)
	}
	if b.Net < stays && !o.reservedElsewhere(n, q) {
		o.s.fail(Rates, "%s: %d of %v are out in window %d, shares hold %d, and %d more have just ended", n.id, b.Net, q.id, is.Window, held, stays-held)
	}
	return held
}

// inheritedShares is the number of tokens of shares that a site takes with a bequest in the
// transaction under check.
func (o *observer) inheritedShares(n *node, name string) (tokens core.Tokens) {
	for _, l := range n.shares {
		if l.op.entity == name && l.takenIn == o.batches {
			tokens += l.tokens
		}
	}
	return tokens
}

// wasInDebt reports whether an entity ever was in debt, up to the last instance that a site
// has applied.
func (o *observer) wasInDebt(n *node, l *lease) bool {
	q, e := o.sequence(sequenceID{l.op.entity, l.generation}), n.durable.Entities[l.op.entity]
	if len(o.s.nodes) == 1 {
		return e.Debt > 0
	}
	return slices.ContainsFunc(q.debts[:min(len(q.debts), int(e.Protocol.Applied)+1)], func(debt core.Tokens) bool { return debt > 0 })
}
