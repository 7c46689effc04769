package core

import (
	"cmp"

	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/tidwall/btree"
)

// leasing grants, prolongs and ends leases, by the site's own clock.
type leasing struct {
	*common
	*charging
	*remembering
	*asking
	leases leases
	clock  clock
}

// lease is a lease that has not ended. A million leases with ids of 26 bytes and 1000
// holders take about 300 bytes of memory each, see TestMemoryOfLeases.
type lease struct {
	stored.Lease
	key attempt.Key
	// entity is nil if its generation did not exist at the restart.
	entity *entity
	// until is the tick of its end, in this life; heapAt its place in the calendar, or
	// -1.
	until  Tick
	heapAt int32
}

// leases are the leases of a site. A lease ends once: the record that removes it and the
// books that count its tokens as given back are in the same transaction.
type leases struct {
	byKey map[attempt.Key]*lease
	// ends orders the leases by their ends.
	ends calendar[*lease]
	// The indexes are for listings; each ends with the number.
	byNumber, byHolder, byEntity, byBoth *btree.BTreeG[*lease]
	// number is the number of the last lease granted.
	number uint64
	// restored are the leases found at the start, until the time is known.
	restored []*lease
	// lost are the generations of deleted entities whose leases are still to be removed;
	// 0 for leases without an entity at the restart.
	lost []uint64
	// more is the time to end the leases left over by a step; 0 for none.
	more Tick
	// frozen are the leases on their way to an heir: nobody changes them here.
	frozen map[attempt.Key]bool
}

// before implements dated: leases of one instant end in the order of their numbers.
func (l *lease) before(o *lease) bool {
	return l.until < o.until || l.until == o.until && l.Number < o.Number
}

// index implements dated.
func (l *lease) index() *int32 { return &l.heapAt }

func byNumber(a, b *lease) int { return cmp.Compare(a.Number, b.Number) }

func newLeases() leases {
	index := func(order func(a, b *lease) int) *btree.BTreeG[*lease] {
		return btree.NewBTreeGOptions(func(a, b *lease) bool { return order(a, b) < 0 }, btree.Options{NoLocks: true, Degree: 16})
	}
	return leases{
		byKey:    make(map[attempt.Key]*lease),
		byNumber: index(byNumber),
		byHolder: index(func(a, b *lease) int { return cmp.Or(cmp.Compare(a.Holder, b.Holder), byNumber(a, b)) }),
		byEntity: index(func(a, b *lease) int { return cmp.Or(cmp.Compare(a.Generation, b.Generation), byNumber(a, b)) }),
		byBoth: index(func(a, b *lease) int {
			return cmp.Or(cmp.Compare(a.Holder, b.Holder), cmp.Compare(a.Generation, b.Generation), byNumber(a, b))
		}),
	}
}

// add makes a lease findable.
func (t *leases) add(l *lease) {
	t.byKey[l.key] = l
	t.byNumber.Set(l)
	t.byEntity.Set(l)
	if l.Holder != "" {
		t.byHolder.Set(l)
		t.byBoth.Set(l)
	}
}

func (t *leases) remove(l *lease) {
	delete(t.byKey, l.key)
	delete(t.frozen, l.key)
	t.ends.remove(l)
	t.byNumber.Delete(l)
	t.byEntity.Delete(l)
	if l.Holder != "" {
		t.byHolder.Delete(l)
		t.byBoth.Delete(l)
	}
}

// restoreLeases takes up the leases found at the start. startLeases sets their ends, once
// the time is known.
func (c *leasing) restoreLeases(records []stored.Lease) {
	c.leases = newLeases()
	for _, r := range records {
		l := &lease{Lease: r, key: attempt.KeyOf(r.ID), heapAt: -1}
		c.leases.number = max(c.leases.number, r.Number)
		if e := c.space.find(r.Entity); e != nil && e.generation == r.Generation {
			l.entity = e
			if rateOf(e) != nil && rateOf(e).flow != nil {
				l.Window = rates.Void
			}
			l.Above = windowedMarks(e, r.Above)
			restoreShare(e, &r)
		} else {
			l.Generation = 0
			c.leases.lost = []uint64{0}
		}
		c.leases.add(l)
		c.leases.restored = append(c.leases.restored, l)
	}
}

// startLeases sets the ends of the restored leases at the first step: the time left by
// the site's own clock, but never more than the time to live.
func (c *leasing) startLeases() {
	for _, l := range c.leases.restored {
		remaining := Tick(min(max(0, l.Expires-c.own()), int64(l.TTL)))
		l.until = c.now.Tick + remaining
		if !c.leases.frozen[l.key] {
			c.leases.ends.add(l)
		}
	}
	c.leases.restored = nil
}

// leaseOf returns a lease that has not ended.
func (c *leasing) leaseOf(key attempt.Key) (*lease, bool) {
	l, ok := c.leases.byKey[key]
	if !ok || l.until <= c.now.Tick || l.entity == nil || !c.exists(l.entity) {
		return nil, false
	}
	return l, true
}

// liveLease returns a lease that has not ended, or the answer that says why the caller
// cannot have it. A site that leaves, or was about to, cannot tell whether the lease has
// ended.
func (c *leasing) liveLease(key attempt.Key) (*lease, answer.Answer) {
	l, ok := c.leaseOf(key)
	switch {
	case ok && c.leases.frozen[key]:
		return nil, answer.Answer{Code: answer.Overloaded, RetryAfter: onItsWay}
	case ok:
		return l, answer.Answer{}
	}
	if s := c.roster.Seat(c.cfg.Self); s != nil && s.Heir != "" {
		return nil, answer.Answer{Code: answer.Moved, Lacking: string(s.Heir)}
	}
	return nil, answer.Answer{Code: answer.NoLease}
}

// onItsWay is the time in milliseconds after which a caller may ask again for a lease on
// its way to an heir.
const onItsWay = 100

// freezeLeases has nobody change an entity's leases that are on their way to an heir, until
// they are dropped.
func (c *leasing) freezeLeases(e *entity) {
	t := &c.leases
	thawed := t.frozen
	t.frozen = nil
	if b := e.handoff().State().Open; b != nil {
		for i := range b.Estate.Items {
			if p, err := unpackLease(b.Estate.Items[i].Data); err == nil {
				if l, found := t.byKey[attempt.KeyOf(p.ID)]; found {
					t.freeze(l)
				}
			}
		}
	}
	for key := range thawed {
		l, found := t.byKey[key]
		switch {
		case !found || t.frozen[key]:
		case l.entity != e:
			t.freeze(l)
		default:
			t.ends.add(l)
		}
	}
}

func (t *leases) freeze(l *lease) {
	if t.frozen == nil {
		t.frozen = make(map[attempt.Key]bool)
	}
	t.frozen[l.key] = true
	t.ends.remove(l)
}

// lend makes a lease of granted tokens.
func (c *leasing) lend(e *entity, r *request, tokens Tokens) answer.Lease {
	c.leases.number++
	l := &lease{
		Lease: stored.Lease{
			Number: c.leases.number, ID: r.lease.ID, Entity: e.name, Generation: e.generation, Tokens: tokens,
			Holder: r.lease.Holder, Window: markOf(e), Above: marksAbove(e), Share: r.lease.Share,
		},
		key: r.key, entity: e, heapAt: -1,
	}
	if c.leases.add(l); l.Share {
		c.hold(e, tokens)
	}
	c.prolong(l, r.lease.TTL)
	c.leaseEvent(l, event.LeaseGranted)
	return c.leaseView(l)
}

// prolong sets the end of a lease to ttl from now.
func (c *leasing) prolong(l *lease, ttl Tick) {
	l.TTL, l.Expires, l.until = ttl, c.own()+int64(ttl), c.now.Tick+ttl
	c.leases.ends.add(l)
	c.storeLease(l)
}

func (c *leasing) storeLease(l *lease) {
	c.out.Records.Leases = append(c.out.Records.Leases, l.Lease)
}

// dropLease ends a lease; the caller takes care of its tokens.
func (c *leasing) dropLease(l *lease) {
	c.leases.remove(l)
	c.out.Records.EndedLeases = append(c.out.Records.EndedLeases, l.Number)
}

// takeBack puts tokens of a lease back into the books, and ends the lease if none are
// left. It reports whether they fit. The caller goes on with freed.
func (c *leasing) takeBack(l *lease, tokens Tokens) bool {
	if l.Share {
		c.endShare(l.entity, tokens)
	} else if _, fits := c.charging.creditLease(l, tokens); !fits {
		return false
	}
	if l.Tokens -= tokens; l.Tokens == 0 {
		c.dropLease(l)
	} else {
		c.storeLease(l)
	}
	return true
}

// giveBack gives back a lease's tokens, up to most, 0 being all, and returns their
// number. An ended lease has no tokens to give back.
func (c *leasing) giveBack(key attempt.Key, most Tokens) Tokens {
	l, ok := c.leaseOf(key)
	if !ok {
		return 0
	}
	tokens := l.part(most)
	if !c.takeBack(l, tokens) {
		return 0
	}
	c.leaseEvent(l, event.LeaseReturned)
	c.freed(l.entity)
	return tokens
}

// endLease ends a lease and returns the number of tokens that it gave back.
func (c *leasing) endLease(key attempt.Key) Tokens { return c.giveBack(key, 0) }

// part is the number of its tokens asked for, 0 being all.
func (l *lease) part(most Tokens) Tokens {
	if most == 0 {
		return l.Tokens
	}
	return min(most, l.Tokens)
}

func (c *leasing) leaseView(l *lease) answer.Lease {
	return answer.Lease{
		Number: l.Number, ID: l.ID, Entity: l.Entity, Tokens: l.Tokens, Remaining: l.until - c.now.Tick, Holder: l.Holder,
		Share: l.Share,
	}
}

func (c *leasing) leaseEvent(l *lease, kind event.Kind) {
	c.out.Events = append(c.out.Events, event.Event{Kind: kind, Entity: l.Entity})
}

// barred refuses an acquire that cannot become a lease, and reports whether it did. There
// are too many leases, or a lease has that id although its acquire is no longer
// remembered.
func (c *leasing) barred(call input.Call, r *request) bool {
	if r.lease == nil {
		return false
	}
	if l, ok := c.leases.byKey[r.key]; ok {
		if _, live := c.leaseOf(r.key); live {
			c.reply(call, answer.Answer{Code: answer.Reused})
			return true
		}
		if !c.expireLease(l) {
			c.reply(call, answer.Answer{Code: answer.Overflow})
			return true
		}
	}
	if len(c.leases.byKey)+len(c.waiting) < c.cfg.MaxLeases {
		return false
	}
	c.reply(call, answer.Answer{Code: answer.Overloaded, RetryAfter: 1000})
	return true
}

// expireLease ends an expired lease that expireLeases has not reached yet. It reports
// whether the lease has ended.
func (c *leasing) expireLease(l *lease) bool {
	if !c.creditLease(l) {
		return false
	}
	if l.entity != nil && c.serves(l.entity) {
		c.freed(l.entity)
	}
	return true
}

// creditLease ends a lease whose time is up and gives back its tokens, unless its entity
// was deleted. If the books have no room it is left for later.
func (c *leasing) creditLease(l *lease) bool {
	if l.entity == nil || !c.exists(l.entity) {
		c.dropLease(l)
		return true
	}
	if l.entity.halted() || !c.takeBack(l, l.Tokens) {
		l.until = c.now.Tick + creditAgain
		c.leases.ends.add(l)
		return false
	}
	c.leaseEvent(l, event.LeaseExpired)
	return true
}
