package sched_test

import (
	"sync"
	"testing"

	"github.com/samya-db/samya/kvpart/sched"
)

// observer counts the requests it is told of, by their number of entries.
type observer struct {
	mu    sync.Mutex
	sizes map[int]int
}

func (o *observer) Observe(entries []*sched.Entry[int64]) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sizes[len(entries)]++
}

// TestObserver checks that the observer is told of each request once, but not of unseen
// requests; setting up a request again makes it seen.
func TestObserver(t *testing.T) {
	modes(t, func(t *testing.T, m sched.Mode) {
		t.Helper()
		o := &observer{sizes: map[int]int{}}
		s := newScheduler(t, sched.Options[int64]{Partitions: 3, Mode: m, Observer: o})
		c := newCounter(1)
		do := func(unseen bool) {
			if unseen {
				c.req.Unseen()
			}
			if err := s.Do(t.Context(), &c.req); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 6 {
			c.req.Several([]string{"a", "b", "c"}, sched.Create, c)
			do(i%2 == 0)
			c.req.One("a", sched.Share, c)
			do(i%3 == 0)
			c.req.Range("b", 2, sched.Share, c)
			do(true)
			if m != sched.Callers {
				c.req.Several([]string{"a", "b", "c", "d"}, sched.Create, c)
				if i%2 == 0 {
					c.req.Unseen()
				}
				if err := s.Start(t.Context(), &c.req); err != nil {
					t.Fatal(err)
				}
				if err := <-c.ended; err != nil {
					t.Fatal(err)
				}
			}
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		started := 0
		if m != sched.Callers {
			started = 3
		}
		if o.sizes[3] != 3 || o.sizes[1] != 4 || o.sizes[2] != 0 || o.sizes[4] != started {
			t.Errorf("told %v", o.sizes)
		}
	})
}
