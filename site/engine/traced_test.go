package engine_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samya-db/samya/internal/spanctx"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/engine"
)

// TestTracedCalls: a traced call gets its commit, with times, and the wait of an acquire is told with
// the times of its begin and end.
func TestTracedCalls(t *testing.T) {
	bubble(t, func(t *testing.T) {
		t.Helper()
		w := &world{gate: make(chan error)}
		c, err := core.New(core.Config{
			Self: "a", Members: []core.SiteID{"a", "b", "c"}, Rand: rand.New(rand.NewPCG(1, 2)), Sync: 1 << 40, Traces: true,
		}, stored.Restored{
			Entities: []stored.Entity{{Name: "e", Generation: 1, Initial: 300, Limit: 300, Version: 1}},
			Books:    []stored.Books{{Name: "e", Generation: 1, Left: 100}},
		})
		if err != nil {
			t.Fatal(err)
		}
		type told struct {
			span         *event.Span
			began, ended time.Time
		}
		spans := make(chan told, 10)
		e := newEngine(t, engine.Config{Core: c, Store: w, Sender: w, Observer: w, Spanned: func(s *event.Span, began, ended time.Time, _ engine.Committed) {
			spans <- told{s, began, ended}
		}})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- e.Run(ctx) }()
		open := make(chan struct{})
		go func() {
			for {
				select {
				case <-time.After(3 * time.Millisecond): // a commit takes as long
				case <-open:
					close(w.gate)
					return
				}
				select {
				case w.gate <- nil:
				case <-open:
					close(w.gate)
					return
				}
			}
		}()

		var commit engine.Committed
		a, err := e.DoTraced(ctx, acquire(10, 1, 0), &commit)
		if err != nil || a.Code != answer.OK {
			t.Fatal(a, err)
		}
		if commit.Requests != 1 || commit.Began.IsZero() || commit.Ended.Sub(commit.Began) <= 0 {
			t.Errorf("the commit is told as %+v", commit)
		}
		began := time.Now()
		own := &spanctx.Context{Trace: [16]byte{1}, Span: [8]byte{1}}
		a, err = e.Do(ctx, func(call input.Call) input.Input {
			in := acquire(200, 2, 500)(call).(*input.Acquire)
			in.Trace = own
			return in
		})
		if err != nil || a.Code == answer.OK {
			t.Fatal(a, err)
		}
		synctest.Wait()
		for found := false; !found; {
			select {
			case s := <-spans:
				if s.span.Name != event.WaitSpan {
					continue
				}
				found = true
				if waited := s.ended.Sub(s.began); s.began.Before(began) || s.ended.After(time.Now()) || waited < 400*time.Millisecond || *s.span.Parent != *own {
					t.Errorf("the wait is told as %+v, of %v", s.span, waited)
				}
			default:
				t.Fatal("no wait is told")
			}
		}
		cancel()
		close(open)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
