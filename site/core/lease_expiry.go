package core

import (
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

// deletedLeases has the leases of a deleted entity end.
func (c *leasing) deletedLeases(e *entity) {
	if _, some := c.leases.firstOf(e.generation); some {
		c.leases.lost = append(c.leases.lost, e.generation)
	}
}

// leasesOf visits the leases of an entity.
func (c *leasing) leasesOf(e *entity, visit func(l *lease)) {
	c.leases.byEntity.Ascend(&lease{Lease: stored.Lease{Generation: e.generation}}, func(l *lease) bool {
		if l.Generation == e.generation {
			visit(l)
		}
		return l.Generation == e.generation
	})
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
