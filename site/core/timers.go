package core

import (
	"container/heap"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/star"
	"github.com/samya-db/samya/avantan/transfer"
)

// timers orders the entities that wait for a time.
type timers []*entity

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].wake < t[j].wake }
func (t timers) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].heapAt, t[j].heapAt = t[j].heapAt, t[i].heapAt
}

// Push implements heap.Interface.
func (t *timers) Push(x any) {
	e := x.(*entity)
	e.heapAt = int32(len(*t)) //nolint:gosec // far fewer
	*t = append(*t, e)
}

// Pop implements heap.Interface.
func (t *timers) Pop() any {
	old := *t
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*t = old[:len(old)-1]
	e.heapAt = -1
	return e
}

// set makes an entity wake at a time; 0 for never.
func (t *timers) set(e *entity, wake Tick) {
	switch {
	case wake == 0 && e.heapAt < 0:
	case wake == 0:
		heap.Remove(t, int(e.heapAt))
	case e.heapAt < 0:
		e.wake = wake
		heap.Push(t, e)
	case e.wake != wake:
		e.wake = wake
		heap.Fix(t, int(e.heapAt))
	}
}

// earlier returns the earlier of two times, 0 being never.
func earlier(a, b Tick) Tick {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}

func firstUntil(pending []*pendingChange) Tick {
	var t Tick
	for _, p := range pending {
		t = earlier(t, max(1, p.until))
	}
	return t
}

// sequence is the part in a sequence of instances that time is due for.
type sequence interface{ WakeAt() (Tick, bool) }

func wakeOf(s sequence) Tick {
	if at, ok := s.WakeAt(); ok {
		return max(1, at)
	}
	return 0
}

// schedule sets when an entity must be looked at again.
func (c *Core) schedule(e *entity) {
	if !e.hunting() && e.unhold() {
		c.later(e)
	}
	c.queueMoved(e)
	t := firstUntil(e.limitChanges())
	if e.majority != nil {
		t = earlier(t, wakeOf(e.majority))
	}
	if e.star != nil {
		t = earlier(t, wakeOf(e.star))
	}
	if e.transfer != nil {
		t = earlier(t, wakeOf(e.transfer))
	}
	if e.queue.len() > 0 {
		t = earlier(t, max(1, e.queue.next()))
		if e.seldom != nil && e.seldom.turns != 0 {
			if at := c.turn(e); at > c.now.Tick {
				t = earlier(t, at)
			}
		}
		if e.queue.hold.by != nil {
			t = earlier(t, max(1, e.queue.hold.until))
		}
	}
	switch d := e.droughtNow(); {
	case e.left < 0, e.apart() && e.queue.len() > 0:
		// Nobody need come who would have a debt looked at again, also after a restart, or
		// what waits for a majority.
		t = earlier(t, max(d.until, c.now.Tick+c.cfg.Tell))
	case d.until > c.now.Tick && e.queue.len() > 0:
		t = earlier(t, d.until)
	}
	t = earlier(t, c.debtWake(e))
	t = earlier(t, e.acksWake())
	t = earlier(t, e.auditWake())
	c.timers.set(e, t)
}

func (c *Core) scheduleCatalogue() {
	if c.cat.nextSync == 0 {
		c.cat.nextSync = c.now.Tick + 1 + Tick(c.cfg.Rand.Uint64N(uint64(c.cfg.Sync)))
	}
	c.cat.wake = earlier(wakeOf(c.cat.protocol), earlier(firstUntil(c.cat.pending), c.cat.nextSync))
}

// WakeAt returns when Step must be called with a Wake.
func (c *Core) WakeAt() Tick {
	if !c.guard.open {
		return c.guard.wakeAt()
	}
	t := earlier(earlier(c.cat.wake, c.gossip.wake), c.guard.wakeAt())
	t = earlier(earlier(t, c.forecastsWake()), earlier(c.leases.wakeAt(), c.owed.wakeAt()))
	t = earlier(t, c.clockWake())
	if len(c.timers) > 0 {
		t = earlier(t, c.timers[0].wake)
	}
	return t
}

// wake does what time brings.
func (c *Core) wake() {
	c.wakeGuard()
	if c.cat.wake <= c.now.Tick {
		c.wakeCatalogue()
	}
	if c.gossip.wake != 0 && c.gossip.wake <= c.now.Tick {
		c.tellBusy()
	}
	c.wakeForecasts()
	c.expireLeases()
	c.askAgain()
	var due []*entity
	for len(c.timers) > 0 && c.timers[0].wake <= c.now.Tick {
		due = append(due, c.timers[0])
		c.timers.set(c.timers[0], 0)
	}
	for _, e := range due {
		c.expireQueue(e)
		c.forgetAudit(e)
		e.setLimitChanges(c.expireChanges(e.limitChanges(), e.majority))
		c.expireAcks(e)
		if e.majority != nil {
			if at, ok := e.majority.WakeAt(); ok && at <= c.now.Tick {
				c.stepMajority(e, avantan.Input{})
			}
		}
		if e.star != nil {
			if at, ok := e.star.WakeAt(); ok && at <= c.now.Tick {
				c.stepStar(e, star.Input{})
			}
		}
		if e.transfer != nil {
			if at, ok := e.transfer.WakeAt(); ok && at <= c.now.Tick {
				c.stepTransfer(e, transfer.Input{})
			}
		}
		c.pursue(e)
		c.schedule(e)
	}
	// Last: a lease that was granted just now has the clock stored too.
	c.wakeClock()
}

func (c *Core) wakeCatalogue() {
	cat := &c.cat
	cat.pending = c.expireChanges(cat.pending, cat.protocol)
	if cat.nextSync <= c.now.Tick {
		cat.nextSync = c.now.Tick + c.cfg.Sync
		for _, m := range c.cfg.Members {
			if m != c.cfg.Self {
				c.tellCatalogue(m)
			}
		}
		c.tellLimits()
	}
	if at, ok := cat.protocol.WakeAt(); ok && at <= c.now.Tick {
		c.stepCatalogue(avantan.Input{})
		return
	}
	c.pursueCatalogue()
	c.scheduleCatalogue()
}

// tellCatalogue tells a site how far the catalogue is applied here, so that it
// asks for what it has missed.
func (c *Core) tellCatalogue(to SiteID) {
	c.send("", 0, []avantan.Message{{
		Kind: avantan.Applied, From: c.cfg.Self, To: to, Applied: c.cat.protocol.State().Applied,
	}})
}

// maxVisited is how many entities a round looks at.
const maxVisited = 4096

// tellLimits tells the other sites how far the next few entities are applied
// here that ever decided on a limit, or that are in debt. A site that was cut off at
// the time, and whose tokens were not in it, would else go by the old limit until it
// next runs short. A site that may not have heard of a debt is asked for an answer.
func (c *Core) tellLimits() {
	after, told, visited := c.cat.told, 0, 0
	c.cat.told = ""
	c.space.ascend(after, func(e *entity) bool {
		switch {
		case e.name == after:
			return true
		case told == c.cfg.MaxTold || visited == maxVisited:
			return false
		}
		visited++
		c.cat.told = e.name
		if len(e.limitResults()) == 0 && e.owed() == 0 {
			return true
		}
		told++
		unheard := members(0)
		if d := e.debt(); d != nil {
			unheard = d.unheard
		}
		c.tellApplied(e, avantan.Applied, c.peers()&^unheard)
		c.tellApplied(e, avantan.CatchUpAsk, unheard)
		return true
	})
	if told < c.cfg.MaxTold && visited < maxVisited {
		c.cat.told = ""
	}
}

// askCatalogue asks a site for the decisions of the catalogue missed here.
func (c *Core) askCatalogue(from SiteID) {
	c.stepCatalogue(avantan.Input{Refresh: from})
}
