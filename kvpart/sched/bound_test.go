package sched_test

import (
	"errors"
	"testing"

	"github.com/samya-db/samya/kvpart/sched"
)

// TestQueuesAreBounded: no more requests wait at a worker than may.
func TestQueuesAreBounded(t *testing.T) {
	const most = 3
	s := newScheduler(t, sched.Options[int64]{Partitions: 1, Mode: sched.Manual, Queue: most})
	jobs := make([]*counter, most+1)
	for i := range jobs {
		jobs[i] = newCounter(1)
		jobs[i].req.One("a", sched.Create, jobs[i])
		err := s.TryStart(&jobs[i].req)
		if want := i == most; errors.Is(err, sched.ErrFull) != want {
			t.Fatalf("request %d of %d: %v", i, most, err)
		}
	}
	if o := s.Step(0); o != sched.Ran {
		t.Fatalf("step: %v", o)
	}
	if err := s.TryStart(&jobs[most].req); err != nil {
		t.Fatalf("a request after one has run: %v", err)
	}
	for range most {
		if o := s.Step(0); o != sched.Ran {
			t.Fatalf("step: %v", o)
		}
	}
}
