package mux

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestAnswersAheadOfAnImpossibleOne: a message with an answer to no call ends the stream.
// Callers with answers ahead of it are told their answers, and the other callers that
// their answers are lost.
func TestAnswersAheadOfAnImpossibleOne(t *testing.T) {
	bubble(t, 10, func(r rig) {
		t, m, conn := r.t, r.m, r.conn

		calls := make(map[string]<-chan outcome)
		tags := make(map[string]*samyav1.Call)
		var s *fakeStream
		for _, id := range []string{"a", "b", "c"} {
			calls[id] = start(t.Context(), m, id)
			s = conn.stream()
			for _, message := range s.taken() {
				for _, c := range message.GetCalls() {
					tags[c.GetOperation().GetAcquire().GetRequestId()] = c
				}
			}
		}
		s.tell(&samyav1.StreamResponse{Replies: []*samyav1.Reply{
			{Tag: tags["a"].GetTag(), Result: &samyav1.Result{Result: &samyav1.Result_Acquire{Acquire: &samyav1.AcquireResponse{RequestId: "a"}}}},
			{Tag: 1 << 60},
			{Tag: tags["b"].GetTag(), Result: &samyav1.Result{Result: &samyav1.Result_Acquire{Acquire: &samyav1.AcquireResponse{RequestId: "b"}}}},
		}})
		if o := want(t, "ahead", calls["a"], Answered, nil); o.result.GetAcquire().GetRequestId() != "a" {
			t.Errorf("a is told %v", o.result)
		}
		for _, id := range []string{"b", "c"} {
			synctest.Wait()
			if o := <-calls[id]; o.fate != Lost || o.err == nil {
				t.Errorf("%s: %v, %v; want lost, and an error", id, o.fate, o.err)
			}
		}
		// The next stream is as good as any.
		d := start(t.Context(), m, "d")
		s = conn.stream()
		s.grant(s.taken()[0].GetCalls()...)
		want(t, "on the next stream", d, Answered, nil)
	})
}

// silent is a connection to a server that has no streams and answers no unary call.
type silent struct{ *fakeConn }

func (silent) Invoke(ctx context.Context, _ string, _, _ any, _ ...grpc.CallOption) error {
	<-ctx.Done()
	return status.FromContextError(ctx.Err()).Err()
}

// TestUnaryCallsAreGivenUp: a call made by itself, as its server has no streams, ends
// with its time, its server or its caller like any other call. Another server may be
// behind the connection then: a stream is tried again.
func TestUnaryCallsAreGivenUp(t *testing.T) {
	for what, tc := range map[string]struct {
		by    time.Duration
		gone  time.Duration
		takes time.Duration
		want  error
	}{
		"the server is gone":                     {0, time.Second, time.Second, ErrGone},
		"the server is gone before its time":     {time.Minute, time.Second, time.Second, ErrGone},
		"its time is over before the server is":  {time.Second, time.Minute, time.Second, nil},
		"its time is over":                       {time.Second, 0, time.Second, nil},
		"the server is gone at once, at no time": {0, time.Nanosecond, time.Nanosecond, ErrGone},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn := silent{&fakeConn{}}
				m := New(conn, Options{})
				defer func() {
					if err := m.Close(); err != nil {
						t.Error(err)
					}
				}()
				for opened := 1; opened <= 2; opened++ {
					began := time.Now()
					var by time.Time
					if tc.by > 0 {
						by = began.Add(tc.by)
					}
					var gone chan struct{}
					if tc.gone > 0 {
						gone = make(chan struct{})
						timer := time.AfterFunc(tc.gone, func() { close(gone) })
						defer timer.Stop()
					}
					done := make(chan outcome, 1)
					go func() {
						r, f, err := m.DoWhile(t.Context(), operation("a"), by, gone)
						done <- outcome{r, f, err}
					}()
					s := conn.stream()
					if conn.opened != opened {
						t.Fatalf("%d streams were begun, want %d", conn.opened, opened)
					}
					s.end(status.Error(codes.Unimplemented, "no such method"))
					o := <-done
					if o.fate == Answered || o.err == nil || tc.want != nil && !errors.Is(o.err, tc.want) {
						t.Errorf("%v, %v; want %v", o.fate, o.err, tc.want)
					}
					if took := time.Since(began); took != tc.takes {
						t.Errorf("it takes %v, want %v", took, tc.takes)
					}
				}
			})
		})
	}
}
