package sched_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samya-db/samya/kvpart/early"
	"github.com/samya-db/samya/kvpart/sched"
)

// watch dumps all goroutines and ends the test process if progress stands still.
func watch(t *testing.T, progress *atomic.Int64, ended <-chan struct{}) {
	t.Helper()
	const every, patience = time.Second, 20
	tick := time.NewTicker(every)
	defer tick.Stop()
	for last, still := int64(-1), 0; still < patience; still++ {
		select {
		case <-ended:
			return
		case <-tick.C:
		}
		if n := progress.Load(); n != last {
			last, still = n, 0
		}
	}
	stacks := make([]byte, 1<<20)
	panic(fmt.Sprintf("after %d requests nobody goes on:\n%s", progress.Load(), stacks[:runtime.Stack(stacks, true)]))
}

// TestNobodyWaitsForEver: random requests of one key, of several and of ranges end in all
// modes of threads, while keys move. EARLY_REQUESTS is their number for each mode.
func TestNobodyWaitsForEver(t *testing.T) {
	requests, seed := 8_000, uint64(1)
	if text := os.Getenv("EARLY_REQUESTS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		requests, seed = n, rand.Uint64()
	}
	for i, mode := range early.Modes() {
		// The last has more partitions than sets of partitions have classes.
		for j, partitions := range []int{2, 4, early.MaxSubsets + 2} {
			t.Run(fmt.Sprintf("%v, %d partitions", mode, partitions), func(t *testing.T) {
				s := newScheduler(t, sched.Options[int64]{
					Partitions: partitions, Mode: sched.Threads, Queue: 1 << (i + j), Early: sched.Early{Mode: mode, Threads: 1 + (i+j)%3},
				})
				run(t, s, requests/3, seed+uint64(16*j+i))
			})
		}
	}
}

// run has clients make random requests, while keys move.
func run(t *testing.T, s *sched.Scheduler[int64], requests int, seed uint64) {
	t.Helper()
	const clients, keys = 8, 40
	var left, done atomic.Int64
	left.Store(int64(requests))
	stop, moved := make(chan struct{}), make(chan struct{})
	watched := make(chan struct{})
	go watch(t, &done, watched)
	defer close(watched)
	go func() {
		defer close(moved)
		move(t, s, rand.New(rand.NewPCG(seed, 1)), stop)
	}()
	key := func(r *rand.Rand) string { return fmt.Sprintf("k%02d", r.IntN(keys)) }
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, 2+uint64(c)))
			p := newProbe(present)
			for left.Add(-1) >= 0 {
				access := sched.Access(r.IntN(3))
				p.run = nothing
				if access == sched.Create {
					p.run = present
				}
				switch r.IntN(10) {
				case 0, 1, 2:
					p.req.Range(key(r), 1+r.IntN(8), access, p)
				case 3, 4:
					p.req.Several([]string{key(r), key(r), key(r)}, access, p)
				default:
					p.req.One(key(r), sched.Create, p)
				}
				if err := s.Do(t.Context(), &p.req); err != nil {
					t.Error(err)
				}
				done.Add(1)
			}
		})
	}
	wg.Wait()
	close(stop)
	<-moved
	if st := s.Stats(); st.Ran > int64(requests) || st.Ran < int64(requests)*9/10 {
		t.Errorf("%d of %d requests ran", st.Ran, requests)
	}
}

// move assigns keys at random and switches, until stop is closed.
func move(t *testing.T, s *sched.Scheduler[int64], r *rand.Rand, stop <-chan struct{}) {
	t.Helper()
	for {
		select {
		case <-stop:
			return
		default:
		}
		for _, e := range s.Entries(nil, "", 10) {
			if _, err := s.Assign(e, r.IntN(s.Partitions())); err != nil {
				t.Error(err)
			}
		}
		s.Switch(nil)
		runtime.Gosched()
	}
}
