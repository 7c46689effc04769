package sched_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/samya-db/samya/kvpart/sched"
)

// TestSwitchDoesNotKeepAClosedSchedulerOpen: workers that have not ended must not wait at
// a switch for workers that have.
func TestSwitchDoesNotKeepAClosedSchedulerOpen(t *testing.T) {
	s := newScheduler(t, sched.Options[int64]{Partitions: 2, Mode: sched.Manual})
	if err := s.Restore("a", 1, 0); err != nil {
		t.Fatal(err)
	}
	c := newCounter(1)
	c.req.One("a", sched.Alone, c)
	if err := s.Start(t.Context(), &c.req); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if o := s.Step(0); o != sched.Stopped {
		t.Fatalf("a worker with nothing to do: %v, want it stopped", o)
	}
	s.Switch(nil)
	if o := s.Step(1); o != sched.Ran {
		t.Fatalf("a worker with a request: %v, want it to run", o)
	}
	if o := s.Step(1); o != sched.Stopped {
		t.Fatalf("a worker that has run all: %v, want it stopped", o)
	}
	if err := <-c.ended; err != nil {
		t.Fatal(err)
	}
}

// blocked is a job that runs until it is told to end.
type blocked struct {
	req     sched.Request[int64]
	release chan struct{}
}

func (b *blocked) Run(*sched.Request[int64]) { <-b.release }
func (b *blocked) End(error)                 {}

// TestSwitchesDoNotPileUp: a switch waits until the workers have come to the switch
// before, so that each queue has at most a single switch.
func TestSwitchesDoNotPileUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScheduler(t, sched.Options[int64]{Partitions: 2, Mode: sched.Workers})
		b := &blocked{release: make(chan struct{})}
		b.req.One("a", sched.Create, b)
		if err := s.Start(t.Context(), &b.req); err != nil {
			t.Fatal(err)
		}
		var switches atomic.Int32
		go func() {
			for range 3 {
				s.Switch(nil)
				switches.Add(1)
			}
		}()
		synctest.Wait()
		if n := switches.Load(); n != 1 {
			t.Errorf("%d switches while a worker is busy, want 1", n)
		}
		close(b.release)
		synctest.Wait()
		if n := switches.Load(); n != 3 {
			t.Errorf("%d switches, want 3", n)
		}
	})
}

// where is a job that remembers the partition of its entry at its dispatch.
type where struct {
	req   sched.Request[int64]
	at    int
	ended chan struct{}
}

func (w *where) Run(r *sched.Request[int64]) { w.at = r.Entries()[0].At(r.Epoch()) }
func (w *where) End(error)                   { close(w.ended) }

// TestRequestsKnowWhereEntriesWere: a request that waits over a switch finds the
// partition it was dispatched to, whatever is assigned after the switch.
func TestRequestsKnowWhereEntriesWere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScheduler(t, sched.Options[int64]{Partitions: 2, Mode: sched.Workers})
		if err := s.Restore("a", 1, 0); err != nil {
			t.Fatal(err)
		}
		b := &blocked{release: make(chan struct{})}
		b.req.One("a", sched.Alone, b)
		w := &where{ended: make(chan struct{})}
		w.req.One("a", sched.Alone, w)
		for _, r := range []*sched.Request[int64]{&b.req, &w.req} {
			if err := s.Start(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		go func() {
			for range 2 {
				if _, err := s.Assign(s.Entry("a"), sched.Unplaced); err != nil {
					t.Error(err)
				}
				s.Switch(nil)
			}
		}()
		synctest.Wait()
		close(b.release)
		<-w.ended
		if w.at != 1 {
			t.Errorf("the entry was at %d, want 1", w.at)
		}
	})
}

// TestSettled: a switch is settled once all workers have met, step by step.
func TestSettled(t *testing.T) {
	s := newScheduler(t, sched.Options[int64]{Partitions: 2, Mode: sched.Manual})
	if !s.Settled() {
		t.Error("not settled before the first switch")
	}
	for _, p := range []int{0, 1} { // they park
		if o := s.Step(p); o != sched.Idle {
			t.Fatalf("a worker with nothing to do: %v", o)
		}
	}
	c := newCounter(1)
	c.req.Several([]string{"a", "b", "c", "d"}, sched.Create, c)
	if err := s.Start(t.Context(), &c.req); err != nil {
		t.Fatal(err)
	}
	s.Switch(nil)
	steps := 0
	for ; !s.Settled() && steps < 10; steps++ {
		s.Step(steps % 2)
	}
	if steps < 2 || steps == 10 {
		t.Errorf("settled after %d steps", steps)
	}
	if err := <-c.ended; err != nil || c.sum != 4 {
		t.Errorf("what came before the switch: %d, %v", c.sum, err)
	}
}
