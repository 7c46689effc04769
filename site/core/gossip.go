package core

import (
	"github.com/samya-db/samya/site/core/message"
)

// gossiping exchanges reports of busy entities with other sites.
type gossiping struct {
	*common
	*peering
	*assessing
	*auditing
}

const (
	// busyFor is the time in milliseconds for which a site tells of an entity after
	// demand for it, here or elsewhere. maxAge bounds the age in milliseconds of another
	// site's report.
	busyFor = 10_000
	maxAge  = 5_000
)

// tellBusy tells the other sites of the next busy entities, and forgets entities no
// longer busy.
func (c *gossiping) tellBusy() {
	g := &c.gossip
	var summaries []message.Summary
	for n := min(len(g.busy), c.cfg.MaxSummaries); n > 0; n-- {
		if g.next >= len(g.busy) {
			g.next = 0
		}
		e := g.busy[g.next]
		if e.busyUntil <= c.now.Tick || !c.serves(e) {
			last := len(g.busy) - 1
			g.busy[g.next], g.busy[last] = g.busy[last], nil
			g.busy = g.busy[:last]
			e.told = false
			continue
		}
		g.next++
		c.replenish(e)
		own := c.assessing.summary(e)
		summaries = append(summaries, own)
		c.peering.hasTold(e, &own)
		e.rebalance.lacking = c.peering.lacking(e, &own)
		c.check(e)
		c.auditing.suspect(e)
	}
	g.wake = 0
	if len(g.busy) > 0 {
		g.wake = c.now.Tick + c.cfg.Tell
	}
	if len(summaries) == 0 {
		return
	}
	c.peering.tellAll(summaries)
}

const (
	// A gainPart-th of the limit is a good deal more, and less than a scarcePart-th is
	// little. gainPause is the time in milliseconds after a report in which the site does
	// not tell of the entity ahead of time.
	gainPart, scarcePart, gainPause = 100, 10, 100
)

// hear takes in another site's gossip.
func (c *gossiping) hear(g *message.Gossip) {
	from := c.roster.place(g.From)
	if from < 0 {
		return
	}
	for i := range g.Summaries {
		s := &g.Summaries[i]
		e := c.space.find(s.Entity)
		if e == nil || e.generation != s.Generation || s.Median < 0 || s.Target < 0 {
			continue
		}
		views := c.peering.viewsOf(e)
		c.assessing.doubt(e)
		now := max(1, c.now.Tick)
		e.outside += s.Net - views[from].Net
		views[from] = view{
			Left: s.Left, Offered: s.Offered, Net: s.Net, Median: s.Median, Target: s.Target,
			told: now, left: s.Left, at: now,
		}
		if s.Busy {
			c.peering.isBusy(e)
		}
		if !e.told && e.negative() {
			c.peering.active(e)
		}
		if e.exhaustionNow().since != 0 {
			c.check(e)
		}
	}
}
