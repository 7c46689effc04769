package sim

import (
	"slices"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// lease is the model of a lease that a site has granted.
type lease struct {
	op         *op
	home       *node
	number     uint64
	generation uint64
	// tokens are the tokens that it durably holds, kept the committed tokens.
	tokens, kept core.Tokens
	// counted are the tokens that are out from its client's view.
	counted core.Tokens
	// block holds the record of the grant.
	block uint64
	// undone, ended and deleted say how the lease ended, if it did.
	undone, ended, deleted bool
	expires                int64
	ttl                    micros
	// whole are the tokens that a lease of share was granted with.
	whole core.Tokens
	// earliest and latest are when it ends by itself.
	earliest, latest micros
	// renewals are the renewals handed to its home and not answered, in order.
	renewals []renewal

	// given are the tokens that the transaction under check gives back, and lost the
	// tokens that the lease loses by it. committed says that the transaction commits the
	// lease.
	given, lost core.Tokens
	committed   bool
	// shadow says that the heir has the lease, and this home has yet to hear so; by is the
	// place of the site that granted it. inheritor is the release that the transaction
	// under check ends at the heir itself.
	shadow    bool
	by        int
	inheritor *op
	// forgotten says that the bequest with the lease was dropped, as the heir is lost.
	forgotten bool
	// takenIn is the number of the transaction in which its present home has taken it from
	// another.
	takenIn int
	// whileDown says that its time was over when its home started again.
	whileDown bool

	// had are the tokens of a share when it was last looked at, countedTo is the last window
	// in which they count as granted; see sharesIn.
	had       core.Tokens
	countedTo int64
	// level is what the holder of a share of a bucket may grant, at a time. quit says that it
	// has given up all.
	level   float64
	levelAt micros
	quit    bool
}

// renewal is a request to renew a lease, and when it was handed over.
type renewal struct {
	op *op
	at micros
}

// early is by how much a lease may end sooner than expected: clocks drift.
const early = second

// lasts is the true time of a lease's time to live at its home.
func (l *lease) lasts(ttl micros) micros { return micros(float64(ttl) / l.home.drift) }

// over reports whether the lease has ended, or may have by now.
func (l *lease) over() bool { return l.ended || l.deleted || l.home.s.now+early >= l.earliest }

// named notes that a request about the lease is handed over to a site.
func (l *lease) named(n *node, p *op) {
	if p.kind == renew && n == l.home {
		l.renewals = append(l.renewals, renewal{p, n.s.now})
	}
}

// renewalAnswered notes that its home has answered a renewal, now durable.
func (l *lease) renewalAnswered(n *node, p *op) {
	if i := slices.IndexFunc(l.renewals, func(r renewal) bool { return r.op == p }); n == l.home && i >= 0 {
		l.renewals = slices.Delete(l.renewals, i, i+1)
	}
}

// gives notes that a release has given back tokens at the home.
func (l *lease) gives(n *node, p *op, tokens core.Tokens) {
	if n != l.home && tokens == 0 && n.s.o.Leaves {
		return
	}
	if n != l.home {
		n.s.fail(Leases, "%s gives back tokens of a lease of %s: %v", n.id, l.home.id, p)
		return
	}
	if p.tokens > 0 && tokens > p.tokens {
		n.s.fail(Leases, "%s gives back %d tokens for %v", n.id, tokens, p)
	}
	l.given += tokens
	n.s.report.LeasesReturned++
}

// commits notes that a lease is committed, and returns the tokens that stay out.
func (l *lease) commits(n *node, tokens core.Tokens) core.Tokens {
	if n != l.home || l.committed || l.kept > 0 {
		n.s.fail(Leases, "%s commits lease #%d of %s again", n.id, l.op.id, l.home.id)
		return 0
	}
	l.kept, l.committed = tokens, true
	n.s.report.LeasesCommitted++
	if l.op.share {
		return 0 // all its tokens stay out
	}
	return tokens
}

// leasesStored takes in the leases that are about to become durable.
func (o *observer) leasesStored(n *node, r *stored.Records) {
	for i := range r.Leases {
		rec := &r.Leases[i]
		if o.reservationStored(n, r, rec) {
			continue
		}
		l := n.leases[rec.Number]
		op := o.s.opOf(attempt.KeyOf(rec.ID))
		switch {
		case op == nil || op.kind != acquire || op.ttl == 0:
			o.s.fail(Leases, "%s stores a lease that nobody asked for: %+v", n.id, rec)
			return
		case rec.Share != op.share:
			o.s.fail(Leases, "%s stores %+v for %v", n.id, rec, op)
			return
		case o.inherits(n, o.inherited(n, r, rec), rec):
			continue
		case l != nil && l.shadow && !l.ended:
			o.s.fail(Leases, "%s changes %+v, which its heir has", n.id, rec)
			return
		case l == nil || l.ended:
			// A number may be used again after a restart.
			l = &lease{op: op, home: n, number: rec.Number, generation: rec.Generation, tokens: rec.Tokens, block: r.Block.Sequence, by: n.i}
			l.earliest = op.issued + l.lasts(op.ttl)
			n.leases[rec.Number], op.at[n.i].lease = l, l
			o.movesLease(n, l, rec.Tokens)
			if op.share {
				n.shares, l.whole = append(n.shares, l), rec.Tokens
				o.s.report.Shares++
			}
		case rec.Tokens > l.tokens || l.op != op:
			o.s.fail(Leases, "%s stores %+v, after a lease #%d with %d tokens, ended: %t", n.id, rec, l.op.id, l.tokens, l.ended)
			return
		default:
			o.givesLease(n, l, l.tokens-rec.Tokens)
			l.lost += l.tokens - rec.Tokens
			l.tokens = rec.Tokens
		}
		if rec.Expires != l.expires {
			ttl := micros(rec.TTL) * millisecond
			if l.expires != 0 && l.takenIn != o.batches {
				o.s.report.LeasesRenewed++
				if op.share {
					o.s.report.SharesRenewed++
				}
				if len(l.renewals) == 0 {
					o.s.fail(Leases, "%s renews lease #%d, and nobody asked for it", n.id, l.op.id)
					return
				}
				l.earliest = l.renewals[0].at + l.lasts(ttl)
			}
			l.expires, l.ttl, l.latest = rec.Expires, ttl, o.s.now+l.lasts(ttl)
		}
	}
}

// movesLease counts tokens that a lease puts out, or takes back.
func (o *observer) movesLease(n *node, l *lease, tokens core.Tokens) {
	if !l.deleted {
		o.moves(n, l.op.entity, tokens)
	}
}

// givesLease counts tokens that a lease gives back. Tokens of a share stay out: they count
// as granted just then.
func (o *observer) givesLease(n *node, l *lease, tokens core.Tokens) {
	if !l.op.share {
		o.movesLease(n, l, -tokens)
	}
}

// leaseOf returns the lease of an acquire with its record at a site in a block: the first
// lease that has neither ended nor been undone; nil for none. A transaction may undo a
// lease and grant another. The new lease has a later block, and is not meant even if the
// old lease has ended.
func (n *node) leaseOf(p *op, block uint64) *lease {
	var first *lease
	for _, l := range n.leases {
		if l.op == p && !l.ended && !l.undone && l.block <= block && (first == nil || l.number < first.number) {
			first = l
		}
	}
	return first
}

// leasesEnded takes in the ends of leases, after all requests of a transaction.
func (o *observer) leasesEnded(n *node, r *stored.Records) {
	for _, number := range r.EndedLeases {
		if o.reservationEnded(n, r, number) {
			continue
		}
		l := n.leases[number]
		if l == nil || l.ended {
			o.s.fail(Leases, "%s ends lease number %d, which has ended or never was", n.id, number)
			return
		}
		if l.forgotten {
			o.leaseForgotten(n, l)
			continue
		}
		if l.shadow {
			o.unshadowed(n, l)
			continue
		}
		l.ended = true
		rest := l.tokens
		o.givesLease(n, l, rest)
		l.lost += rest
		l.tokens = 0
	}
	for i := range r.Leases {
		o.leaseChanged(n, n.leases[r.Leases[i].Number])
	}
	for _, number := range r.EndedLeases {
		o.leaseChanged(n, n.leases[number])
	}
}

// leaseChanged checks the change of a lease in a transaction.
func (o *observer) leaseChanged(n *node, l *lease) {
	if l == nil {
		return // a reservation
	}
	lost, given := l.lost, l.given
	l.lost, l.given = 0, 0
	inheritor := l.inheritor
	l.inheritor = nil
	switch {
	case l.deleted, l.shadow, l.forgotten:
	case inheritor != nil && (inheritor.tokens == 0 || lost <= inheritor.tokens):
	case given > lost:
		o.s.fail(Leases, "%s: lease #%d gives back %d tokens, and held %d", n.id, l.op.id, given, lost)
	case l.committed:
		l.committed = false
		if given+l.kept > lost || !l.ended {
			o.s.fail(Leases, "%s: lease #%d held %d tokens; %d are given back, %d committed, ended: %t", n.id, l.op.id, lost,
				given, l.kept, l.ended)
		}
	case !l.ended && given != lost:
		o.s.fail(Leases, "%s: lease #%d has %d tokens less, given back are %d", n.id, l.op.id, lost, given)
	case l.ended && given != lost && !l.undone:
		o.expires(n, l)
	}
	if l.undone && !l.over() {
		o.s.fail(Leases, "%s undoes %v, and keeps its lease", n.id, l.op)
	}
	// The client need not know that it has less.
	if now := l.tokens + l.kept; l.counted > now {
		o.less(l, now)
	}
}

// expires checks that a lease ends by itself when its time is over.
func (o *observer) expires(n *node, l *lease) {
	o.s.report.LeasesExpired++
	if l.whileDown {
		o.s.report.ExpiredWhileDown++
	}
	if o.s.now+early < l.earliest {
		o.s.fail(Leases, "%s: lease #%d ends %d ms before its time is over", n.id, l.op.id, (l.earliest-o.s.now)/millisecond)
	}
}

// less counts fewer tokens of a lease as out, from its client's view.
func (o *observer) less(l *lease, tokens core.Tokens) {
	o.outstanding[l.op.entity] -= l.counted - tokens
	l.counted = tokens
}

// leasesDeleted forgets the leases of an entity that a site deletes, except leases of the
// entity that takes its name within the same transaction.
func (o *observer) leasesDeleted(n *node, r *stored.Records, name string) {
	var now uint64
	for i := range r.Entities {
		if r.Entities[i].Name == name {
			now = r.Entities[i].Generation
		}
	}
	for _, l := range n.leases {
		if l.op.entity == name && l.generation != now && !l.deleted {
			l.deleted, l.tokens, l.kept = true, 0, 0
			o.less(l, 0)
		}
	}
}

// leasesStart tells when the leases of a site that has started end at the latest: by the
// clock that it stored last, and by its calendar's advance since, up to the allowed skew.
// No lease ends later than its time to live from now. Leases may end sooner than in truth
// by as much as the calendar was set ahead, up to the same skew.
func (o *observer) leasesStart(n *node, now input.Now) {
	last := n.durable.Clock
	if last == nil {
		return // it never had a lease
	}
	trusted := min(max(0, now.Wall-last.Wall), n.cfg.Skew)
	ahead := max(0, trusted*millisecond-(o.s.now-n.clockStored))
	for _, l := range n.leases {
		if l.ended {
			continue
		}
		remaining := min(max(0, (l.expires-last.Own-trusted)*millisecond), l.ttl)
		l.whileDown = remaining == 0
		l.earliest -= ahead
		l.latest = o.s.now + l.lasts(remaining)
	}
}

// forgetRenewals forgets the renewals handed to a site before it stopped. The first input
// of the new life may be a renewal, and counts.
func (n *node) forgetRenewals() {
	for _, l := range n.leases {
		l.renewals = nil
	}
}

// leasesInTime checks that leases past their time have ended.
func (s *sim) leasesInTime() {
	for _, n := range s.nodes {
		if !n.up || n.stale != nil || n.paused() || n.status.Missing > 0 {
			n.served = s.now
			continue
		}
		for _, l := range n.live() {
			if l.shadow || l.onItsWay() {
				continue
			}
			if since := max(l.latest, n.served); since+slack < s.now {
				s.fail(Leases, "%s: lease #%d should have ended %d ms ago", n.id, l.op.id, (s.now-l.latest)/millisecond)
			}
		}
	}
	s.after(second, s.leasesInTime)
}

// live lists the leases of a site that have not ended, in the order of their
// numbers.
func (n *node) live() []*lease {
	var list []*lease
	for _, l := range n.leases {
		if !l.ended && !l.deleted {
			list = append(list, l)
		}
	}
	slices.SortFunc(list, func(a, b *lease) int { return int(a.number) - int(b.number) })
	return list
}
