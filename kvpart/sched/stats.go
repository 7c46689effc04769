package sched

import (
	"time"

	"github.com/samya-db/samya/kvpart/early"
)

// Stats counts the work of a scheduler since it was made.
type Stats struct {
	Ran          int64   // requests that ran
	Multi        int64   // of Ran, requests that ran on several partitions
	Upkeep       int64   // requests of upkeep that ran, which no other count includes
	PerPartition []int64 // requests that ran on each partition; several partitions each count a shared request
	Queued       []int   // requests waiting at each worker; all at the first in the mode Threads
	Early        early.Stats
	Pause        Pause
}

// Pause tells how long switches stopped the dispatch of requests, from before the first
// lock was taken until after the last was released.
type Pause struct {
	Count         int64
	P50, P99, Max time.Duration
}

// count counts a request that ran. No count includes another: of two readings, even while
// requests run, neither Ran nor Ran without Multi is less in the second.
func (s *Scheduler[V]) count(r *Request[V]) {
	switch {
	case r.upkeep:
		s.upkeep.Add(1)
	case len(r.parts) == 1:
		s.parts[r.parts[0]].ran.Add(1)
	case len(r.parts) > 1:
		for _, i := range r.parts {
			s.parts[i].shared.Add(1)
		}
		s.multi.Add(1)
	}
}

// Stats returns the counts so far.
func (s *Scheduler[V]) Stats() Stats { return stats(s, s.multi.Load) }

// stats is Stats. load reads the number of requests of several partitions, which grows
// meanwhile: two readings would differ.
func stats[V any](s *Scheduler[V], load func() int64) Stats {
	multi := load()
	st := Stats{Multi: multi, Ran: multi, Upkeep: s.upkeep.Load()}
	for _, p := range s.parts {
		n := p.ran.Load()
		st.Ran += n
		st.PerPartition = append(st.PerPartition, n+p.shared.Load())
	}
	st.Queued = make([]int, len(s.parts))
	for i, p := range s.doors {
		st.Queued[i] = int(p.count.Load())
	}
	if s.threads != nil {
		st.Early = s.threads.Stats()
	}
	if s.now == nil {
		return st
	}
	s.pauses.Lock()
	defer s.pauses.Unlock()
	if n := s.pauses.TotalCount(); n > 0 {
		st.Pause = Pause{
			Count: n,
			P50:   time.Duration(s.pauses.ValueAtQuantile(50)),
			P99:   time.Duration(s.pauses.ValueAtQuantile(99)),
			Max:   time.Duration(s.pauses.Max()),
		}
	}
	return st
}
