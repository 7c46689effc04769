package mux

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/samya-db/samya/internal/apierr"
)

func TestBreak(t *testing.T) {
	for name, tc := range map[string]struct{ told, seen error }{
		"with an error":    {errBroken, errBroken},
		"without an error": {io.EOF, status.Error(codes.Unavailable, "the server ended the stream")},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, func(r rig) {
				t, m, conn := r.t, r.m, r.conn

				handed := start(t.Context(), m, "handed")
				s := conn.stream()
				s.taken()
				waits := start(t.Context(), m, "waits")
				synctest.Wait()
				s.end(tc.told)
				want(t, "handed over", handed, Lost, tc.seen)
				want(t, "in the queue", waits, Unsent, tc.seen)

				again := start(t.Context(), m, "again")
				s = conn.stream()
				s.grant(s.taken()[0].GetCalls()...)
				want(t, "on a new stream", again, Answered, nil)
			})
		})
	}
}

func TestSlowServer(t *testing.T) {
	bubble(t, 10, func(r rig) {
		t, m, conn := r.t, r.m, r.conn

		first := start(t.Context(), m, "first")
		s := conn.stream()
		s.grant(s.taken()[0].GetCalls()...)
		want(t, "first", first, Answered, nil)
		s.stall()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		handed := start(ctx, m, "handed")
		synctest.Wait()
		waits := start(ctx, m, "waits")
		pending(t, "waits", waits)
		time.Sleep(time.Second) //nolint:forbidigo // simulated time
		want(t, "handed over", handed, Lost, context.DeadlineExceeded)
		want(t, "in the queue", waits, Unsent, context.DeadlineExceeded)
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.queue.first != nil {
			t.Error("calls that were given up stay in the queue")
		}
	})
}

func TestNoStream(t *testing.T) {
	bubble(t, 1, func(r rig) {
		t, m, conn := r.t, r.m, r.conn

		conn.refuse = errBroken
		want(t, "a", start(t.Context(), m, "a"), Unsent, errBroken)
		want(t, "b", start(t.Context(), m, "b"), Unsent, errBroken)
		time.Sleep(time.Minute) //nolint:forbidigo // simulated time
		if conn.opened != 2 {
			t.Errorf("%d streams were begun for two calls", conn.opened)
		}
	})
}

func TestClose(t *testing.T) {
	bubble(t, 1, func(r rig) {
		t, m, conn := r.t, r.m, r.conn

		handed := start(t.Context(), m, "handed")
		conn.stream().taken()
		waits := start(t.Context(), m, "waits")
		synctest.Wait()
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		want(t, "handed over", handed, Lost, ErrClosed)
		want(t, "in the queue", waits, Unsent, ErrClosed)
		want(t, "later", start(t.Context(), m, "later"), Unsent, ErrClosed)
	})
}

func TestCloseUnused(t *testing.T) {
	if err := New(&fakeConn{}, Options{}).Close(); err != nil {
		t.Error(err)
	}
}

// TestCloseWhileSendStalls: a server that cannot be reached does not hold up Close.
func TestCloseWhileSendStalls(t *testing.T) {
	bubble(t, 10, func(r rig) {
		t, m, conn := r.t, r.m, r.conn

		first := start(t.Context(), m, "first")
		s := conn.stream()
		s.grant(s.taken()[0].GetCalls()...)
		want(t, "first", first, Answered, nil)
		s.stall()
		handed := start(t.Context(), m, "handed")
		synctest.Wait()
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		want(t, "handed over", handed, Lost, ErrClosed)
	})
}

func TestFate(t *testing.T) {
	if got := fmt.Sprint(Unsent, Lost, Answered); got != "unsent lost answered" {
		t.Error(got)
	}
	if errors.Is(ErrClosed, errNoStream) {
		t.Error("two errors are one")
	}
}

func TestBreakByTheClient(t *testing.T) {
	bubble(t, 1, func(r rig) {
		t, m, conn := r.t, r.m, r.conn
		m.Break(errBroken) // There is none yet.
		handed := start(t.Context(), m, "handed")
		conn.stream().taken()
		waits := start(t.Context(), m, "waits")
		synctest.Wait()
		m.Break(errBroken)
		want(t, "handed over", handed, Lost, errBroken)
		want(t, "in the queue", waits, Unsent, errBroken)
		again := start(t.Context(), m, "again")
		s := conn.stream()
		s.grant(s.taken()[0].GetCalls()...)
		want(t, "again", again, Answered, nil)
	})
}

// TestServerStops: a server that is about to stop answers the calls that it has begun.
// The other calls are unsent.
func TestServerStops(t *testing.T) {
	bubble(t, 1, func(r rig) {
		t, m, conn := r.t, r.m, r.conn
		handed := start(t.Context(), m, "handed")
		s := conn.stream()
		s.taken()
		why := apierr.ShuttingDown.GRPCStatus().Err()
		s.end(why)
		want(t, "handed over", handed, Unsent, why)
	})
}
