package core

import (
	"errors"
	"fmt"
	"slices"

	"github.com/samya-db/samya/avantan"
)

// Once the catalogue has decided on other voters, each entity adopts their view by an
// instance of its own sequence. A redistribution that happens anyway carries the adoption
// along. The other entities are gone through in the order of their names, in rounds. In
// each round every voter leads its part of them; the parts change with the rounds, so an
// entity whose leader is down has another leader next time.

const (
	// adoptPause is the time in milliseconds before the first batch of adoptions, and
	// between two batches of appraisals.
	adoptPause = 100
	// adoptTurn is the time in milliseconds between two batches of adoptions. The voters
	// begin batches in turn: requests at all sites wait for a batch. The sites commit a
	// batch together: shorter times take more of disks and processors, for smaller batches.
	adoptTurn = 25
	// adoptRate is the number of adoptions a second that all voters together begin, unless
	// the sites are busy. More would keep the sites from serving: 100,000 entities take some
	// 26 seconds.
	adoptRate = 4000
	// adoptSize is the number of entities in a batch.
	adoptSize = adoptRate * adoptTurn / 1000
)

// adoptBatch is the number of entities in a batch of appraisals of this site. The
// voters before the last change share the rate.
func (c *common) adoptBatch() int {
	n := 1
	if view := c.roster.view(c.roster.Version - 1); view.Has(c.cfg.Self) {
		n = len(view)
	}
	return max(1, adoptRate*adoptPause/1000/n)
}

// adoptEvery returns the time between two batches of this site, and the time before the
// first of them. The voters before the last change take turns. A site that asks them takes
// turns with nobody.
func (c *common) adoptEvery() (every, first Tick) {
	view := c.roster.view(c.roster.Version - 1)
	if i := slices.Index(view, c.cfg.Self); i >= 0 {
		return Tick(len(view)) * adoptTurn, adoptPause + Tick(i)*adoptTurn
	}
	return adoptPause, adoptPause
}

// adopting is a site's progress through the entities behind.
type adopting struct {
	// wake is the time of the next batch; 0 for never.
	wake Tick
	// begun are the entities of the last batch.
	begun []*entity
	// behind is the number of entities behind, and moved the time at which it last
	// changed.
	behind int
	moved  Tick
	// after is the last entity looked at in this round, round the number of the round.
	after string
	round uint64
}

// errView says that this site does not know a version of the roster, and has to ask for
// the catalogue.
var errView = errors.New("the version of the roster is unknown here")

// adoptSoon has the entities that are behind adopt the latest view.
func (c *rebalancing) adoptSoon() {
	if c.roster.behind > 0 && c.adopting.wake == 0 {
		_, first := c.adoptEvery()
		c.adopting.wake = c.now.Tick + first
	}
}

// adoptsNow counts the entities of the last batch whose instances are under way.
func (c *rebalancing) adoptsNow() (open int) {
	for _, e := range c.adopting.begun {
		if e.voters < c.roster.Version && e.busy() && !e.removed {
			open++
		}
	}
	return open
}

// adoptNext begins the adoptions of the next batch.
func (c *rebalancing) adoptNext() {
	a := &c.adopting
	if a.wake == 0 || a.wake > c.now.Tick {
		return
	}
	due := a.wake
	a.wake = 0
	if a.behind != c.roster.behind {
		a.behind, a.moved = c.roster.behind, c.now.Tick
	}
	if c.roster.behind == 0 {
		a.begun = nil
		return
	}
	every, _ := c.adoptEvery()
	if a.wake = due + every; a.wake <= c.now.Tick {
		a.wake = c.now.Tick + every
	}
	if c.adoptsNow() > adoptSize/2 {
		// The sites are busy. Requests would wait for a further batch too.
		return
	}
	batch := a.begun[:0]
	size := adoptSize
	visited, after := 0, a.after
	a.after = ""
	c.space.ascend(after, func(e *entity) bool {
		if e.name == after {
			return true
		}
		if len(batch) == size || visited == maxVisited {
			return false
		}
		visited++
		a.after = e.name
		if e.voters < c.roster.Version && c.serves(e) && c.adopts(e) {
			batch = append(batch, e)
		}
		return true
	})
	a.begun = batch
	for _, e := range batch {
		c.adopt(e)
	}
	if len(batch) < size && visited < maxVisited {
		// The end of a round.
		a.after = ""
		a.round++
		a.wake = c.now.Tick + c.cfg.Patience
	}
}

// turnOf is the voter of an entity whose turn it is in a round.
func (c *rebalancing) turnOf(e *entity) SiteID { return c.roster.turn(e, c.adopting.round) }

// adopts reports whether it is this site's turn to have an entity adopt the latest view,
// or to ask how far the entity is if others vote. It asks once nothing was heard for long:
// the voters tell of each adoption.
func (c *rebalancing) adopts(e *entity) bool {
	turn := c.turnOf(e)
	if !c.roster.view(e.voters).Has(c.cfg.Self) {
		return c.now.Tick >= c.adopting.moved+c.cfg.Patience && c.seemsUp(turn)
	}
	return turn == c.cfg.Self && !e.busy()
}

// adopt begins an instance that adopts the latest view. A site that does not vote asks a
// voter whether the entity has adopted it.
func (c *rebalancing) adopt(e *entity) {
	if !c.roster.view(e.voters).Has(c.cfg.Self) {
		c.stepMajority(e, avantan.Input{Refresh: c.turnOf(e)})
		return
	}
	press := e.rebalance.press
	if e.queue.len() == 0 && firstDue(e.limitChanges()) == nil {
		// No tokens need to move.
		press = avantan.PressNone
	}
	c.stepMajority(e, avantan.Input{Begin: c.proposal(e, press)})
	c.check(e)
}

// newView is the version of the roster that a change adopts; 0 for none, if the entity has
// it already.
func (l *entityLedger) newView(version uint16) (uint16, error) {
	switch {
	case version <= l.e.voters:
		return 0, nil
	case l.c.roster.view(version) == nil:
		return 0, fmt.Errorf("entity %q: version %d: %w", l.e.name, version, errView)
	}
	return version, nil
}

// View implements avantan.Ledger.
func (l *entityLedger) View() avantan.View { return l.c.roster.view(l.e.voters) }

// setVoters notes the version of the view of an entity's next instance.
func (c *rebalancing) setVoters(e *entity, version uint16) {
	if version == e.voters {
		return
	}
	c.roster.count(e, -1)
	e.voters = version
	c.roster.count(e, 1)
	c.stands(e)
	c.dirtyRecord(e)
}

// stands notes whether this site votes in an entity's next instance.
func (c *common) stands(e *entity) {
	e.learns = !c.roster.view(e.voters).Has(c.cfg.Self)
	e.restand()
}
