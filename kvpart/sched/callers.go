package sched

import "context"

// call runs r on the goroutine of its caller.
func (s *Scheduler[V]) call(ctx context.Context, r *Request[V]) error {
	share := r.access == Share
	for try := 0; ; try++ {
		state, err := s.resolve(ctx, r, true, try >= patience)
		if err != nil {
			return err
		}
		for n, i := range r.parts {
			if err := s.parts[i].acquire(ctx, share); err != nil {
				s.unpin(r)
				s.free(r.parts[:n], share)
				s.abandon(r)
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
			s.abandon(r)
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

func (s *Scheduler[V]) free(parts []int32, share bool) {
	for _, i := range parts {
		s.parts[i].release(share)
	}
}
