package sched

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"

	"github.com/samya-db/samya/kvpart/internal/waittest"
)

func newInside(t *testing.T, o Options[int]) *Scheduler[int] {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// A request that keeps new keys away may wait long for its partitions. A request that
// makes a key, or keeps keys away too, gives up meanwhile; a range does not wait at all.
func TestNewKeysWaitUntilTheEnd(t *testing.T) {
	for _, m := range []Mode{Callers, Workers} {
		s := newInside(t, Options[int]{Partitions: 2, Mode: m})
		if _, err := s.Insert("a", 0, 0); err != nil {
			t.Fatal(err)
		}
		var slow Request[int]
		slow.Range("", 10, Share, none{})
		if _, err := s.resolve(t.Context(), &slow, true, true); err != nil {
			t.Fatal(err)
		}
		// It gives up, but still stands in line for the lock.
		waittest.Returns(t, "a request that makes a key", func() {
			ctx, cancel := context.WithCancel(context.Background())
			var r Request[int]
			r.One("new", Create, none{})
			if err := s.Do(waittest.Context{Context: ctx, Do: cancel}, &r); !errors.Is(err, context.Canceled) {
				t.Errorf("mode %d: %v", m, err)
			}
		})
		waittest.Returns(t, "a range", func() {
			var r Request[int]
			r.Range("", 10, Share, none{})
			if err := s.Do(context.Background(), &r); err != nil {
				t.Errorf("mode %d: %v", m, err)
			}
		})
		s.unpin(&slow)
		waittest.Returns(t, "a key once they may come", func() {
			var r Request[int]
			r.One("new", Create, none{})
			if err := s.Do(context.Background(), &r); err != nil {
				t.Errorf("mode %d: %v", m, err)
			}
		})
	}
}

// stale is a Classer whose requests are never current, for new keys come.
type stale struct {
	s     *Scheduler[int]
	tries int
	then  func()
}

func (c *stale) Class(r *Request[int], dst []int32) []int32 {
	c.tries++
	if !r.pinned {
		if _, err := c.s.Insert(strconv.Itoa(c.tries), 0, 0); err != nil {
			panic(err)
		}
	}
	c.then()
	return append(dst, 0)
}

// A request that must begin anew looks first whether its context has ended.
func TestNotAnewAfterTheEnd(t *testing.T) {
	for _, m := range []Mode{Callers, Workers} {
		ctx, cancel := context.WithCancel(t.Context())
		c := &stale{then: cancel}
		s := newInside(t, Options[int]{Partitions: 2, Mode: m, Classer: c})
		c.s = s
		if _, err := s.Insert("a", 0, 0); err != nil {
			t.Fatal(err)
		}
		var r Request[int]
		r.Range("", 10, Share, none{})
		if err := s.Do(ctx, &r); !errors.Is(err, context.Canceled) || c.tries != 1 {
			t.Errorf("mode %d: %d tries, %v", m, c.tries, err)
		}
	}
}

// A sweep has the index locked: it waits for no job, also at an entry whose partition is
// not decided.
func TestSweepsDoNotWait(t *testing.T) {
	s := newInside(t, Options[int]{Partitions: 2, Place: RoundRobin})
	var r Request[int]
	r.One("vacant", Create, none{})
	if err := s.Do(t.Context(), &r); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Assign(s.Entry("vacant"), Unplaced); err != nil {
		t.Fatal(err)
	}
	s.Switch(nil)
	for _, p := range s.parts {
		p.run.Lock() // as a job's caller
	}
	end := sync.OnceFunc(func() {
		for _, p := range s.parts {
			p.run.Unlock()
		}
	})
	defer end() // before the scheduler closes
	waittest.Returns(t, "a sweep", s.Sweep)
	end()
	s.Sweep()
	if n := s.Keys(); n != 0 {
		t.Errorf("%d keys, want none", n)
	}
}
