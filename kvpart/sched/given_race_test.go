package sched_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/samya-db/samya/kvpart/sched"
)

// tally is a job that counts its uses of each entry without a lock, and reads
// without writing if it shares.
type tally struct {
	req   sched.Request[int64]
	seen  int64
	ended chan error
}

func (j *tally) Run(r *sched.Request[int64]) {
	j.seen = 0
	for _, e := range r.Entries() {
		if r.Access() == sched.Share {
			j.seen += e.Value
		} else {
			e.Value++
		}
	}
}

func (j *tally) End(err error) { j.ended <- err }

// TestGivenEntriesUnderChange has clients use entries they remember while others
// insert, remove, move and sweep: no use is lost or made beside another, and none is
// of an entry that was removed before it was handed over.
func TestGivenEntriesUnderChange(t *testing.T) {
	modes(t, func(t *testing.T, m sched.Mode) {
		t.Helper()
		const clients, rounds, keys, parts = 4, 3000, 12, 3
		s := newScheduler(t, sched.Options[int64]{Partitions: parts, Mode: m, Queue: 8, Place: sched.RoundRobin})
		var (
			slots [keys]atomic.Pointer[entry] // who was inserted last
			mu    sync.Mutex
			used  = map[*entry]*atomic.Int64{}
		)
		add := func(i int) {
			e, err := s.Insert(fmt.Sprint(i), rand.IntN(parts+1)-1, 0)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			used[e] = new(atomic.Int64)
			mu.Unlock()
			slots[i].Store(e)
		}
		uses := func(e *entry) *atomic.Int64 {
			mu.Lock()
			defer mu.Unlock()
			return used[e]
		}
		for i := range keys {
			add(i)
		}
		stop := make(chan struct{})
		var control, wg sync.WaitGroup
		for _, change := range []func(n int){
			func(n int) {
				i := n % keys
				e := slots[i].Load()
				s.Remove(e)
				if !e.Gone() || s.Entry(e.Key()) != nil {
					t.Error("removed, and there")
				}
				add(i)
			},
			func(n int) {
				for i, e := range s.Entries(nil, "", keys) {
					if _, err := s.Assign(e, (i+n)%(parts+1)-1); err != nil {
						t.Error(err)
					}
				}
				s.Switch(nil)
			},
			func(int) { s.Sweep() },
			func(int) { s.Hold(func() {}) },
		} {
			control.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					default:
						change(n)
						runtime.Gosched()
					}
				}
			})
		}
		for client := range clients {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(uint64(client), 7))
				j := &tally{ended: make(chan error, 1)}
				for range rounds {
					entries := make([]*entry, 1+r.IntN(3))
					gone := false
					for i := range entries {
						entries[i] = slots[r.IntN(keys)].Load()
						gone = gone || entries[i].Gone()
					}
					access := sched.Access(r.IntN(2))
					j.req.Of(entries, access, j)
					var err error
					if m != sched.Callers && r.IntN(2) == 0 {
						if err = s.Start(context.Background(), &j.req); err == nil {
							err = <-j.ended
						}
					} else {
						err = s.Do(context.Background(), &j.req)
					}
					switch {
					case errors.Is(err, sched.ErrNoEntry):
					case err != nil:
						t.Error(err)
						return
					case gone:
						t.Error("ran with an entry that was removed before")
					case access == sched.Alone:
						for _, e := range entries {
							uses(e).Add(1)
						}
					}
				}
			})
		}
		wg.Wait()
		close(stop)
		control.Wait()
		s.Close() // all that ran is to be seen
		for e, n := range used {
			if e.Value != n.Load() {
				t.Errorf("%s: %d uses, counted %d", e.Key(), e.Value, n.Load())
			}
		}
		if s.Keys() != keys {
			t.Errorf("%d keys, want %d", s.Keys(), keys)
		}
	})
}
