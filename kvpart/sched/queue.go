package sched

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/samya-db/samya/kvpart/internal/ctxlock"
)

// partition is a partition: its lock in Callers mode, its queue and worker in the other
// modes.
type partition[V any] struct {
	s  *Scheduler[V]
	id int

	// run is held while a job runs, in Callers mode.
	run    sync.RWMutex
	ran    atomic.Int64 // requests of this partition alone
	shared atomic.Int64 // requests of several partitions
	_      [64]byte     // the parts below have cache lines of their own

	// mu guards the fields up to wake, in modes with queues. It is never held for long.
	mu       sync.Mutex
	queue    []*Request[V]
	parked   bool // the worker has nothing to do, and wants to be woken
	stopping bool
	// room is closed when another try to enqueue is worthwhile; nil if nobody waits.
	room   chan struct{}
	wanted atomic.Bool // room is not nil
	// count is the number of requests that wait here. It grows only with mu held.
	count atomic.Int64
	wake  chan struct{}
	_     [64]byte

	// The fields below belong to the worker, or while it is parked to the holder of mu.
	taken []*Request[V]
	next  int
	// at is the request of several partitions at which the worker waits.
	at atomic.Pointer[Request[V]]
}

func newPartition[V any](s *Scheduler[V], id int) *partition[V] {
	return &partition[V]{s: s, id: id, wake: make(chan struct{}, 1)}
}

func (p *partition[V]) lock(callers bool) {
	if callers {
		p.run.Lock()
	} else {
		p.mu.Lock()
	}
}

func (p *partition[V]) tryLock(callers bool) bool {
	if callers {
		return p.run.TryLock()
	}
	return p.mu.TryLock()
}

func (p *partition[V]) unlock(callers bool) {
	if callers {
		p.run.Unlock()
	} else {
		p.mu.Unlock()
	}
}

// acquire takes the lock of Callers mode. It fails if ctx ends before.
func (p *partition[V]) acquire(ctx context.Context, share bool) error {
	return ctxlock.Lock(ctx, &p.run, share)
}

func (p *partition[V]) try(share bool) bool { return ctxlock.Try(&p.run, share) }

func (p *partition[V]) release(share bool) { ctxlock.Unlock(&p.run, share) }

// full returns a channel to wait for if the queue is full, nil if there is room. mu is
// held.
func (p *partition[V]) full() <-chan struct{} {
	if p.count.Load() < p.s.queue {
		return nil
	}
	if p.room == nil {
		p.room = make(chan struct{})
		p.wanted.Store(true)
	}
	// The worker lowers the count before it looks whether room is wanted. If it has taken
	// the last request meanwhile it does not look again.
	if p.count.Load() < p.s.queue {
		return nil
	}
	return p.room
}

// push appends a request, with mu held. It reports whether the worker must be woken.
func (p *partition[V]) push(r *Request[V]) bool {
	p.queue = append(p.queue, r)
	if !r.synch {
		p.count.Add(1)
	}
	if p.parked && p.at.Load() == nil {
		p.parked = false
		return true
	}
	return false
}

// signal wakes a parked worker.
func (p *partition[V]) signal() {
	select {
	case p.wake <- struct{}{}:
	default: // in Manual mode nobody takes it
	}
}

// stop makes the worker end when it has nothing left to do, with mu held.
func (p *partition[V]) stop() {
	p.stopping = true
	if p.parked && p.at.Load() == nil {
		p.parked = false
		p.signal()
	}
}

// appendAll appends a request to the queues of its partitions, all locked. A parked
// worker without work arrives at once, unseen, so that nobody need wake it. If that were
// all its workers, the last is woken to run the request.
func (s *Scheduler[V]) appendAll(r *Request[V]) {
	absent := 0
	for _, i := range r.parts {
		if p := s.parts[i]; p.parked && p.at.Load() == nil {
			absent++
		}
	}
	if absent == len(r.parts) {
		absent--
	}
	for _, i := range r.parts {
		p := s.parts[i]
		if absent > 0 && p.parked && p.at.Load() == nil {
			absent--
			p.at.Store(r)
			r.arrived.Add(1)
			continue
		}
		if p.push(r) {
			p.signal()
		}
	}
}
