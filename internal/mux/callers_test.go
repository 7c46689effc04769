package mux

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestFateOfABrokenStream: a call on a stream that ends is unsent only if the server
// provably began nothing of it. The proof is in the server's earlier messages and in the
// end of the stream.
func TestFateOfABrokenStream(t *testing.T) {
	const (
		silent   = "nothing was heard"
		window   = "a window was heard"
		answered = "an answer was heard, and no window"
	)
	for name, tc := range map[string]struct {
		heard string
		end   error
		want  Fate
	}{
		"not let in":                  {silent, apierr.Unauthenticated.GRPCStatus().Err(), Unsent},
		"not permitted":               {silent, apierr.PermissionDenied.GRPCStatus().Err(), Unsent},
		"taken back":                  {window, apierr.Unauthenticated.GRPCStatus().Err(), Lost},
		"narrowed":                    {window, apierr.PermissionDenied.GRPCStatus().Err(), Lost},
		"taken back after an answer":  {answered, apierr.Unauthenticated.GRPCStatus().Err(), Lost},
		"narrowed after an answer":    {answered, apierr.PermissionDenied.GRPCStatus().Err(), Lost},
		"stopping":                    {answered, apierr.ShuttingDown.GRPCStatus().Err(), Unsent},
		"overloaded":                  {answered, apierr.Overloaded.GRPCStatus().Err(), Lost},
		"slowed down":                 {window, apierr.RateLimited.GRPCStatus().Err(), Lost},
		"broken":                      {silent, errBroken, Lost},
		"no Stream after an answer":   {answered, status.Error(codes.Unimplemented, "no such method"), Lost},
		"no Stream after a window":    {window, status.Error(codes.Unimplemented, "no such method"), Lost},
		"without a reason, not heard": {silent, status.Error(codes.PermissionDenied, "a proxy"), Lost},
	} {
		t.Run(name, func(t *testing.T) {
			told := uint32(0)
			if tc.heard == window {
				told = 10
			}
			bubble(t, told, func(r rig) {
				t, m, conn := r.t, r.m, r.conn
				if tc.heard == answered {
					first := start(t.Context(), m, "first")
					s := conn.stream()
					s.grant(s.taken()[0].GetCalls()...)
					want(t, "first", first, Answered, nil)
				}
				handed := start(t.Context(), m, "handed")
				s := conn.stream()
				if n := len(s.taken()); n != 1 {
					t.Fatalf("%d messages, want 1", n)
				}
				s.end(tc.end)
				want(t, "handed over", handed, tc.want, tc.end)
			})
		})
	}
}

// TestAnswerGivenTwice: a second answer to a call is no answer to the next call with
// the same slot.
func TestAnswerGivenTwice(t *testing.T) {
	bubble(t, 1, func(r rig) {
		t, m, conn := r.t, r.m, r.conn
		a := start(t.Context(), m, "a")
		s := conn.stream()
		first := s.taken()[0].GetCalls()
		s.grant(first...)
		want(t, "a", a, Answered, nil)
		b := start(t.Context(), m, "b")
		if n := len(s.taken()); n != 1 {
			t.Fatalf("%d messages, want 1", n)
		}
		s.grant(first...)
		synctest.Wait()
		if o := <-b; o.fate != Lost || o.err == nil {
			t.Errorf("b: %v, %v, told %v; want lost, and an error", o.fate, o.err, o.result)
		}
	})
}

// TestDeadlineThatPasses: a call sent as its deadline passes still has a time-out of 1
// ms.
func TestDeadlineThatPasses(t *testing.T) {
	now := time.UnixMilli(1 << 40)
	for _, left := range []time.Duration{-time.Hour, -1, 0, time.Microsecond, time.Millisecond} {
		c := &call{deadline: now.Add(left)}
		if err := c.encode(operation("a")); err != nil {
			t.Fatal(err)
		}
		m := &samyav1.StreamRequest{}
		if err := m.UnmarshalVT(appendCall(nil, c, now)); err != nil {
			t.Fatal(err)
		}
		if got := m.GetCalls()[0].GetTimeoutMs(); got != 1 {
			t.Errorf("%v before the deadline the server is told %d ms, want 1", left, got)
		}
	}
}

// unaryConn is a connection with the same answer to all calls.
type unaryConn struct {
	grpc.ClientConnInterface
	reached bool
	err     error
}

func (c unaryConn) Invoke(_ context.Context, _ string, _, _ any, opts ...grpc.CallOption) error {
	for _, o := range opts {
		if p, ok := o.(grpc.PeerCallOption); ok && c.reached {
			*p.PeerAddr = peer.Peer{Addr: &net.TCPAddr{}}
		}
	}
	return c.err
}

// TestFateOfUnaryCalls: a status is an answer only if it is provably the server's own. A
// call without an answer is unsent only if there was no connection.
func TestFateOfUnaryCalls(t *testing.T) {
	foreign, err := status.New(codes.Unavailable, "a proxy").WithDetails(&errdetails.ErrorInfo{Domain: "example.org", Reason: "SHUTTING_DOWN"})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reached bool
		err     error
		want    Fate
	}{
		"answered":                      {true, nil, Answered},
		"a failure with a reason":       {true, apierr.Overloaded.GRPCStatus().Err(), Answered},
		"a method that is not known":    {true, status.Error(codes.Unimplemented, "no such method"), Answered},
		"unavailable":                   {true, status.Error(codes.Unavailable, "connection reset"), Lost},
		"unavailable, not reached":      {false, status.Error(codes.Unavailable, "connection refused"), Unsent},
		"a reason of somebody else":     {true, foreign.Err(), Lost},
		"given up":                      {true, status.Error(codes.Canceled, "context canceled"), Lost},
		"out of time":                   {true, status.Error(codes.DeadlineExceeded, "context deadline exceeded"), Lost},
		"out of time, not reached":      {false, status.Error(codes.DeadlineExceeded, "context deadline exceeded"), Unsent},
		"internal":                      {true, status.Error(codes.Internal, "bad frame"), Lost},
		"refused by a proxy on the way": {true, status.Error(codes.PermissionDenied, "a proxy"), Lost},
	} {
		if got, _ := Invoke(t.Context(), unaryConn{reached: tc.reached, err: tc.err}, "m", nil, nil); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// TestAnswersAsCallersGiveUp: many callers give up just as their answers arrive. Each is
// told its own answer or that it gave up. A later call in the same memory is told nothing
// of an earlier call.
func TestAnswersAsCallersGiveUp(t *testing.T) {
	const callers, rounds = 8, 4000
	conn := &fakeConn{window: callers}
	m := New(conn, Options{})
	// No call takes longer than this, whatever the machine does beside.
	all, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	var givesUp sync.Map // the cancel function of each call, by its id
	served := make(chan struct{})
	serve := func() {
		defer close(served)
		conn.mu.Lock()
		s := conn.current
		conn.mu.Unlock()
		for {
			select {
			case r := <-s.in:
				for _, c := range r.GetCalls() {
					cancel, waits := givesUp.Load(c.GetOperation().GetAcquire().GetRequestId())
					switch {
					case !waits:
					case rand.N(2) == 0:
						go cancel.(context.CancelFunc)()
					default:
						cancel.(context.CancelFunc)()
					}
					s.grant(c)
				}
			case <-s.ctx.Done():
				return
			}
		}
	}
	// The first call opens the stream.
	givesUp.Store("first", context.CancelFunc(func() {}))
	first := start(all, m, "first")
	for {
		conn.mu.Lock()
		opened := conn.current != nil
		conn.mu.Unlock()
		if opened {
			break
		}
		runtime.Gosched()
	}
	go serve()
	if o := <-first; o.err != nil {
		t.Fatal(o.err)
	}
	var answered, gaveUp atomic.Int64
	var wait sync.WaitGroup
	for caller := range callers {
		wait.Go(func() {
			for i := range rounds {
				id := fmt.Sprintf("%d-%d", caller, i)
				ctx, cancel := context.WithCancel(all)
				givesUp.Store(id, cancel)
				r, fate, err := m.Do(ctx, operation(id))
				cancel()
				givesUp.Delete(id)
				switch {
				case fate == Answered && err == nil && r.GetAcquire().GetRequestId() == id:
					answered.Add(1)
				case errors.Is(err, context.Canceled) && all.Err() == nil:
					gaveUp.Add(1)
				default:
					t.Errorf("%s: %v, %v, told the answer of %q", id, fate, err, r.GetAcquire().GetRequestId())
					stop()
					return
				}
			}
		})
	}
	wait.Wait()
	if !t.Failed() && (answered.Load() == 0 || gaveUp.Load() == 0) {
		t.Errorf("%d calls were answered and %d gave up: they did not meet", answered.Load(), gaveUp.Load())
	}
	closed := make(chan error, 1)
	go func() { closed <- m.Close() }()
	select {
	case err := <-closed:
		<-served
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Error("it is not closed: somebody waits for a call that nobody waits for")
	}
}

// TestWindowIsToldOnce: the first answer sets the window, whatever later answers say.
func TestWindowIsToldOnce(t *testing.T) {
	bubble(t, 1, func(r rig) {
		t, m, conn := r.t, r.m, r.conn
		a := start(t.Context(), m, "a")
		s := conn.stream()
		if n := len(s.taken()); n != 1 {
			t.Fatalf("%d messages, want 1", n)
		}
		b := start(t.Context(), m, "b")
		s.tell(&samyav1.StreamResponse{Window: 10})
		c := start(t.Context(), m, "c")
		if sent := s.taken(); len(sent) != 0 {
			t.Errorf("sent %v beyond the window", sent)
		}
		for what, done := range map[string]<-chan outcome{"a": a, "b": b, "c": c} {
			pending(t, what, done)
		}
	})
}
