package core

import (
	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/site/core/event"
)

// createdWithout tells that an entity was created while members seem to be out of reach:
// their shares of its limit are of no use to others until they are back.
func (c *cataloguing) createdWithout(entity string) {
	for _, m := range c.roster.others() {
		if !c.seemsUp(m) {
			c.out.Events = append(c.out.Events, event.Event{Kind: event.CreatedWithout, Entity: entity, Site: m})
		}
	}
}

// tellCatalogue tells a site how far the catalogue is applied here, so that it asks for
// decisions it has missed.
func (c *cataloguing) tellCatalogue(to SiteID) {
	c.send("", 0, []avantan.Message{{
		Kind: avantan.Applied, From: c.cfg.Self, To: to, Applied: c.cat.protocol.State().Applied,
	}})
}

// tellLimits tells the other sites how far the next few entities are applied here, if
// they ever decided on a limit or are in debt. A site that was cut off, with no tokens in
// the instance, would else go by the old limit until it next runs short. A site that may
// not have heard of a debt is asked for an answer.
func (c *cataloguing) tellLimits() {
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
		// All have to have applied the same instances before a loss can be written off.
		if len(e.limitResults()) == 0 && e.owed() == 0 && !c.unappraised(e) {
			return true
		}
		told++
		unheard := members(0)
		if d := e.debt(); d != nil {
			unheard = d.unheard
		}
		c.limiting.tellApplied(e, avantan.Applied, c.peers()&^unheard)
		c.limiting.tellApplied(e, avantan.CatchUpAsk, unheard)
		return true
	})
	if told < c.cfg.MaxTold && visited < maxVisited {
		c.cat.told = ""
	}
}
