package sched_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samya-db/samya/kvpart/sched"
)

// probe is a job that calls a function, and records its runs and its end.
type probe struct {
	req   sched.Request[int64]
	run   func(r *sched.Request[int64])
	ended chan error
	ran   int
}

func newProbe(run func(r *sched.Request[int64])) *probe {
	return &probe{run: run, ended: make(chan error, 1)}
}

func (p *probe) Run(r *sched.Request[int64]) { p.ran++; p.run(r) }
func (p *probe) End(err error)               { p.ended <- err }

func nothing(*sched.Request[int64]) {}

// occupy starts a job that runs on key until release is called.
func occupy(t *testing.T, s *sched.Scheduler[int64], m sched.Mode, key string) (release func()) {
	t.Helper()
	inside, leave, left := make(chan struct{}), make(chan struct{}), make(chan struct{})
	b := newProbe(func(*sched.Request[int64]) { close(inside); <-leave })
	b.req.One(key, sched.Create, b)
	go func() {
		defer close(left)
		if m == sched.Callers {
			if err := s.Do(context.Background(), &b.req); err != nil {
				t.Error(err)
			}
			return
		}
		if err := s.Start(context.Background(), &b.req); err != nil {
			t.Error(err)
		}
		if err := <-b.ended; err != nil {
			t.Error(err)
		}
	}()
	<-inside
	return func() { close(leave); <-left }
}

// waited is a context that tells when somebody waits for its end.
type waited struct {
	context.Context
	once  sync.Once
	waits chan struct{}
}

func (w *waited) Done() <-chan struct{} {
	w.once.Do(func() { close(w.waits) })
	return w.Context.Done()
}

// yielding is a context that lets workers run before anybody looks for its end.
type yielding struct{ context.Context }

func (y yielding) Done() <-chan struct{} {
	for range 100 {
		runtime.Gosched()
	}
	return y.Context.Done()
}

// TestGivenUpBeforeItBegan: a request that comes too late does not run, not even on a
// worker that would have taken it at once.
func TestGivenUpBeforeItBegan(t *testing.T) {
	modes(t, func(t *testing.T, m sched.Mode) {
		t.Helper()
		s := newScheduler(t, sched.Options[int64]{Partitions: 2, Mode: m})
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		ctx := yielding{ended}
		for range 100 {
			p := newProbe(nothing)
			p.req.One("a", sched.Create, p)
			if err := s.Do(ctx, &p.req); !errors.Is(err, context.Canceled) || errors.Is(err, sched.ErrUnknown) {
				t.Fatalf("%v, want it given up", err)
			}
			if err := <-p.ended; err == nil {
				t.Fatal("it ended as if it had run")
			}
		}
		if n := s.Stats().Ran; n != 0 {
			t.Errorf("%d requests ran", n)
		}
	})
}

func TestGivenUpBeforeItRan(t *testing.T) {
	modes(t, func(t *testing.T, m sched.Mode) {
		t.Helper()
		s := newScheduler(t, sched.Options[int64]{Partitions: 2, Mode: m, Place: sched.RoundRobin})
		release := occupy(t, s, m, "a")
		for _, keys := range [][]string{{"a"}, {"a", "b"}} {
			for _, access := range []sched.Access{sched.Share, sched.Create} {
				p := newProbe(nothing)
				p.req.Several(keys, access, p)
				ended, cancel := context.WithCancel(t.Context())
				ctx := &waited{Context: ended, waits: make(chan struct{})}
				got := make(chan error)
				go func() { got <- s.Do(ctx, &p.req) }()
				<-ctx.waits
				cancel()
				if err := <-got; !errors.Is(err, context.Canceled) || errors.Is(err, sched.ErrUnknown) {
					t.Errorf("%v: %v, want it given up", keys, err)
				}
				defer func() {
					if err := <-p.ended; err == nil || p.ran != 0 {
						t.Errorf("%v: ran %d times, ended with %v", keys, p.ran, err)
					}
				}()
			}
		}
		release()
	})
}

func TestGivenUpWhileItRan(t *testing.T) {
	s := newScheduler(t, sched.Options[int64]{Partitions: 2, Mode: sched.Workers})
	inside, leave := make(chan struct{}), make(chan struct{})
	p := newProbe(func(r *sched.Request[int64]) {
		close(inside)
		<-leave
		r.Entries()[0].Present = true
	})
	p.req.Several([]string{"a", "b", "c"}, sched.Create, p)
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan error)
	go func() { got <- s.Do(ctx, &p.req) }()
	<-inside
	cancel()
	if err := <-got; !errors.Is(err, context.Canceled) || !errors.Is(err, sched.ErrUnknown) {
		t.Errorf("%v, want an unknown outcome", err)
	}
	close(leave)
	if err := <-p.ended; err != nil {
		t.Errorf("ended with %v, and had run", err)
	}
}

// A job that panics, or ends its goroutine, fails alone: its partitions go on.
func TestPanic(t *testing.T) {
	modes(t, func(t *testing.T, m sched.Mode) {
		t.Helper()
		s := newScheduler(t, sched.Options[int64]{Partitions: 3, Mode: m, Place: sched.RoundRobin})
		for _, keys := range [][]string{{"a"}, {"a", "b", "c"}} {
			for name, run := range map[string]func(*sched.Request[int64]){
				"panic": func(*sched.Request[int64]) { panic("broken") },
				"exit":  func(*sched.Request[int64]) { runtime.Goexit() },
			} {
				if m == sched.Callers && name == "exit" {
					gone := make(chan struct{})
					go func() {
						defer close(gone)
						p := newProbe(run)
						p.req.Several(keys, sched.Create, p)
						_ = s.Do(context.Background(), &p.req) // ends this goroutine
						t.Error("Do returned")
					}()
					<-gone
				} else {
					p := newProbe(run)
					p.req.Several(keys, sched.Create, p)
					var failed *sched.PanicError
					if err := s.Do(t.Context(), &p.req); !errors.As(err, &failed) || len(failed.Stack) == 0 {
						t.Errorf("%s: %v", name, err)
					}
				}
				p := newProbe(nothing)
				p.req.Several(keys, sched.Create, p)
				if err := s.Do(t.Context(), &p.req); err != nil {
					t.Errorf("after a %s: %v", name, err)
				}
			}
		}
	})
}

func TestHold(t *testing.T) {
	modes(t, func(t *testing.T, m sched.Mode) {
		t.Helper()
		s := newScheduler(t, sched.Options[int64]{Partitions: 2, Mode: m})
		later := newProbe(nothing)
		got := make(chan error)
		s.Hold(func() {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			p := newProbe(nothing)
			p.req.One("a", sched.Create, p)
			if err := s.Do(ctx, &p.req); !errors.Is(err, context.Canceled) {
				t.Errorf("a request whose context has ended: %v", err)
			}
			if err := <-p.ended; err == nil {
				t.Error("it ended as if it had run")
			}
			if m != sched.Callers {
				if err := s.TryStart(&p.req); !errors.Is(err, sched.ErrFull) {
					t.Errorf("a try: %v", err)
				}
			}
			later.req.One("a", sched.Create, later)
			go func() { got <- s.Do(t.Context(), &later.req) }()
			s.Switch(nil)
			if p.ran != 0 || s.Stats().Ran != 0 {
				t.Error("a request ran")
			}
		})
		if err := <-got; err != nil || later.ran != 1 {
			t.Errorf("after the hold: ran %d times, %v", later.ran, err)
		}
	})
}

// Close waits for the requests handed over, and refuses new requests.
func TestCloseDrains(t *testing.T) {
	s := newScheduler(t, sched.Options[int64]{Partitions: 3, Mode: sched.Workers})
	release := occupy(t, s, sched.Workers, "a")
	var probes []*probe
	for i := range 100 {
		p := newProbe(nothing)
		p.req.Several([]string{"a", fmt.Sprint(i)}, sched.Create, p)
		if err := s.Start(t.Context(), &p.req); err != nil {
			t.Fatal(err)
		}
		probes = append(probes, p)
	}
	closed := make(chan struct{})
	go func() { s.Close(); close(closed) }()
	release()
	<-closed
	for _, p := range probes {
		if err := <-p.ended; err != nil || p.ran != 1 {
			t.Errorf("ran %d times, %v", p.ran, err)
		}
	}
	p := newProbe(nothing)
	p.req.One("a", sched.Share, p)
	if err := s.Do(t.Context(), &p.req); !errors.Is(err, sched.ErrClosed) {
		t.Errorf("a request after the close: %v", err)
	}
	s.Close()
}

// A queue keeps its bound exactly, and callers who wait for room give up in time.
func TestQueueBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bound = 3
		s := newScheduler(t, sched.Options[int64]{Partitions: 2, Mode: sched.Workers, Queue: bound})
		release := occupy(t, s, sched.Workers, "a")
		var probes []*probe
		start := func(ctx context.Context) error {
			p := newProbe(nothing)
			p.req.One("a", sched.Create, p)
			err := s.Start(ctx, &p.req)
			if err == nil {
				probes = append(probes, p)
			}
			return err
		}
		for range bound {
			if err := start(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		p := newProbe(nothing)
		p.req.Several([]string{"a", "b", "c", "d"}, sched.Create, p)
		if err := s.TryStart(&p.req); !errors.Is(err, sched.ErrFull) {
			t.Errorf("one more: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := start(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("one more that waits: %v", err)
		}
		if n := s.Stats().Queued; n[0]+n[1] != bound {
			t.Errorf("%v wait, want %d", n, bound)
		}
		got := make(chan error)
		go func() { got <- start(t.Context()) }()
		synctest.Wait()
		release()
		if err := <-got; err != nil {
			t.Errorf("one that waited: %v", err)
		}
		for _, p := range probes {
			if err := <-p.ended; err != nil || p.ran != 1 {
				t.Errorf("ran %d times, %v", p.ran, err)
			}
		}
	})
}

// A caller who waits for room is told of it, also if room comes while the caller looks.
func TestShortQueuesMove(t *testing.T) {
	const clients, rounds = 2, 50_000
	s := newScheduler(t, sched.Options[int64]{Partitions: 2, Mode: sched.Workers, Queue: 1})
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			ps := [3]*probe{newProbe(nothing), newProbe(nothing), newProbe(nothing)}
			for i := range rounds {
				p := ps[i%3]
				if i > 2 {
					if err := <-p.ended; err != nil {
						t.Error(err)
					}
				}
				p.req.One("a", sched.Create, p)
				if err := s.Start(context.Background(), &p.req); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}
