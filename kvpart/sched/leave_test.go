package sched_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/samya-db/samya/kvpart/sched"
)

// many returns first and 200 other keys: more than a sweep looks at.
func many(first string) []string {
	keys := []string{first}
	for i := range 200 {
		keys = append(keys, fmt.Sprintf("k%03d", i))
	}
	return keys
}

// atOnce fails the test if a request waits for anybody; in Callers mode no running job
// may be in its way.
func atOnce(t *testing.T, s *sched.Scheduler[int64], what string, keys ...string) {
	t.Helper()
	ended, cancel := context.WithCancel(t.Context())
	defer cancel()
	ctx := &waited{Context: ended, waits: make(chan struct{})}
	p := newProbe(nothing)
	p.req.Several(keys, sched.Share, p)
	got := make(chan error, 1)
	go func() { got <- s.Do(ctx, &p.req) }()
	select {
	case err := <-got:
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	case <-ctx.waits:
		t.Errorf("%s: a request of %q waits", what, keys)
		cancel()
		if err := <-got; err == nil {
			t.Error("it ran after it was given up")
		}
	}
}

// closedIfGood makes a scheduler that is closed unless the test fails: a lock that is
// kept would keep it open for good.
func closedIfGood(t *testing.T, o sched.Options[int64]) *sched.Scheduler[int64] {
	t.Helper()
	s, err := sched.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !t.Failed() {
			s.Close()
		}
	})
	return s
}

// nothingIsLeft sweeps until no entry is there, and fails the test after 10 s. A single
// sweep may not do: in Callers mode a request that gave up may have the lock of a
// partition for a moment longer, and its entries are busy then.
func nothingIsLeft(t *testing.T, s *sched.Scheduler[int64], what string) {
	t.Helper()
	for until := time.Now().Add(10 * time.Second); s.Keys() != 0; runtime.Gosched() {
		s.Sweep()
		if n := s.Keys(); n != 0 && time.Now().After(until) {
			t.Fatalf("%s: %d vacant entries are left for good", what, n)
		}
	}
}

// TestNothingIsForgottenAtTheGate: entries that a request made while it waited for room
// go, though a hold kept it from a second try until its time was over.
func TestNothingIsForgottenAtTheGate(t *testing.T) {
	s := newScheduler(t, sched.Options[int64]{Partitions: 1, Mode: sched.Workers, Queue: 1})
	release := occupy(t, s, sched.Workers, "a")
	fill, late := newProbe(nothing), newProbe(nothing)
	fill.req.One("a", sched.Create, fill)
	if err := s.Start(t.Context(), &fill.req); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	ctx := &everyWait{Context: ended, waits: make(chan struct{})}
	late.req.Several(many("a"), sched.Create, late)
	got := make(chan error)
	go func() { got <- s.Do(ctx, &late.req) }()
	<-ctx.waits // for room
	s.Hold(func() {
		release()
		<-ctx.waits // at the gate
		cancel()
		if err := <-got; !errors.Is(err, context.Canceled) {
			t.Errorf("a request that waits too long: %v", err)
		}
	})
	if err := <-late.ended; err == nil {
		t.Error("it ended as if it had run")
	}
	if err := <-fill.ended; err != nil {
		t.Error(err)
	}
	nothingIsLeft(t, s, "after a hold")
}

// everyWait is a context that tells each time that somebody waits for its end.
type everyWait struct {
	context.Context
	waits chan struct{}
}

func (w *everyWait) Done() <-chan struct{} {
	w.waits <- struct{}{}
	return w.Context.Done()
}

// TestNoVacantEntryIsForgotten: all vacant entries go, also of a request that leaves more
// than a sweep is worth, and of requests that made entries and did not run.
func TestNoVacantEntryIsForgotten(t *testing.T) {
	modes(t, func(t *testing.T, m sched.Mode) {
		t.Helper()
		s := newScheduler(t, sched.Options[int64]{Partitions: 2, Mode: m, Queue: 1, Place: sched.RoundRobin})
		if err := do(t, s, sched.Create, nothing, many("a")...); err != nil {
			t.Fatal(err)
		}
		nothingIsLeft(t, s, "after one request of many")

		ended, cancel := context.WithCancel(t.Context())
		cancel()
		p := newProbe(nothing)
		p.req.Several(many("a"), sched.Create, p)
		if err := s.Do(ended, &p.req); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if err := <-p.ended; err == nil {
			t.Error("it ended as if it had run")
		}
		nothingIsLeft(t, s, "after a request that came too late")

		// A job holds the partition of a; with workers another job fills its queue.
		release := occupy(t, s, m, "a")
		fill := newProbe(nothing)
		if m != sched.Callers {
			fill.req.One("a", sched.Create, fill)
			if err := s.Start(t.Context(), &fill.req); err != nil {
				t.Fatal(err)
			}
			p.req.Several([]string{"a", "tried"}, sched.Create, p)
			if err := s.TryStart(&p.req); !errors.Is(err, sched.ErrFull) {
				t.Errorf("a try where there is no room: %v", err)
			}
		}
		ended, cancel = context.WithCancel(t.Context())
		ctx := &waited{Context: ended, waits: make(chan struct{})}
		got := make(chan error)
		p.req.Several(many("a"), sched.Create, p)
		go func() { got <- s.Do(ctx, &p.req) }()
		<-ctx.waits
		cancel()
		if err := <-got; !errors.Is(err, context.Canceled) {
			t.Errorf("a request that waits too long: %v", err)
		}
		if err := <-p.ended; err == nil {
			t.Error("it ended as if it had run")
		}
		release()
		if m != sched.Callers {
			if err := <-fill.ended; err != nil {
				t.Error(err)
			}
			// Behind fill, the worker is done with all requests before.
			if err := do(t, s, sched.Share, nothing, "a", "b"); err != nil {
				t.Fatal(err)
			}
		}
		nothingIsLeft(t, s, "after requests that gave up")
	})
}

// TestBusyEntriesAreSweptLater: a vacant entry in use during a sweep goes with a later
// sweep.
func TestBusyEntriesAreSweptLater(t *testing.T) {
	modes(t, func(t *testing.T, m sched.Mode) {
		t.Helper()
		s := newScheduler(t, sched.Options[int64]{Partitions: 1, Mode: m})
		if err := do(t, s, sched.Create, nothing, "a", "b"); err != nil {
			t.Fatal(err)
		}
		release := occupy(t, s, m, "a")
		s.Sweep()
		if s.Entry("a") == nil {
			t.Error("an entry in use was swept")
		}
		release()
		if err := do(t, s, sched.Create, present, "kept"); err != nil {
			t.Fatal(err)
		}
		s.Sweep()
		s.Sweep()
		if n := s.Keys(); n != 1 {
			t.Errorf("%d entries are left, of which one is kept", n)
		}
	})
}

// TestGivenUpFreesWhatItHas: a request that gives up while it waits for the second of its
// partitions lets go of the first.
func TestGivenUpFreesWhatItHas(t *testing.T) {
	s := closedIfGood(t, sched.Options[int64]{Partitions: 3, Mode: sched.Callers})
	keys := []string{"a", "b", "c"}
	for i, key := range keys {
		if err := s.Restore(key, i, 0); err != nil {
			t.Fatal(err)
		}
	}
	for i, busy := range keys {
		release := occupy(t, s, sched.Callers, busy)
		ended, cancel := context.WithCancel(t.Context())
		ctx := &waited{Context: ended, waits: make(chan struct{})}
		p := newProbe(nothing)
		p.req.Several(keys, sched.Alone, p)
		got := make(chan error)
		go func() { got <- s.Do(ctx, &p.req) }()
		<-ctx.waits
		cancel()
		if err := <-got; !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want it given up", err)
		}
		for _, free := range keys[:i] {
			atOnce(t, s, busy+" is in use", free)
		}
		release()
	}
}

// TestPartitionsStandOnce: a request has each of its partitions once, however many there
// are and in whatever order its keys are on them.
func TestPartitionsStandOnce(t *testing.T) {
	const partitions = 12
	s := newScheduler(t, sched.Options[int64]{Partitions: partitions, Mode: sched.Callers})
	var keys []string
	for i := range 3 * partitions {
		keys = append(keys, fmt.Sprintf("k%02d", i))
		if err := s.Restore(keys[i], i%partitions, 0); err != nil {
			t.Fatal(err)
		}
	}
	for n := range keys {
		var got []int32
		// A request that shares would not wait for itself.
		if err := do(t, s, sched.Share, func(r *sched.Request[int64]) { got = slices.Clone(r.Partitions()) }, keys[:n+1]...); err != nil {
			t.Fatal(err)
		}
		if want := min(n+1, partitions); len(got) != want || !slices.IsSorted(got) || len(slices.Compact(got)) != want {
			t.Errorf("%d keys are on %v, want %d partitions", n+1, got, want)
		}
	}
}

// TestHoldThatPanics: a hold ends with its function, also if the function panics.
func TestHoldThatPanics(t *testing.T) {
	s := closedIfGood(t, sched.Options[int64]{Partitions: 2, Mode: sched.Callers})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is gone")
			}
		}()
		s.Hold(func() { panic("in a hold") })
	}()
	if atOnce(t, s, "after a hold that panicked", "a", "b"); t.Failed() {
		return
	}
	if err := do(t, s, sched.Create, present, "a"); err != nil {
		t.Error(err)
	}
	s.Hold(func() {})
}

// TestWaitingIsObservedOnce: the observer is told once of a request that waits for room,
// however often it is tried.
func TestWaitingIsObservedOnce(t *testing.T) {
	o := &observer{sizes: map[int]int{}}
	s := newScheduler(t, sched.Options[int64]{Partitions: 1, Mode: sched.Workers, Queue: 1, Observer: o})
	release := occupy(t, s, sched.Workers, "a")
	fill, last := newProbe(nothing), newProbe(nothing)
	fill.req.One("a", sched.Create, fill)
	if err := s.Start(t.Context(), &fill.req); err != nil {
		t.Fatal(err)
	}
	ctx := &waited{Context: t.Context(), waits: make(chan struct{})}
	last.req.Several([]string{"a", "b"}, sched.Create, last)
	got := make(chan error)
	go func() { got <- s.Start(ctx, &last.req) }()
	<-ctx.waits
	release()
	for _, err := range []error{<-got, <-fill.ended, <-last.ended} {
		if err != nil {
			t.Error(err)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sizes[1] != 2 || o.sizes[2] != 1 {
		t.Errorf("told %v", o.sizes)
	}
}
