package mux

import (
	"time"

	"github.com/samya-db/samya/internal/spanctx"
)

// state is the state of a call; guarded by the lock of its Mux.
type state uint8

const (
	// idle: only its caller uses the call, before it is queued and after its end.
	idle state = iota
	// queued: the call waits to be sent.
	queued
	// sent: the call was handed to the transport and is in the stream's table.
	sent
)

// call is an operation under way. Calls are used again.
type call struct {
	// operation is the encoded operation; its memory is kept.
	operation []byte
	deadline  time.Time // zero: none
	// trace is the span of the caller; nil for none.
	trace *spanctx.Context
	done  chan struct{}
	timer *time.Timer // nil until it is needed

	state      state
	prev, next *call // in the queue
	tag        uint64

	// Its end, set before done is signalled.
	fate   Fate
	err    error
	answer []byte
}

// newCall returns a call that nobody else uses.
func (m *Mux) newCall() *call {
	if c, ok := m.calls.Get().(*call); ok {
		return c
	}
	return &call{done: make(chan struct{}, 1)}
}

// free gives c back to be used again. It must be in no queue and no table.
func (m *Mux) free(c *call) {
	if c.timer != nil {
		c.timer.Stop()
	}
	*c = call{operation: c.operation[:0], done: c.done, timer: c.timer}
	m.calls.Put(c)
}

// expire returns a channel that is told when d has passed.
func (c *call) expire(d time.Duration) <-chan time.Time {
	if c.timer == nil {
		c.timer = time.NewTimer(d)
	} else {
		c.timer.Reset(d)
	}
	return c.timer.C
}

// finish sets an end without an answer.
func (c *call) finish(f Fate, err error) { c.state, c.fate, c.err = idle, f, err }

// queue is a list of calls in the order they came. A call can leave from the middle, so
// that calls given up take no room.
type queue struct {
	first, last *call
	count       int
}

func (q *queue) push(c *call) {
	c.state, c.prev, c.next = queued, q.last, nil
	if q.last == nil {
		q.first = c
	} else {
		q.last.next = c
	}
	q.last = c
	q.count++
}

// pop removes and returns the first call; nil if there is none.
func (q *queue) pop() *call {
	c := q.first
	if c != nil {
		q.remove(c)
	}
	return c
}

func (q *queue) remove(c *call) {
	if c.prev == nil {
		q.first = c.next
	} else {
		c.prev.next = c.next
	}
	if c.next == nil {
		q.last = c.prev
	} else {
		c.next.prev = c.prev
	}
	c.state, c.prev, c.next = idle, nil, nil
	q.count--
}

// table holds the calls of a stream without an answer, by tag. A tag is a slot's index
// and, above it, how often the slot was used. So an answer to an earlier use can be told
// apart.
type table struct {
	slots []slot
	free  []uint32
	used  int
}

type slot struct {
	call *call // nil: its caller has given it up
	uses uint32
	busy bool
}

// add gives c a tag.
func (t *table) add(c *call) {
	var i uint32
	if n := len(t.free); n > 0 {
		i = t.free[n-1]
		t.free = t.free[:n-1]
	} else {
		i = uint32(len(t.slots))
		t.slots = append(t.slots, slot{})
	}
	s := &t.slots[i]
	s.call, s.busy = c, true
	s.uses++
	t.used++
	c.tag = uint64(s.uses)<<32 | uint64(i)
}

// at returns the slot in use with a tag; nil if there is none.
func (t *table) at(tag uint64) *slot {
	if i := tag & 0xffffffff; i < uint64(len(t.slots)) {
		if s := &t.slots[i]; s.busy && s.uses == uint32(tag>>32) {
			return s
		}
	}
	return nil
}

// take removes an answered call and returns it: nil if it was given up, false if there is
// no such call.
func (t *table) take(tag uint64) (*call, bool) {
	s := t.at(tag)
	if s == nil {
		return nil, false
	}
	c := s.call
	s.call, s.busy = nil, false
	t.used--
	t.free = append(t.free, uint32(tag))
	return c, true
}

// drain empties the table and returns the calls with a waiting caller.
func (t *table) drain() []*call {
	var left []*call
	for _, s := range t.slots {
		if s.call != nil {
			left = append(left, s.call)
		}
	}
	*t = table{}
	return left
}
