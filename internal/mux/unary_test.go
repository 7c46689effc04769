package mux

import (
	"context"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// alone makes a call by itself, as its server has no streams.
func alone(t *testing.T, conn interface{ stream() *fakeStream }, m *Mux, op *samyav1.Operation) <-chan outcome {
	t.Helper()
	done := make(chan outcome, 1)
	go func() {
		r, f, err := m.Do(t.Context(), op)
		done <- outcome{r, f, err}
	}()
	conn.stream().end(status.Error(codes.Unimplemented, "no such method"))
	synctest.Wait()
	return done
}

// TestCloseEndsUnaryCalls: a call made by itself ends with the Mux, like any other call.
func TestCloseEndsUnaryCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := silent{&fakeConn{}}
		m := New(conn, Options{})
		done := alone(t, conn, m, operation("a"))
		pending(t, "a", done)
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select {
		case o := <-done:
			if o.fate == Answered || o.err != ErrClosed { //nolint:errorlint // the very error
				t.Errorf("%v, %v; want %v", o.fate, o.err, ErrClosed)
			}
		default:
			t.Fatal("it has not ended")
		}
	})
}

// TestNoOperationByItself: a call without an operation is sent to no server.
func TestNoOperationByItself(t *testing.T) {
	bubble(t, 0, func(r rig) {
		t, m, conn := r.t, r.m, r.conn
		want(t, "no operation", alone(t, conn, m, &samyav1.Operation{}), Unsent, apierr.InvalidField)
	})
}

// optioned is a connection that notes whether its calls have an option.
type optioned struct {
	*fakeConn
	streams, calls int
}

// waiting reports whether calls wait for a connection.
func waiting(opts []grpc.CallOption) bool {
	for _, o := range opts {
		if f, ok := o.(grpc.FailFastCallOption); ok && !f.FailFast {
			return true
		}
	}
	return false
}

func (c *optioned) NewStream(ctx context.Context, d *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if waiting(opts) {
		c.streams++
	}
	return c.fakeConn.NewStream(ctx, d, method, opts...)
}

func (c *optioned) Invoke(_ context.Context, _ string, _, _ any, opts ...grpc.CallOption) error {
	if waiting(opts) {
		c.calls++
	}
	return nil
}

// TestCallOptions: the options of the Mux hold for its streams, and for the unary calls
// in their stead.
func TestCallOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &optioned{fakeConn: &fakeConn{}}
		m := New(conn, Options{CallOptions: []grpc.CallOption{grpc.WaitForReady(true)}})
		want(t, "an acquire", alone(t, conn, m, operation("a")), Answered, nil)
		release := &samyav1.Operation{Operation: &samyav1.Operation_Release{Release: &samyav1.ReleaseRequest{}}}
		r, _, err := m.Do(t.Context(), release)
		if err != nil || r.GetRelease() == nil {
			t.Errorf("a release: %v, %v", r, err)
		}
		if conn.streams != 1 || conn.calls != 2 {
			t.Errorf("%d streams and %d calls have the options", conn.streams, conn.calls)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
}
