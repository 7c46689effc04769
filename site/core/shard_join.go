package core

import (
	"github.com/samya-db/samya/site/core/books"
)

// Partition prepares serving on n shards, and tells home of the machines. It is called
// before the first Step, at most once. From then on Step, Drain and all other methods but
// Serve and Route run while no Serve runs. Calls of Serve on the same shard follow each
// other. Resume is called before Serve is again.
func (c *serving) Partition(n int, home Home) {
	c.shards.all = make([]shard, n)
	for i := range c.shards.all {
		l := &c.shards.all[i]
		l.c, l.number = c, i
		l.placed = make(map[*entity]int32)
		l.room = make(charge, 0, MaxDepth)
	}
	c.space.home = home
	c.space.ascend("", func(e *entity) bool {
		c.space.attach(e)
		return true
	})
}

// roomyPart: a table with a fourth of its places free is roomy.
const roomyPart = 4

// Resume lets shards serve requests, on the present state.
func (c *serving) Resume() {
	l := &c.shards
	if l.apart || len(l.all) == 0 {
		return
	}
	l.open = c.fence.open && !c.stopping && !c.roster.leaves && len(c.leases.restored) == 0
	l.apart = true
	l.roomy = c.requests.held.All() <= c.cfg.MaxRequests/roomyPart*(roomyPart-1)
	if l.open {
		c.scatter()
	}
}

// joinShards gathers the shards' results for Step and Drain, before these do anything else.
func (c *serving) joinShards() {
	c.shards.open, c.shards.apart = false, false
	block := &c.out.Records.Block
	for i := range c.shards.all {
		l := &c.shards.all[i]
		l.served = 0
		if len(l.replies) == 0 {
			continue
		}
		if l.now.Tick > c.now.Tick {
			c.now = l.now
		}
		c.out.Replies = append(c.out.Replies, l.replies...)
		block.Join(l.records, l.packed)
		c.touched = append(c.touched, l.touched...)
		clear(l.replies)
		clear(l.records)
		clear(l.touched)
		l.replies, l.records, l.packed, l.touched = l.replies[:0], l.records[:0], l.packed[:0], l.touched[:0]
	}
	for i := range c.shards.all {
		for _, e := range c.shards.all[i].checks {
			// From here on due belongs to the core.
			e.due = false
		}
	}
	c.gather()
	for i := range c.shards.all {
		l := &c.shards.all[i]
		for _, b := range l.broken {
			c.keepWhole(b.of, b.err)
		}
		l.broken = nil
	}
	for i := range c.shards.all {
		l := &c.shards.all[i]
		for _, e := range l.closed {
			c.forecasting.idles(e)
			c.forecasting.rolled(e)
		}
		for _, e := range l.checks {
			if !e.told && e.demandUntil > c.now.Tick && !c.roster.alone() {
				c.peering.active(e)
			}
			c.assessing.checkTrigger(e)
		}
		for _, e := range l.freed {
			if !e.told {
				c.peering.tellReturn(e)
			}
			c.later(e)
		}
		clear(l.closed)
		clear(l.checks)
		clear(l.freed)
		l.closed, l.checks, l.freed = l.closed[:0], l.checks[:0], l.freed[:0]
	}
	c.rebalancing.settle()
}

// Split spreads the escrow of an entity over the shards, or ends that. It reports whether
// the entity exists and its state changed. It runs alone.
func (c *serving) Split(name string, on bool) bool {
	if c.shards.apart {
		c.joinShards()
	}
	e := c.space.find(name)
	switch {
	case e == nil || e.handle == nil || (e.split() != nil) == on || on && rateOf(e) != nil:
		return false
	case on:
		e.handle.split.Store(&split{stripes: make([]books.Stripe, len(c.shards.all))})
		c.shards.splits = append(c.shards.splits, e)
	default:
		c.sharding.unsplit(e)
	}
	return true
}

// Splits describes the split entities, in the order of splitting. It runs alone.
func (c *serving) Splits() []SplitState {
	states := make([]SplitState, 0, len(c.shards.splits))
	for _, e := range c.shards.splits {
		s := e.split()
		st := SplitState{Name: e.name, Served: s.served}
		for i := range s.stripes {
			st.Left = append(st.Left, s.stripes[i].Left())
			st.Served += s.stripes[i].Operations()
		}
		states = append(states, st)
	}
	return states
}

// gather makes the books of the split entities whole.
func (c *serving) gather() {
	for _, e := range c.shards.splits {
		s := e.split()
		asked, back, served, err := e.books.Gather(s.stripes)
		c.keepWhole(e, err)
		s.served += served
		if asked == 0 && back == 0 {
			continue
		}
		c.dirtyBooks(e)
		if back > 0 {
			c.tallies.of(e).released(back)
			c.forecasting.returned(e, back)
		}
		if asked > 0 {
			c.tallies.of(e).granted(asked)
			c.forecasting.demanded(e, asked)
		}
		if back > 0 {
			c.later(e)
			continue
		}
		c.assessing.checkTrigger(e)
	}
}

// scatter gives each shard its part of the tokens left of the split entities, unless
// something depends on the number left in all.
func (c *serving) scatter() {
	for _, e := range c.shards.splits {
		s := e.split()
		part := e.books.Left() / Tokens(len(s.stripes))
		if part < leastPart || e.queue.len() > 0 || e.audit != nil || !c.sharding.atEase(e) {
			continue
		}
		c.keepWhole(e, e.books.Scatter(s.stripes, min(part, books.MostInStripe/2)))
	}
}
