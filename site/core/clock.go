package core

import (
	"github.com/samya-db/samya/site/core/stored"
)

// clock is the site's own time, by which leases end: within a life the monotonic clock.
// Over a restart it goes on from the last stored time. It adds the advance of the wall
// clock since, but at most the allowed skew: a wall clock that was set ahead looks like a
// long downtime.
type clock struct {
	// base is the own time at the tick from.
	base    int64
	from    Tick
	started bool
	// stored is the time when it was last handed over; 0 for never in this life.
	stored   Tick
	restored *stored.Clock
}

// startClock sets the own time at the first step.
func (c *leasing) startClock() {
	k := &c.clock
	k.started, k.from = true, c.now.Tick
	last := stored.Clock{Own: c.now.Wall, Wall: c.now.Wall}
	switch {
	case k.restored != nil:
		last = *k.restored
	case len(c.leases.restored) > 0:
		// Data of a version that stored no clock: it ran when it last granted a lease.
		last = stored.Clock{}
		for _, l := range c.leases.restored {
			granted := l.Expires - int64(l.TTL)
			last.Own, last.Wall = max(last.Own, granted), max(last.Wall, granted)
		}
	}
	k.base = last.Own + min(max(0, c.now.Wall-last.Wall), c.cfg.Skew)
	k.restored = nil
}

// own is the site's own time.
func (c *leasing) own() int64 { return c.clock.base + int64(c.now.Tick-c.clock.from) }

// clockWake is the time to store the clock although nothing else is; 0 for never.
func (c *leasing) clockWake() Tick {
	if len(c.leases.byKey) == 0 {
		return 0
	}
	stored := c.clock.stored
	if len(c.out.Records.Leases) > 0 {
		// The transaction that stores the leases stores the clock.
		stored = c.now.Tick
	}
	return max(1, stored+Tick(c.cfg.Skew))
}

// wakeClock stores the clock if it is time to, although nothing else may be stored.
func (c *leasing) wakeClock() {
	if at := c.clockWake(); at != 0 && at <= c.now.Tick {
		c.keepClock(&c.out.Records)
	}
}

// keepClock adds the clock to a transaction.
func (c *leasing) keepClock(rec *stored.Records) {
	c.clock.stored = c.now.Tick
	rec.Clock = &stored.Clock{Own: c.own(), Wall: c.now.Wall}
}

// storeClock stores the clock with a transaction that grants or renews leases, and now
// and then with any other, as long as leases depend on it. After a crash leases last
// longer by the time since the clock was last stored.
func (c *leasing) storeClock(rec *stored.Records) {
	if rec.Empty() || rec.Clock != nil || len(c.leases.byKey) == 0 {
		return
	}
	if len(rec.Leases) == 0 && c.now.Tick < c.clock.stored+Tick(c.cfg.Skew)/10 {
		return
	}
	c.keepClock(rec)
}
