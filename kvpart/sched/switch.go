package sched

import "time"

// Assign makes e belong to partition from the next switch on. With Unplaced e is then
// placed as if new. The last Assign before the switch counts. Assign reports whether e
// will move. It waits until the workers have come to the last switch. It fails if
// the partition is out of range.
func (s *Scheduler[V]) Assign(e *Entry[V], partition int) (bool, error) {
	if err := s.valid(partition); err != nil {
		return false, err
	}
	s.assign.Lock()
	defer s.assign.Unlock()
	s.settle() // requests dispatched before the last switch ask where entries were
	// The epoch stands while assign is held. A request may place the entry meanwhile.
	epoch := s.epoch()
	for {
		w := e.where.Load()
		present := unpack(w, epoch)
		if e.where.CompareAndSwap(w, pack(present, partition, epoch+1)) {
			return present != partition, nil
		}
	}
}

// settle waits until the workers have come to the last switch. assign is held.
func (s *Scheduler[V]) settle() {
	if s.mode != Manual && s.gate.met != nil {
		<-s.gate.met
		s.gate.met = nil
	}
}

// Settled reports whether the workers have come to the last switch. In Manual mode Assign
// and Switch do not wait for that: the caller of Step has to ensure it before calling
// either.
func (s *Scheduler[V]) Settled() bool {
	s.assign.Lock()
	defer s.assign.Unlock()
	select {
	case <-s.gate.met:
		return true
	default:
		return s.gate.met == nil
	}
}

// Switch makes all assignments count. Of two requests on a key, handed over before and
// after the switch, the first runs first. Switch waits until the workers have come to the
// previous switch. during, if not nil, runs while nothing is dispatched, and in Callers
// mode while nothing runs: it must be quick.
func (s *Scheduler[V]) Switch(during func(Epoch)) {
	s.assign.Lock()
	defer s.assign.Unlock()
	s.settle() // lest meetings, which may exceed the bound, pile up in the queues
	began := s.lockAll()
	s.state.Add(1 << epochShift)
	if s.mode != Callers && len(s.parts) > 1 && s.state.Load()&closed == 0 {
		// The workers meet: requests dispatched from here on wait for all earlier
		// requests. A closed scheduler dispatches none, and some workers may have ended.
		s.gate.met = make(chan struct{})
		meeting := &Request[V]{synch: true, parts: s.all, done: s.gate.met}
		if s.threads != nil {
			s.threads.sync(meeting)
		} else {
			s.appendAll(meeting)
		}
	}
	if during != nil {
		during(s.epoch())
	}
	s.unlockAll()
	if s.now != nil {
		s.pauses.Lock()
		// A pause beyond the range of the histogram counts as its bound.
		_ = s.pauses.RecordValue(min(max(int64(s.now()-began), 1), s.pauses.HighestTrackableValue()))
		s.pauses.Unlock()
	}
}

func (s *Scheduler[V]) epoch() Epoch { return Epoch(s.state.Load() >> epochShift) }

// Epoch returns the number of switches so far.
func (s *Scheduler[V]) Epoch() Epoch { return s.epoch() }

// Partition returns the present partition of e, or Unplaced.
func (s *Scheduler[V]) Partition(e *Entry[V]) int { return e.At(s.epoch()) }

// clock returns the time, 0 without a clock.
func (s *Scheduler[V]) clock() time.Duration {
	if s.now == nil {
		return 0
	}
	return s.now()
}
