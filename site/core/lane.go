package core

import (
	"sync"
	"sync/atomic"

	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// laning knows the lanes, and the entities whose escrow is split over them.
type laning struct {
	*common
	lanes lanes
}

// Machine is the machine of an entity, opaque to all but the core.
type Machine = entity

// Place is a machine's place in the lanes.
type Place struct {
	// Seat belongs to the Home.
	Seat any
	// split is nil unless the escrow is split over the lanes. Any goroutine may read it
	// at any time.
	split atomic.Pointer[split]
}

// Split reports whether the escrow is split over the lanes. It may be called at any
// time.
func (p *Place) Split() bool { return p.split.Load() != nil }

// Seat is the Seat of the Place that Came returned.
func (e *entity) Seat() any { return e.place.Seat }

// split is the escrow split over the lanes, nil if it is not split.
func (e *entity) split() *split {
	if e.place == nil {
		return nil
	}
	return e.place.split.Load()
}

// Name is the entity's name.
func (e *entity) Name() string { return e.name }

// Home learns which machines there are. Only New, Partition and Step call it, and it must
// not call the core.
type Home interface {
	// Came announces a machine before any request can need it, and returns a Place for it
	// alone; nil if no lane is to serve it.
	Came(m *Machine) *Place
	// Gone announces that no request needs a machine any more.
	Gone(m *Machine)
}

// lanes serve requests side by side. Serve changes its lane, the machines that its caller
// has to itself, and the table of requests under its lock; nothing else of the core. It
// reads data that only Step and Drain change, which run alone.
type lanes struct {
	all []lane
	// open says that requests may be served, apart that lanes may have served something
	// since they were last joined.
	open, apart bool
	// table guards the requests while the lanes are apart.
	table sync.Mutex
	// splits are the split entities, in the order of splitting.
	splits []*entity
}

// lane gathers the results of serving on a partition.
type lane struct {
	c       *serving
	number  int
	now     input.Now
	replies []Reply
	records []stored.Request
	// touched are the machines with something to persist. looks may have to ask for
	// tokens, or this site to tell others of them. freed got tokens back, and this site
	// may have to tell others of them. closed had bins of demand closed.
	touched, looks, freed, closed []*entity
	// broken are the machines with broken books.
	broken []broken
	// room and placed are memory of a charge.
	room   charge
	placed map[*entity]int32
	served uint64
	_      [64]byte // lanes share no cache line
}

// Served counts the requests that a lane served since the last Resume. The same rules as
// for Serve of that lane apply to its call.
func (c *laning) Served(lane int) uint64 { return c.lanes.all[lane].served }

func (l *lane) touch(e *entity) {
	e.dirtyBooks = true
	if !e.listed {
		e.listed = true
		l.touched = append(l.touched, e)
	}
}

// lookLater has the core look at an entity when the lanes are joined. While lanes are
// apart, due belongs to them, else to the core.
func (l *lane) lookLater(e *entity) {
	if !e.due {
		e.due = true
		l.looks = append(l.looks, e)
	}
}

// freedLater has the core follow up on tokens returned to an entity when the lanes are
// joined. An entity may be listed more than once, with others between.
func (l *lane) freedLater(e *entity) {
	if n := len(l.freed); n == 0 || l.freed[n-1] != e {
		l.freed = append(l.freed, e)
	}
}

func (c *laning) unsplit(e *entity) {
	if e.split() == nil {
		return
	}
	e.place.split.Store(nil)
	for i, s := range c.lanes.splits {
		if s == e {
			c.lanes.splits = append(c.lanes.splits[:i], c.lanes.splits[i+1:]...)
			return
		}
	}
}

// atEase reports whether the entity lacks no tokens and nothing follows up on a lack.
func (c *laning) atEase(e *entity) bool {
	return e.books.Left() >= 0 && e.lacking() == 0 && e.debt() == nil && len(e.limitChanges()) == 0 && !e.hunt.short && e.droughtNow().since == 0
}
