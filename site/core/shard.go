package core

import (
	"sync"
	"sync/atomic"

	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// sharding knows the shards, and the entities whose escrow is split over them.
type sharding struct {
	*common
	shards shards
}

// Machine is the machine of an entity, opaque to all but the core.
type Machine = entity

// Handle is a machine's place in the shards.
type Handle struct {
	// Owner belongs to the Home.
	Owner any
	// split is nil unless the escrow is split over the shards. Any goroutine may read it
	// at any time.
	split atomic.Pointer[split]
}

// Split reports whether the escrow is split over the shards. It may be called at any
// time.
func (p *Handle) Split() bool { return p.split.Load() != nil }

// Owner is the Owner of the Handle that Came returned.
func (e *entity) Owner() any { return e.handle.Owner }

// split is the escrow split over the shards, nil if it is not split.
func (e *entity) split() *split {
	if e.handle == nil {
		return nil
	}
	return e.handle.split.Load()
}

// Name is the entity's name.
func (e *entity) Name() string { return e.name }

// Home learns which machines there are. Only New, Partition and Step call it, and it must
// not call the core.
type Home interface {
	// Came announces a machine before any request can need it, and returns a Handle for it
	// alone; nil if no shard is to serve it.
	Came(m *Machine) *Handle
	// Gone announces that no request needs a machine any more.
	Gone(m *Machine)
}

// shards serve requests side by side. Serve changes its shard, the machines that its caller
// has to itself, and the table of requests under its locks; nothing else of the core. It
// reads data that only Step and Drain change, which run alone.
type shards struct {
	all []shard
	// open says that requests may be served, apart that shards may have served something
	// since they were last joined.
	open, apart bool
	// roomy says that the table of requests is far from full: no tenant is refused soon.
	roomy bool
	// table guards the requests while the shards are apart, but for the rings of sessions. Each
	// part of the rings has a lock, which is taken after table.
	table sync.Mutex
	rings [stripes]struct {
		sync.Mutex
		_ [56]byte // no two share a cache line
	}
	// splits are the split entities, in the order of splitting.
	splits []*entity
}

// shard gathers the results of serving on a partition.
type shard struct {
	c       *serving
	number  int
	now     input.Now
	replies []Reply
	records []stored.Request
	// packed is the stored form of records.
	packed []byte
	// touched are the machines with something to persist. looks may have to ask for
	// tokens, or this site to tell others of them. freed got tokens back, and this site
	// may have to tell others of them. closed had bins of demand closed.
	touched, checks, freed, closed []*entity
	// broken are the machines with broken books.
	broken []broken
	// room, named and placed are memory of a charge.
	room   charge
	named  []*entity
	placed map[*entity]int32
	served uint64
	_      [64]byte // shards share no cache line
}

// Served counts the requests that a shard served since the last Resume. The same rules as
// for Serve of that shard apply to its call.
func (c *sharding) Served(shard int) uint64 { return c.shards.all[shard].served }

func (l *shard) touch(e *entity) {
	e.dirtyBooks = true
	if !e.listed {
		e.listed = true
		l.touched = append(l.touched, e)
	}
}

// checkLater has the core look at an entity when the shards are joined. While shards are
// apart, due belongs to them, else to the core.
func (l *shard) checkLater(e *entity) {
	if !e.due {
		e.due = true
		l.checks = append(l.checks, e)
	}
}

// freedLater has the core follow up on tokens returned to an entity when the shards are
// joined. An entity may be listed more than once, with others between.
func (l *shard) freedLater(e *entity) {
	if n := len(l.freed); n == 0 || l.freed[n-1] != e {
		l.freed = append(l.freed, e)
	}
}

func (c *sharding) unsplit(e *entity) {
	if e.split() == nil {
		return
	}
	e.handle.split.Store(nil)
	for i, s := range c.shards.splits {
		if s == e {
			c.shards.splits = append(c.shards.splits[:i], c.shards.splits[i+1:]...)
			return
		}
	}
}

// atEase reports whether the entity lacks no tokens and nothing follows up on a lack.
func (c *sharding) atEase(e *entity) bool {
	return e.books.Left() >= 0 && e.lacking() == 0 && e.debt() == nil && len(e.limitChanges()) == 0 && !e.rebalance.short && e.exhaustionNow().since == 0
}
