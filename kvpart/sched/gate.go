package sched

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
)

// The state of a scheduler: two flags, and the epoch above them.
const (
	held       = 1 << 0 // Hold is under way: nothing is dispatched
	closed     = 1 << 1
	epochShift = 2
)

// gate is where requests wait for the end of a hold.
type gate struct {
	hold sync.Mutex // a single Hold or Close at a time
	mu   sync.Mutex
	open chan struct{} // closed when the hold ends; nil without a hold
	// met is closed when the workers have come to the last switch; assign guards it.
	met chan struct{}
}

// Hold runs fn while no request is dispatched: new requests wait until fn is done, or
// their contexts are. In Callers mode no request runs either; workers go on with their
// queues. fn may use Assign and Switch.
func (s *Scheduler[V]) Hold(fn func()) {
	s.gate.hold.Lock()
	defer s.gate.hold.Unlock()
	open := make(chan struct{})
	s.gate.mu.Lock()
	s.gate.open = open
	s.gate.mu.Unlock()

	s.lockAll()
	s.state.Or(held)
	s.unlockAll()
	defer func() {
		s.state.And(^uint64(held))
		s.gate.mu.Lock()
		s.gate.open = nil
		s.gate.mu.Unlock()
		close(open)
	}()
	fn()
}

// opened returns the state once requests may be dispatched again.
func (s *Scheduler[V]) opened(ctx context.Context, r *Request[V], wait bool) (uint64, error) {
	for {
		if err := s.pass(ctx, r, wait); err != nil {
			return 0, err
		}
		if state := s.state.Load(); state&(held|closed) == 0 {
			return state, nil
		}
	}
}

// pass waits until the gate is open. It fails if the scheduler is closed or ctx ends, or
// with errFull if it must not wait.
func (s *Scheduler[V]) pass(ctx context.Context, r *Request[V], wait bool) error {
	for {
		s.gate.mu.Lock()
		open := s.gate.open
		s.gate.mu.Unlock()
		state := s.state.Load()
		if state&closed != 0 {
			return ErrClosed
		}
		if state&held == 0 || open == nil {
			return nil
		}
		if !wait {
			s.abandon(r) // an earlier try may have made entries
			return fmt.Errorf("%w: no request is dispatched", errFull)
		}
		select {
		case <-open:
		case <-ctx.Done():
			s.abandon(r)
			return s.lost(r, "wait for dispatch", ctx.Err())
		}
	}
}

// rounds is how often lockAll tries to take all locks at once before it queues up for
// each in turn.
const rounds = 64

// lockAll locks all partitions, and returns when dispatch stopped. The holder of a lock
// may have lost the processor for many milliseconds: lockAll does not keep the other
// partitions waiting meanwhile.
func (s *Scheduler[V]) lockAll() (since time.Duration) {
	callers := s.mode == Callers
	for range rounds {
		since = s.clock()
		n := slices.IndexFunc(s.doors, func(p *partition[V]) bool { return !p.tryLock(callers) })
		if n < 0 {
			return since
		}
		for _, p := range s.doors[:n] {
			p.unlock(callers)
		}
		runtime.Gosched()
	}
	since = s.clock()
	for _, p := range s.doors {
		p.lock(callers)
	}
	return since
}

func (s *Scheduler[V]) unlockAll() {
	for _, p := range s.doors {
		p.unlock(s.mode == Callers)
	}
}
