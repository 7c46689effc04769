package sched_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/samya-db/samya/kvpart/sched"
)

// classes is a Classer of two classes: requests that share run on a worker in turn, the
// others on all.
type classes struct {
	partitions int
	next       atomic.Int64
}

func (c *classes) Class(r *sched.Request[int64], dst []int32) []int32 {
	if r.Access() == sched.Share {
		return append(dst, int32(c.next.Add(1)%int64(c.partitions)))
	}
	for p := range c.partitions {
		dst = append(dst, int32(p))
	}
	return dst
}

// With another Classer nothing is lost, and requests that must be alone are.
func TestClasser(t *testing.T) {
	const clients, rounds, parts = 4, 500, 3
	for name, o := range map[string]sched.Options[int64]{
		"entries": {},
		"classes": {Classer: &classes{partitions: parts}},
	} {
		t.Run(name, func(t *testing.T) {
			o.Partitions, o.Mode, o.Queue = parts, sched.Workers, 4
			s := newScheduler(t, o)
			var value int64 // guarded by being alone
			var wg sync.WaitGroup
			for client := range clients {
				wg.Go(func() {
					key := []string{"a", "b", "c", "d"}[client]
					for range rounds {
						p := newProbe(func(r *sched.Request[int64]) {
							value++
							present(r)
						})
						p.req.Several([]string{"all", key}, sched.Create, p)
						if err := s.Do(context.Background(), &p.req); err != nil {
							t.Error(err)
							return
						}
						p = newProbe(func(*sched.Request[int64]) {
							if o.Classer != nil && value == 0 {
								t.Error("read nothing")
							}
						})
						p.req.One(key, sched.Share, p)
						if err := s.Do(context.Background(), &p.req); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			if err := do(t, s, sched.Alone, func(*sched.Request[int64]) {
				if value != clients*rounds {
					t.Errorf("%d, want %d", value, clients*rounds)
				}
			}, "all", "a"); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// switching is a Classer that moves a key while the first request is between the lookup of
// its partitions and its dispatch.
type switching struct {
	s      *sched.Scheduler[int64]
	before func()
	asked  int
}

func (c *switching) Class(r *sched.Request[int64], dst []int32) []int32 {
	c.asked++
	at := int32(r.Entries()[0].At(r.Epoch()))
	if c.before != nil {
		before := c.before
		c.before = nil
		before()
	}
	return append(dst, at)
}

// TestDispatchByTheLatestMap: a request whose key moves between lookup and dispatch is
// looked up again, in all modes.
func TestDispatchByTheLatestMap(t *testing.T) {
	modes(t, func(t *testing.T, m sched.Mode) {
		t.Helper()
		c := new(switching)
		c.s = newScheduler(t, sched.Options[int64]{Partitions: 2, Mode: m, Classer: c})
		e := insert(t, c.s, "a", 0)
		c.before = func() {
			if _, err := c.s.Assign(e, 1); err != nil {
				t.Error(err)
			}
			c.s.Switch(nil)
		}
		p := newProbe(func(r *sched.Request[int64]) {
			if on := r.Partitions(); len(on) != 1 || on[0] != 1 || r.Epoch() != 1 {
				t.Errorf("it runs on %v at epoch %d", on, r.Epoch())
			}
		})
		p.req.One("a", sched.Alone, p)
		if err := c.s.Do(t.Context(), &p.req); err != nil || c.asked != 2 {
			t.Errorf("asked %d times for the partitions: %v", c.asked, err)
		}
	})
}
