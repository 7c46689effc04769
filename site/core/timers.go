package core

import (
	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/handoff"
	"github.com/samya-db/samya/avantan/star"
	"github.com/samya-db/samya/avantan/transfer"
	"github.com/samya-db/samya/site/core/answer"
)

// suspectRestored has others told of each entity with a negative net here, once the site
// has begun to serve. The site may have stopped before it told anybody. A surplus set
// aside does not excuse the net: releases at another site may have caused that surplus.
func (c *Core) suspectRestored() {
	if c.suspected {
		return
	}
	c.suspected = true
	c.leaving.departs()
	c.auditing.appraiseSoon()
	c.space.ascend("", func(e *entity) bool {
		if e.books.Net() < 0 {
			c.peering.active(e)
		}
		return true
	})
}

// WakeAt returns the time at which Step must be called with a Wake.
func (c *Core) WakeAt() Tick {
	if !c.fence.open {
		return c.fence.wakeAt()
	}
	t := earlier(earlier(c.cat.wake, c.gossip.wake), c.fence.wakeAt())
	t = earlier(earlier(t, c.forecasting.forecastsWake()), earlier(c.leases.wakeAt(), c.queries.wakeAt()))
	t = earlier(earlier(t, c.leasing.clockWake()), earlier(earlier(c.adopting.wake, c.leave.wake), c.appraising.wake))
	if len(c.timers) > 0 {
		t = earlier(t, c.timers[0].wake)
	}
	return t
}

// wake does everything that is due by now.
func (c *Core) wake() {
	c.fencing.wakeFence()
	if c.cat.wake <= c.now.Tick {
		c.cataloguing.wakeCatalogue()
		c.fencing.admit()
		c.reseat()
	}
	c.rebalancing.adoptNext()
	c.auditing.appraiseNext()
	c.leaving.wakeLeave()
	c.reseat()
	if c.gossip.wake != 0 && c.gossip.wake <= c.now.Tick {
		c.gossiping.tellBusy()
	}
	c.forecasting.wakeForecasts()
	c.leasing.expireLeases()
	// Before acquires that wait for these tokens learn that there are none.
	c.rebalancing.settle()
	c.asking.askAgain()
	var due []*entity
	for len(c.timers) > 0 && c.timers[0].wake <= c.now.Tick {
		due = append(due, c.timers[0])
		c.timers.remove(c.timers[0])
	}
	for _, e := range due {
		if isTemplate(e) {
			c.keying.keysOf(e)
		}
		if c.replenish(e); e.due && e.queue.len() > 0 {
			// Acquires get tokens of the new window even if their time is up now.
			c.admitting.serveQueue(e)
		}
		c.admitting.expireQueue(e)
		c.auditing.forgetAudit(e)
		e.setLimitChanges(c.expireChanges(e.limitChanges(), e.majority))
		c.limiting.expireAcks(e)
		if e.majority != nil {
			if at, ok := e.majority.WakeAt(); ok && at <= c.now.Tick {
				c.rebalancing.stepMajority(e, avantan.Input{})
			}
		}
		if e.star != nil {
			if at, ok := e.star.WakeAt(); ok && at <= c.now.Tick {
				c.rebalancing.stepStar(e, star.Input{})
			}
		}
		if e.transfer != nil {
			if at, ok := e.transfer.WakeAt(); ok && at <= c.now.Tick {
				c.rebalancing.stepTransfer(e, transfer.Input{})
			}
		}
		if e.handoff() != nil {
			if at, ok := e.handoff().WakeAt(); ok && at <= c.now.Tick {
				c.leaving.stepHandoff(e, handoff.Input{})
			}
		}
		c.check(e)
	}
	c.rebalancing.settle()
	// Last: a lease that was granted just now has the clock stored too.
	c.leasing.wakeClock()
}

// maxVisited bounds the entities that a round looks at.
const maxVisited = 4096

// stop answers all callers that wait for tokens. The site has done nothing for them, so
// they may ask another site.
func (c *Core) stop() {
	c.stopping = true
	c.forecasting.hastenForecasts()
	// The entities' names give a repeatable order.
	c.space.ascend("", func(e *entity) bool {
		for _, w := range e.queue.take(func(*waiting) bool { return true }) {
			c.remembering.ended(w, answer.Answer{Code: answer.Stopping, Left: e.usable()})
		}
		c.limiting.endAcks(e)
		return true
	})
}
