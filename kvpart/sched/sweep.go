package sched

import "sync"

// vacancies are vacant entries to be removed.
type vacancies[V any] struct {
	sync.Mutex
	entries []*Entry[V]
}

// sweepAt is the number of vacancies at which somebody sweeps. sweepSize is how many a
// sweep looks at.
const (
	sweepAt   = 64
	sweepSize = 128
)

// vacate notes the entries that r, which runs alone on them, leaves vacant. It reports
// whether it is time to sweep.
func (s *Scheduler[V]) vacate(r *Request[V]) bool {
	due := false
	for _, e := range r.entries {
		if e != nil && !e.Present {
			due = s.list(e) || due
		}
	}
	return due
}

// abandon notes the entries of a request that will not run: it may have made some.
func (s *Scheduler[V]) abandon(r *Request[V]) {
	if r.access != Create {
		return
	}
	due := false
	for _, e := range r.entries {
		if e != nil {
			due = s.list(e) || due
		}
	}
	if due {
		s.tidy()
	}
}

func (s *Scheduler[V]) list(e *Entry[V]) bool {
	if !e.listed.CompareAndSwap(false, true) {
		return false
	}
	s.vacant.Lock()
	defer s.vacant.Unlock()
	s.vacant.entries = append(s.vacant.entries, e)
	return len(s.vacant.entries)%sweepAt == 0
}

// tidy removes some vacant entries.
func (s *Scheduler[V]) tidy() { s.sweep(sweepSize) }

// Sweep removes vacant entries for which nobody waits. It waits for a sweep that is under
// way.
func (s *Scheduler[V]) Sweep() {
	s.dir.index.Lock() // a sweep holds the index while it has entries in hand
	s.vacant.Lock()
	n := len(s.vacant.entries)
	s.vacant.Unlock()
	s.dir.index.Unlock()
	for ; n > 0; n -= sweepSize {
		s.sweep(sweepSize)
	}
}

// sweep takes its entries with the index locked, so that no holder of the lock misses
// entries that another sweep has in hand.
func (s *Scheduler[V]) sweep(n int) {
	s.dir.index.Lock()
	defer s.dir.index.Unlock()
	s.vacant.Lock()
	n = min(n, len(s.vacant.entries))
	some := s.vacant.entries[:n:n]
	s.vacant.entries = s.vacant.entries[n:]
	s.vacant.Unlock()
	for _, e := range some {
		e.listed.Store(false)
		if s.busy(e) {
			s.list(e)
		}
	}
}

// busy removes e if it is vacant and nobody waits for it. It reports whether somebody
// waits. The index is locked.
func (s *Scheduler[V]) busy(e *Entry[V]) bool {
	state := s.state.Load()
	var b batch
	// An unplaced entry is placed, as its next request would do: the index must not wait
	// for all partitions.
	at := s.home(e, Epoch(state>>epochShift), &b)
	switch {
	case s.classer != nil: // its requests may be anywhere
		s.lockAll()
		defer s.unlockAll()
	case s.mode == Callers:
		p := s.parts[at]
		if !p.run.TryLock() {
			return true
		}
		defer p.run.Unlock()
	default:
		p := s.doors[at%len(s.doors)]
		p.mu.Lock()
		defer p.mu.Unlock()
	}
	if e.dead.Load() {
		return false
	}
	if s.state.Load() != state || e.queued.Load() > 0 {
		return true
	}
	if !e.Present {
		e.dead.Store(true)
		s.dir.remove(e)
	}
	return false
}
