package core

import (
	"slices"

	"github.com/samya-db/samya/site/core/stored"
)

// Drain moves the gathered effects into e, which must be empty or Reset.
func (c *Core) Drain(e *Effects) {
	if c.shards.apart {
		c.serving.joinShards()
	}
	rec := &c.out.Records
	c.verify()
	c.reading.revise()
	for _, en := range c.touched {
		if c.serves(en) {
			c.recordEntity(rec, en)
		}
		en.listed, en.dirtyBooks, en.dirtyRecord = false, false, false
	}
	clear(c.touched)
	c.touched = c.touched[:0]
	if c.cat.dirty {
		c.cat.dirty = false
		rec.Catalogue = &stored.Catalogue{
			Generation: c.cat.generation, Numbered: c.cat.numbered, Mode: c.mode,
			Protocol: c.cat.protocol.State().Clone(), Roster: c.roster.changed(), SettledIn: c.settledIn && c.roster.Changed > 0,
			Version: c.cat.recordedVersion(), Destroyed: slices.Clone(c.roster.without),
		}
	}
	c.requests.seal(&rec.Block, c.now)
	if c.fence.open {
		c.forecasting.storeForecasts(rec)
	}
	c.leasing.storeClock(rec)
	if c.fence.open {
		// Also without new records: a full table takes none before old records go.
		rec.ForgetBlocks = c.requests.expire(c.now.Tick, c.asking.keepRequests(), forgetMost+2*len(rec.Block.Records))
	}
	c.withhold()
	c.asking.askFresh()
	c.fencing.seal()
	*e, c.out = c.out, *e
}

func (c *Core) recordEntity(rec *stored.Records, e *entity) {
	if e.dirtyBooks {
		rec.Books = append(rec.Books, stored.Books{Name: e.name, Generation: e.generation, Left: e.books.Left(), Net: e.books.Net()})
	}
	if e.dirtyRecord {
		r := stored.Entity{
			Name: e.name, Generation: e.generation, Initial: e.initial, Limit: e.limit, Version: e.version,
			Results: append([]stored.LimitResult(nil), e.limitResults()...), Moved: e.moved, Fetches: e.fetches,
			Surplus: e.surplus(), WrittenOff: e.writtenOff(), Shape: c.space.shapes[e],
		}
		if e.voters > 1 {
			r.Born, r.Voters = e.born, e.voters
		}
		if rateOf(e) != nil {
			r.Rate = rateOf(e).Rate
		}
		r.Appraised = e.appraised
		r.Returned, r.Rescued = settledOf(e)
		if d := e.debt(); d != nil {
			r.Debt, r.DebtSince, r.DebtHeard, r.Held = d.amount, d.since, c.heardBy(d), d.held
		}
		if e.parent() != nil {
			r.Parent = e.parent().generation
		}
		if e.majority != nil {
			r.Protocol = e.majority.State().Clone()
		}
		if e.star != nil {
			r.Star = e.star.State().Clone()
		}
		if e.transfer != nil {
			r.Transfer = e.transfer.State().Clone()
		}
		if e.handoff() != nil {
			r.Handoff = e.handoff().State().Clone()
		}
		rec.Entities = append(rec.Entities, r)
	}
}

// Pending reports whether Drain would return anything.
func (c *Core) Pending() bool {
	if c.shards.apart {
		c.serving.joinShards()
	}
	return len(c.touched) > 0 || c.cat.dirty || c.fence.flush || c.forecasts.pressing || !c.out.Empty()
}
