package sched

import (
	"context"
	"sync"
	"testing"
)

// TestStatsWhileRequestsRun: between two readings of Stats no more requests ran on
// several partitions than ran at all.
func TestStatsWhileRequestsRun(t *testing.T) {
	for _, m := range []Mode{Callers, Workers} {
		s := newInside(t, Options[int]{Partitions: 4, Mode: m, Place: RoundRobin})
		keys := []string{"a", "b", "c", "d"}
		var clients sync.WaitGroup
		for range 4 {
			clients.Go(func() {
				var r Request[int]
				for range 3000 {
					r.Several(keys, Create, none{})
					if err := s.Do(context.Background(), &r); err != nil {
						t.Error(err)
					}
				}
			})
		}
		over := make(chan struct{})
		go func() { clients.Wait(); close(over) }()
		for before, more := s.Stats(), true; more; {
			select {
			case <-over:
				more = false
			default:
			}
			now := s.Stats()
			if ran, multi := now.Ran-before.Ran, now.Multi-before.Multi; multi < 0 || multi > ran {
				t.Fatalf("mode %d: %d of %d requests on several partitions", m, multi, ran)
			}
			before = now
		}
	}
}

// TestStatsOfAnInstant: a request of several partitions that ends while Stats reads counts
// twice, as a request and as a request of several partitions, or not at all.
func TestStatsOfAnInstant(t *testing.T) {
	s := newInside(t, Options[int]{Partitions: 4, Mode: Callers, Place: RoundRobin})
	ended := int64(0)
	st := stats(s, func() int64 { ended++; return ended })
	if st.Ran != st.Multi {
		t.Errorf("%d requests ran, %d of them on several partitions, and no others", st.Ran, st.Multi)
	}
}

// TestUpkeepCountsApart: requests of upkeep are in no other count.
func TestUpkeepCountsApart(t *testing.T) {
	for _, m := range []Mode{Callers, Workers} {
		s := newInside(t, Options[int]{Partitions: 2, Mode: m, Place: RoundRobin})
		var r Request[int]
		for range 3 {
			r.Several([]string{"a", "b"}, Create, none{})
			r.Upkeep()
			if err := s.Do(t.Context(), &r); err != nil {
				t.Fatal(err)
			}
		}
		r.Several([]string{"a", "b"}, Create, none{}) // no longer of upkeep
		if err := s.Do(t.Context(), &r); err != nil {
			t.Fatal(err)
		}
		st := s.Stats()
		if st.Upkeep != 3 || st.Ran != 1 || st.Multi != 1 || st.PerPartition[0] != 1 || st.PerPartition[1] != 1 {
			t.Errorf("mode %d: %+v", m, st)
		}
	}
}
