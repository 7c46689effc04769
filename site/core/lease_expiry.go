package core

import (
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

const (
	// maxEnding bounds the leases that end by themselves in a step: further leases follow
	// a millisecond later.
	maxEnding = 1000
	// creditAgain is the time in milliseconds after which the end of a lease is tried
	// again, if the books have no room for its tokens.
	creditAgain = 1000
)

// wakeAt is the next time at which leases end; 0 for never.
func (t *leases) wakeAt() Tick {
	if len(t.restored) > 0 {
		return 1
	}
	at := t.more
	if len(t.lost) > 0 {
		at = earlier(at, 1)
	}
	if len(t.ends) > 0 {
		at = earlier(at, max(1, t.ends[0].until))
	}
	if t.more != 0 {
		at = max(at, t.more)
	}
	return at
}

// expireLeases ends the leases whose time is up, and the leases of deleted entities.
func (c *leasing) expireLeases() {
	t := &c.leases
	if t.more > c.now.Tick {
		return
	}
	room := c.loseLeases(maxEnding)
	for room > 0 && len(t.ends) > 0 && t.ends[0].until <= c.now.Tick {
		room--
		l := t.ends[0]
		if c.creditLease(l) && l.entity != nil {
			for e := range l.entity.chain() {
				c.later(e)
			}
		}
	}
	t.more = 0
	if len(t.lost) > 0 || len(t.ends) > 0 && t.ends[0].until <= c.now.Tick {
		t.more = c.now.Tick + 1
	}
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

// deletedLeases has the leases of a deleted entity end.
func (c *leasing) deletedLeases(e *entity) {
	if _, some := c.leases.firstOf(e.generation); some {
		c.leases.lost = append(c.leases.lost, e.generation)
	}
}

// firstOf returns the first lease of a generation.
func (t *leases) firstOf(generation uint64) (*lease, bool) {
	var first *lease
	t.byEntity.Ascend(&lease{Lease: stored.Lease{Generation: generation}}, func(l *lease) bool {
		if l.Generation == generation {
			first = l
		}
		return false
	})
	return first, first != nil
}

// loseLeases ends at most room leases of deleted entities, and returns the rest of room.
func (c *leasing) loseLeases(room int) int {
	for room > 0 && len(c.leases.lost) > 0 {
		l, some := c.leases.firstOf(c.leases.lost[0])
		if !some {
			c.leases.lost = c.leases.lost[1:]
			continue
		}
		c.dropLease(l)
		room--
	}
	return room
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
