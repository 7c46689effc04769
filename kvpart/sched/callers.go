package sched

import "context"

// call runs r on the goroutine of its caller.
func (s *Scheduler[V]) call(ctx context.Context, r *Request[V]) error {
	share := r.access == Share
	if r.kind == given && len(r.entries) == 1 && s.classer == nil {
		return s.callOne(ctx, r, share)
	}
	r.forget()
	for try := 0; ; try++ {
		if err := ctx.Err(); err != nil {
			return s.lost(r, "wait for dispatch", err)
		}
		state, err := s.resolve(ctx, r, true, try >= patience)
		if err != nil {
			return err
		}
		for n, i := range r.parts {
			if err := s.parts[i].acquire(ctx, share); err != nil {
				s.unpin(r)
				s.free(r.parts[:n], share)
				return s.lost(r, "wait for a partition", err)
			}
		}
		ok := s.current(r, state)
		s.unpin(r)
		if !ok {
			s.free(r.parts, share)
			continue
		}
		if err := ctx.Err(); err != nil {
			s.free(r.parts, share)
			return s.lost(r, "wait for a partition", err)
		}
		vacated, err := s.runLocked(r, share)
		if vacated {
			s.tidy()
		}
		if s.observer != nil && !r.unseen && len(r.entries) > 0 {
			s.observer.Observe(r.entries)
		}
		return err
	}
}

// runLocked runs r and frees its partitions.
func (s *Scheduler[V]) runLocked(r *Request[V], share bool) (vacated bool, err error) {
	defer s.free(r.parts, share) // also if the job ends the goroutine
	s.guard(r, &err)
	s.count(r)
	return !share && s.vacate(r), err
}

// callOne is call for a single given entry, without the steps that more entries, keys or
// a Classer may need.
func (s *Scheduler[V]) callOne(ctx context.Context, r *Request[V], share bool) error {
	e := r.entries[0]
	for {
		state := s.state.Load()
		if state&(held|closed) != 0 {
			var err error
			if state, err = s.opened(ctx, r, true); err != nil {
				return err
			}
		}
		if e.dead.Load() {
			return ErrNoEntry
		}
		var b batch
		r.epoch = Epoch(state >> epochShift)
		at := s.home(e, r.epoch, &b)
		p := s.parts[at]
		if err := p.acquire(ctx, share); err != nil {
			return s.lost(r, "wait for a partition", err)
		}
		if s.state.Load() != state || e.dead.Load() {
			p.release(share)
			continue
		}
		if err := ctx.Err(); err != nil {
			p.release(share)
			return s.lost(r, "wait for a partition", err)
		}
		r.parts = append(r.parts[:0], int32(at))
		vacated, err := s.runOne(r, e, p, share)
		if vacated {
			s.tidy()
		}
		if s.observer != nil && !r.unseen {
			s.observer.Observe(r.entries)
		}
		return err
	}
}

// runOne is runLocked for a single entry.
func (s *Scheduler[V]) runOne(r *Request[V], e *Entry[V], p *partition[V], share bool) (vacated bool, err error) {
	defer p.release(share) // also if the job ends the goroutine
	s.guard(r, &err)
	s.count(r)
	return !share && !e.Present && s.list(e), err
}

func (s *Scheduler[V]) free(parts []int32, share bool) {
	for _, i := range parts {
		s.parts[i].release(share)
	}
}
