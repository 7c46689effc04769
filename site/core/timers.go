package core

import (
	"github.com/samya-db/samya/avantan"
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
	c.space.ascend("", func(e *entity) bool {
		if e.books.Net() < 0 {
			c.active(e)
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
	t = earlier(earlier(t, c.forecastsWake()), earlier(c.leases.wakeAt(), c.queries.wakeAt()))
	t = earlier(t, c.clockWake())
	if len(c.timers) > 0 {
		t = earlier(t, c.timers[0].wake)
	}
	return t
}

// wake does everything that is due by now.
func (c *Core) wake() {
	c.wakeFence()
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
		c.rebalance(e)
		c.schedule(e)
	}
	// Last: a lease that was granted just now has the clock stored too.
	c.wakeClock()
}

// maxVisited bounds the entities that a round looks at.
const maxVisited = 4096

// stop answers all callers that wait for tokens. The site has done nothing for them, so
// they may ask another site.
func (c *Core) stop() {
	c.stopping = true
	c.hastenForecasts()
	// The entities' names give a repeatable order.
	c.space.ascend("", func(e *entity) bool {
		for _, w := range e.queue.take(func(*waiting) bool { return true }) {
			c.ended(w, answer.Answer{Code: answer.Stopping, Left: e.usable()})
		}
		c.endAcks(e)
		return true
	})
}
