package sched_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	_ "github.com/samya-db/samya/internal/testheap"
	"github.com/samya-db/samya/kvpart/sched"
)

// counter is a job that adds to each entry's value and remembers the sum.
type counter struct {
	req sched.Request[int64]
	add int64

	sum   int64
	n     int
	ended chan error
}

func newCounter(add int64) *counter { return &counter{add: add, ended: make(chan error, 1)} }

func (c *counter) Run(r *sched.Request[int64]) {
	c.sum, c.n = 0, 0
	for _, e := range r.Entries() {
		if e == nil {
			continue
		}
		if r.Access() != sched.Share {
			e.Value += c.add
			e.Present = true
		}
		if e.Present {
			c.sum += e.Value
			c.n++
		}
	}
}

func (c *counter) End(err error) { c.ended <- err }

func newScheduler(tb testing.TB, o sched.Options[int64]) *sched.Scheduler[int64] {
	tb.Helper()
	s, err := sched.New(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Close)
	return s
}

// modes runs a test with callers, workers and threads that run requests.
func modes(t *testing.T, test func(*testing.T, sched.Mode)) {
	t.Helper()
	t.Run("callers", func(t *testing.T) { test(t, sched.Callers) })
	t.Run("workers", func(t *testing.T) { test(t, sched.Workers) })
	t.Run("threads", func(t *testing.T) { test(t, sched.Threads) })
}

func TestOne(t *testing.T) {
	modes(t, func(t *testing.T, m sched.Mode) {
		t.Helper()
		s := newScheduler(t, sched.Options[int64]{Partitions: 3, Mode: m})
		c := newCounter(1)
		c.req.One("a", sched.Share, c)
		if err := s.Do(t.Context(), &c.req); !errors.Is(err, sched.ErrNoEntry) {
			t.Fatalf("read of an absent key: %v", err)
		}
		for i := range int64(3) {
			c.req.One("a", sched.Create, c)
			if err := s.Do(t.Context(), &c.req); err != nil || c.sum != i+1 {
				t.Fatalf("add %d: sum %d, %v", i, c.sum, err)
			}
		}
		if s.Keys() != 1 || s.Entry("a") == nil || s.Entry("b") != nil {
			t.Fatalf("%d keys", s.Keys())
		}
	})
}

// Several clients add to keys and to pairs of keys, and read ranges, while all keys
// move: nothing is lost, pairs stay equal.
func TestMoving(t *testing.T) {
	modes(t, func(t *testing.T, m sched.Mode) {
		t.Helper()
		const clients, rounds, keys, parts = 4, 2000, 16, 4
		s := newScheduler(t, sched.Options[int64]{Partitions: parts, Mode: m, Queue: 2})
		key := func(i int) string { return fmt.Sprintf("k%02d", i) }
		all := make([]string, keys)
		for i := range all {
			all[i] = key(i)
		}
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				for i, e := range s.Entries(nil, "", keys) {
					if _, err := s.Assign(e, (i+n)%parts); err != nil {
						t.Error(err)
					}
				}
				s.Switch(nil)
			}
		}()
		var wg sync.WaitGroup
		for client := range clients {
			wg.Go(func() {
				c := newCounter(1)
				for i := range rounds {
					c.req.Several([]string{key((client + i) % keys), key((client + i + 7) % keys)}, sched.Create, c)
					if err := s.Do(context.Background(), &c.req); err != nil {
						t.Error(err)
						return
					}
					c.req.One(key(i%keys), sched.Create, c)
					if err := s.Do(context.Background(), &c.req); err != nil {
						t.Error(err)
						return
					}
					c.req.Range(key(i%keys), 5, sched.Share, c)
					if err := s.Do(context.Background(), &c.req); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		close(stop)
		<-stopped
		c := newCounter(0)
		c.req.Several(all, sched.Share, c)
		if err := s.Do(t.Context(), &c.req); err != nil || c.sum != clients*rounds*3 {
			t.Fatalf("sum %d, want %d, %v", c.sum, clients*rounds*3, err)
		}
		if got := s.Stats().Ran; got != clients*rounds*3+1 {
			t.Errorf("%d requests ran, want %d", got, clients*rounds*3+1)
		}
	})
}
