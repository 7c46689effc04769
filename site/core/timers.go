package core

import (
	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/star"
	"github.com/samya-db/samya/avantan/transfer"
)

// before implements dated.
func (e *entity) before(o *entity) bool { return e.wake < o.wake }

// index implements dated.
func (e *entity) index() *int32 { return &e.heapAt }

// sleepUntil sets the time at which the core looks at an entity again; 0 for never.
func (c *Core) sleepUntil(e *entity, wake Tick) {
	switch {
	case wake == 0:
		c.timers.remove(e)
	case wake != e.wake || e.heapAt < 0:
		e.wake = wake
		c.timers.add(e)
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

// sequence is a part in a sequence of instances, with its next time to act.
type sequence interface{ WakeAt() (Tick, bool) }

func wakeOf(s sequence) Tick {
	if at, ok := s.WakeAt(); ok {
		return max(1, at)
	}
	return 0
}

// schedule sets the time at which the core must look at an entity again.
func (c *Core) schedule(e *entity) {
	if e.halted() {
		return
	}
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
	case e.books.Left() < 0, e.apart() && e.queue.len() > 0:
		// No message may come to have the core look again at a debt, also after a
		// restart, or at acquires that wait for a majority.
		t = earlier(t, max(d.until, c.now.Tick+c.cfg.Tell))
	case d.until > c.now.Tick && e.queue.len() > 0:
		t = earlier(t, d.until)
	}
	t = earlier(t, c.debtWake(e))
	t = earlier(t, e.acksWake())
	t = earlier(t, e.auditWake())
	c.sleepUntil(e, t)
}

func (c *Core) scheduleCatalogue() {
	if c.cat.nextSync == 0 {
		c.cat.nextSync = c.now.Tick + 1 + Tick(c.cfg.Rand.Uint64N(uint64(c.cfg.Sync)))
	}
	c.cat.wake = earlier(wakeOf(c.cat.protocol), earlier(firstUntil(c.cat.pending), c.cat.nextSync))
}

// WakeAt returns the time at which Step must be called with a Wake.
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

// wake does everything that is due by now.
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
	// Before acquires that wait for these tokens learn that there are none.
	c.settle()
	c.askAgain()
	var due []*entity
	for len(c.timers) > 0 && c.timers[0].wake <= c.now.Tick {
		due = append(due, c.timers[0])
		c.timers.remove(c.timers[0])
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

// tellCatalogue tells a site how far the catalogue is applied here, so that it asks for
// decisions it has missed.
func (c *Core) tellCatalogue(to SiteID) {
	c.send("", 0, []avantan.Message{{
		Kind: avantan.Applied, From: c.cfg.Self, To: to, Applied: c.cat.protocol.State().Applied,
	}})
}

// maxVisited bounds the entities that a round looks at.
const maxVisited = 4096

// tellLimits tells the other sites how far the next few entities are applied here, if
// they ever decided on a limit or are in debt. A site that was cut off, with no tokens in
// the instance, would else go by the old limit until it next runs short. A site that may
// not have heard of a debt is asked for an answer.
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
