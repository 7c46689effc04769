package engine_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samya-db/samya/site/core/stored"
)

// slow is a store whose commits take a time.
type slow struct {
	*world
	took    time.Duration
	commits atomic.Int64
}

func (s *slow) Commit(r *stored.Records) error {
	s.commits.Add(1)
	<-time.After(s.took)
	return s.world.Commit(r)
}

// TestCallersShareSlowCommits: closed-loop callers that began at different times share
// commits soon. Without a wait they would fall into halves, which wait for each other.
func TestCallersShareSlowCommits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		t.Helper()
		const callers, rounds, took = 16, 20, 16 * time.Millisecond
		w := &slow{world: new(world), took: took}
		e, stop := runWith(t, w, w.world, 0, rich)
		var group sync.WaitGroup
		for caller := range uint64(callers) {
			group.Go(func() {
				<-time.After(took / 2 * time.Duration(caller%2))
				for i := range uint64(rounds) {
					if _, err := e.Do(t.Context(), acquire(1, caller*rounds+i+1, 0)); err != nil {
						t.Error(err)
					}
					<-time.After(time.Millisecond) // on its way to the caller and back
				}
			})
		}
		group.Wait()
		if got := w.commits.Load(); got > rounds+2 {
			t.Errorf("%d commits for %d requests of each of %d callers", got, rounds, callers)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestASteadyStreamHardlyWaits: where requests come at a rate of their own, commits follow
// each other with a short pause.
func TestASteadyStreamHardlyWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		t.Helper()
		const took, every, requests = 16 * time.Millisecond, 500 * time.Microsecond, 2000
		w := &slow{world: new(world), took: took}
		e, stop := runWith(t, w, w.world, 0, rich)
		var group sync.WaitGroup
		var waited atomic.Int64
		for i := range uint64(requests) {
			<-time.After(every)
			group.Go(func() {
				began := time.Now()
				if _, err := e.Do(t.Context(), acquire(1, i+1, 0)); err != nil {
					t.Error(err)
				}
				waited.Add(int64(time.Since(began)))
			})
		}
		group.Wait()
		// Without any pause a request waits for half a commit and its own.
		if mean := time.Duration(waited.Load() / requests); mean > took*19/10 {
			t.Errorf("requests wait %v on average, commits take %v", mean, took)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
