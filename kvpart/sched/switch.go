package sched

import "time"

// Assign says that from the next switch on e belongs to partition, or is placed as
// if new if that is Unplaced. The last word before the switch counts. It tells
// whether e will move. It waits until the workers have come to the last switch, and
// fails with ErrOptions if the partition is out of range.
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
	if s.mode == Workers && s.gate.met != nil {
		<-s.gate.met
		s.gate.met = nil
	}
}

// Settled tells whether the workers have come to the last switch. In Manual mode,
// where Assign and Switch do not wait for that, whoever takes the steps sees to it
// before either.
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

// Switch makes what was assigned count. Requests handed over before run before
// those after, where both use a key. Switch waits until the workers have come to the
// one before. during, if not nil, is run while nothing is dispatched, and in Callers
// mode nothing runs: it must be quick.
func (s *Scheduler[V]) Switch(during func(Epoch)) {
	s.assign.Lock()
	defer s.assign.Unlock()
	s.settle() // lest meetings pile up in the queues, which they pass the bound of
	began := s.lockAll()
	s.state.Add(1 << epochShift)
	if s.mode != Callers && len(s.parts) > 1 && s.state.Load()&closed == 0 {
		// The workers meet: what is dispatched from here on waits for all before it.
		// Once closed nothing is, and some workers may have ended.
		s.gate.met = make(chan struct{})
		s.appendAll(&Request[V]{synch: true, parts: s.all, done: s.gate.met})
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

// Epoch returns how many switches there were.
func (s *Scheduler[V]) Epoch() Epoch { return s.epoch() }

// Partition returns the partition of e at present; Unplaced if it has none.
func (s *Scheduler[V]) Partition(e *Entry[V]) int { return e.At(s.epoch()) }

// clock returns the time, 0 if there is no clock.
func (s *Scheduler[V]) clock() time.Duration {
	if s.now == nil {
		return 0
	}
	return s.now()
}
