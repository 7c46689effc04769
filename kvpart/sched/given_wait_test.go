package sched_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/samya-db/samya/kvpart/sched"
)

// within fails the test if fn does not return.
func within(t *testing.T, doing string, fn func()) {
	t.Helper()
	returned := make(chan struct{})
	go func() { defer close(returned); fn() }()
	select {
	case <-returned:
	case <-time.After(time.Minute):
		t.Fatalf("%s waits for ever", doing)
	}
}

// knock is a context without an end. It calls do once, when somebody is about to wait for
// the end.
type knock struct {
	context.Context
	once *sync.Once
	do   func()
}

func onWait(do func()) knock { return knock{context.Background(), &sync.Once{}, do} }

func (k knock) Done() <-chan struct{} {
	k.once.Do(k.do)
	return nil
}

// A caller that found its partition before a switch goes to the partition after it.
func TestOfOverASwitch(t *testing.T) {
	for _, several := range []bool{false, true} {
		s := newScheduler(t, sched.Options[int64]{Partitions: 3})
		entries := []*entry{insert(t, s, "a", 0)}
		want := []int32{1}
		if several {
			entries, want = append(entries, insert(t, s, "b", 2)), []int32{1, 2}
		}
		release := occupy(t, s, sched.Callers, "a")
		p := newProbe(func(r *sched.Request[int64]) {
			if !slices.Equal(r.Partitions(), want) || r.Epoch() != 1 {
				t.Errorf("on %v in epoch %d, want %v", r.Partitions(), r.Epoch(), want)
			}
		})
		p.req.Of(entries, sched.Alone, p)
		ctx := onWait(func() {
			release()
			if _, err := s.Assign(entries[0], 1); err != nil {
				t.Error(err)
			}
			s.Switch(nil)
		})
		if err := s.Do(ctx, &p.req); err != nil || p.ran != 1 {
			t.Errorf("ran %d times, %v", p.ran, err)
		}
	}
}

// Insert and Remove wait neither for a job nor for requests that wait for the job. A
// dispatched request runs with the removed entry; any other is refused; the key is free
// for another entry at once.
func TestRemoveWaitsForNobody(t *testing.T) {
	modes(t, func(t *testing.T, m sched.Mode) {
		t.Helper()
		for _, several := range []bool{false, true} {
			s := newScheduler(t, sched.Options[int64]{Partitions: 2, Mode: m})
			a, b := insert(t, s, "a", 0), insert(t, s, "b", 1)
			inside, leave, left := make(chan struct{}), make(chan struct{}), make(chan error)
			gone := false
			runs := newProbe(func(r *sched.Request[int64]) {
				close(inside)
				<-leave
				gone = r.Entries()[0].Gone()
			})
			runs.req.Of([]*entry{a}, sched.Alone, runs)
			go func() { left <- s.Do(context.Background(), &runs.req) }()
			<-inside
			waits := newProbe(nothing)
			waits.req.Of([]*entry{a}, sched.Alone, waits)
			if several {
				waits.req.Of([]*entry{b, a}, sched.Alone, waits)
			}
			if m != sched.Callers {
				if err := s.TryStart(&waits.req); err != nil {
					t.Fatal(err)
				}
			} else { // it gets the locks once the job has left, and finds a gone
				waiting := make(chan struct{})
				ctx := onWait(func() { close(waiting) })
				go func() { waits.ended <- s.Do(ctx, &waits.req) }()
				<-waiting
			}
			within(t, "Remove", func() { s.Remove(a) })
			var second *entry
			within(t, "Insert", func() { second = insert(t, s, "a", 1) })
			if m == sched.Callers {
				within(t, "the second a", func() {
					p := newProbe(nothing)
					p.req.Of([]*entry{second}, sched.Alone, p)
					if err := s.Do(context.Background(), &p.req); err != nil {
						t.Error(err)
					}
				})
			}
			close(leave)
			if err := <-left; err != nil || !gone {
				t.Errorf("the job that ran: %v, gone %t", err, gone)
			}
			err := <-waits.ended
			if m != sched.Callers && (err != nil || waits.ran != 1) {
				t.Errorf("the one in the queue: ran %d times, %v", waits.ran, err)
			}
			if m == sched.Callers && (!errors.Is(err, sched.ErrNoEntry) || waits.ran != 0) {
				t.Errorf("the one that was not dispatched: ran %d times, %v", waits.ran, err)
			}
		}
	})
}

// Jobs on given entries may insert and remove.
func TestJobsInsertAndRemove(t *testing.T) {
	modes(t, func(t *testing.T, m sched.Mode) {
		t.Helper()
		s := newScheduler(t, sched.Options[int64]{Partitions: 2, Mode: m})
		a, b := insert(t, s, "a", 0), insert(t, s, "b", 1)
		p := newProbe(func(*sched.Request[int64]) {
			s.Remove(a)
			insert(t, s, "a", 1)
			s.Remove(insert(t, s, "c", sched.Unplaced))
		})
		p.req.Of([]*entry{a, b}, sched.Alone, p)
		within(t, "a job", func() {
			if err := s.Do(context.Background(), &p.req); err != nil {
				t.Error(err)
			}
		})
		if s.Keys() != 2 || s.Entry("a") == a {
			t.Errorf("%d keys", s.Keys())
		}
	})
}

// A request of given entries waits at the gate and heeds its context as others do.
func TestOfAtTheGate(t *testing.T) {
	modes(t, func(t *testing.T, m sched.Mode) {
		t.Helper()
		s := newScheduler(t, sched.Options[int64]{Partitions: 2, Mode: m})
		a := insert(t, s, "a", 0)
		b := insert(t, s, "b", 1)
		for _, entries := range [][]*entry{{a}, {a, b}} {
			later := newProbe(nothing)
			later.req.Of(entries, sched.Share, later)
			got := make(chan error)
			s.Hold(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
				defer cancel()
				p := newProbe(nothing)
				p.req.Of(entries, sched.Alone, p)
				if err := s.Do(ctx, &p.req); !errors.Is(err, context.DeadlineExceeded) || p.ran != 0 {
					t.Errorf("a request whose context has ended: ran %d times, %v", p.ran, err)
				}
				if err := <-p.ended; err == nil {
					t.Error("it ended as if it had run")
				}
				if m != sched.Callers {
					if err := s.TryStart(&p.req); !errors.Is(err, sched.ErrFull) {
						t.Errorf("a try: %v", err)
					}
				}
				ran := s.Stats().Ran
				go func() { got <- s.Do(context.Background(), &later.req) }()
				if s.Stats().Ran != ran {
					t.Error("a request ran")
				}
			})
			if err := <-got; err != nil || later.ran != 1 {
				t.Errorf("after the hold: ran %d times, %v", later.ran, err)
			}
			p := newProbe(nothing)
			p.req.Of(entries, sched.Alone, p)
			ctx, cancel := context.WithCancel(t.Context())
			if m == sched.Callers {
				cancel()
				if err := s.Do(ctx, &p.req); !errors.Is(err, context.Canceled) || p.ran != 0 {
					t.Errorf("a request that nothing keeps waiting: ran %d times, %v", p.ran, err)
				}
				if err := <-p.ended; err == nil {
					t.Error("it ended as if it had run")
				}
				ctx, cancel = context.WithCancel(t.Context())
			}
			release := occupy(t, s, m, "a")
			go func() { got <- s.Do(ctx, &p.req) }()
			cancel()
			if err := <-got; !errors.Is(err, context.Canceled) {
				t.Errorf("a request at a busy partition: %v", err)
			}
			release()
			if err := <-p.ended; err == nil || p.ran != 0 {
				t.Errorf("it ran %d times, %v", p.ran, err)
			}
		}
		s.Close()
		p := newProbe(nothing)
		p.req.Of([]*entry{a}, sched.Share, p)
		if err := s.Do(t.Context(), &p.req); !errors.Is(err, sched.ErrClosed) {
			t.Errorf("after the close: %v", err)
		}
	})
}

// A job on given entries that panics, or ends its goroutine, fails alone.
func TestOfPanics(t *testing.T) {
	modes(t, func(t *testing.T, m sched.Mode) {
		t.Helper()
		s := newScheduler(t, sched.Options[int64]{Partitions: 2, Mode: m})
		a, b := insert(t, s, "a", 0), insert(t, s, "b", 1)
		for _, entries := range [][]*entry{{a}, {a, b}} {
			for _, run := range []func(*sched.Request[int64]){
				func(*sched.Request[int64]) { panic("broken") },
				func(*sched.Request[int64]) { runtime.Goexit() },
			} {
				for _, access := range []sched.Access{sched.Share, sched.Alone} {
					p := newProbe(run)
					p.req.Of(entries, access, p)
					got := make(chan error, 1)
					go func() {
						defer close(got)
						got <- s.Do(context.Background(), &p.req)
					}()
					var failed *sched.PanicError
					// In Callers mode it may be the goroutine of Do that ends.
					if err, ok := <-got; ok && (!errors.As(err, &failed) || len(failed.Stack) == 0) {
						t.Errorf("%v", err)
					}
				}
			}
			p := newProbe(nothing)
			p.req.Of(entries, sched.Alone, p)
			within(t, "a request after those", func() {
				if err := s.Do(context.Background(), &p.req); err != nil {
					t.Error(err)
				}
			})
		}
	})
}
