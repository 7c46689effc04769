package core

import (
	"sync"
	"sync/atomic"
)

// Machine is the machine of one entity, opaque to all but the core.
type Machine = entity

// Place is where a machine is with regard to the lanes.
type Place struct {
	// Seat is the Home's.
	Seat any
	// split is nil unless the escrow is split over the lanes. It may be read at any
	// time.
	split atomic.Pointer[split]
}

// Split reports whether the escrow is split over the lanes. It may be called at any
// time.
func (p *Place) Split() bool { return p.split.Load() != nil }

// Seat is that of the Place that Came returned.
func (e *entity) Seat() any { return e.place.Seat }

// split is the escrow as it is split over the lanes, nil if it is not.
func (e *entity) split() *split {
	if e.place == nil {
		return nil
	}
	return e.place.split.Load()
}

// Name is the entity's.
func (e *entity) Name() string { return e.name }

// Home is told which machines there are. It is called by New, Partition, Step and
// nothing else, and must not call the core.
type Home interface {
	// Came is told of a machine before any request can need it, and returns a Place for
	// it alone; nil if no lane is to serve it.
	Came(m *Machine) *Place
	// Gone is told of one that no request needs any more.
	Gone(m *Machine)
}

// lanes are what serves requests side by side. Of the core, Serve changes its lane and
// the machines that its caller has to itself, the table of requests under its lock,
// and nothing else; it reads what only Step and Drain change, which run alone.
type lanes struct {
	all []lane
	// open says that requests may be served, apart that something may have been
	// since the lanes were last joined.
	open, apart bool
	// table guards the requests while the lanes are apart.
	table sync.Mutex
	// splits are the entities that are split, in the order in which they were.
	splits []*entity
}

// lane gathers what was served on one partition.
type lane struct {
	now     Now
	replies []Reply
	records []RequestRecord
	// touched are the machines with something to persist, looks those that may have
	// to ask for tokens or to be told of, freed those to which tokens came back that
	// others may have to be told of, and closed those of which bins of demand were
	// closed.
	touched, looks, freed, closed []*entity
	// broken are the machines whose books are.
	broken []broken
	// room and placed are memory of a charge.
	room   charge
	placed map[*entity]int32
	served uint64
	_      [64]byte // lanes share no cache line
}

// Partition has requests served on n lanes, and tells home of the machines. It is
// called before the first Step, once at most. From then on Step, Drain and all other
// methods but Serve and Route run while no Serve does, each lane's Serve one after the
// other, and Resume is called before Serve is again.
func (c *Core) Partition(n int, home Home) {
	c.lanes.all = make([]lane, n)
	for i := range c.lanes.all {
		c.lanes.all[i].placed = make(map[*entity]int32)
		c.lanes.all[i].room = make(charge, 0, MaxDepth)
	}
	c.space.home = home
	c.space.ascend("", func(e *entity) bool {
		c.space.seat(e)
		return true
	})
}

// Resume lets lanes serve requests, by the state as it is then.
func (c *Core) Resume() {
	l := &c.lanes
	if l.apart || len(l.all) == 0 {
		return
	}
	l.open = c.guard.open && !c.stopping && len(c.leases.restored) == 0
	l.apart = true
	if l.open {
		c.scatter()
	}
}

// Served counts the requests that lanes served since the last Resume. It is called
// as Serve of that lane is.
func (c *Core) Served(lane int) uint64 { return c.lanes.all[lane].served }

// joinLanes brings together what the lanes have gathered, in the place where Step and
// Drain find it, before they do anything else.
func (c *Core) joinLanes() {
	c.lanes.open, c.lanes.apart = false, false
	for i := range c.lanes.all {
		l := &c.lanes.all[i]
		l.served = 0
		if len(l.replies) == 0 {
			continue
		}
		if l.now.Tick > c.now.Tick {
			c.now = l.now
		}
		c.out.Replies = append(c.out.Replies, l.replies...)
		c.out.Records.Block.Records = append(c.out.Records.Block.Records, l.records...)
		c.touched = append(c.touched, l.touched...)
		clear(l.replies)
		clear(l.records)
		clear(l.touched)
		l.replies, l.records, l.touched = l.replies[:0], l.records[:0], l.touched[:0]
	}
	c.gather()
	for i := range c.lanes.all {
		l := &c.lanes.all[i]
		for _, b := range l.broken {
			c.keepWhole(b.of, b.err)
		}
		l.broken = nil
	}
	for i := range c.lanes.all {
		l := &c.lanes.all[i]
		for _, e := range l.closed {
			c.idles(e)
			c.rolled(e)
		}
		for _, e := range l.looks {
			e.due = false
			if !e.told && e.demandUntil > c.now.Tick && len(c.cfg.Members) > 1 {
				c.active(e)
			}
			c.look(e)
		}
		for _, e := range l.freed {
			if !e.told {
				c.tellReturn(e)
			}
			c.freedOne(e)
		}
		clear(l.closed)
		clear(l.looks)
		clear(l.freed)
		l.closed, l.looks, l.freed = l.closed[:0], l.looks[:0], l.freed[:0]
	}
	if len(c.due) > 0 {
		c.catchUp()
	}
}

func (l *lane) touch(e *entity) {
	e.dirtyBooks = true
	if !e.listed {
		e.listed = true
		l.touched = append(l.touched, e)
	}
}

// lookLater has an entity looked at when the lanes are joined: what is due is so while
// they are apart, or while they are not.
func (l *lane) lookLater(e *entity) {
	if !e.due {
		e.due = true
		l.looks = append(l.looks, e)
	}
}

// freedLater has done, when the lanes are joined, what follows where tokens came back
// to an entity. An entity between others may be listed more than once.
func (l *lane) freedLater(e *entity) {
	if n := len(l.freed); n == 0 || l.freed[n-1] != e {
		l.freed = append(l.freed, e)
	}
}
