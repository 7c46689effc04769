package mux

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// errBroken is why streams break here.
var errBroken = status.Error(codes.Unavailable, "broken by the test")

type rig struct {
	t    *testing.T
	m    *Mux
	conn *fakeConn
}

// bubble runs a test in simulated time, with a Mux on a connection with the test as its
// server. synctest checks that nothing of a closed Mux is left running.
func bubble(t *testing.T, window uint32, f func(rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		conn := &fakeConn{window: window}
		m := New(conn, Options{})
		defer func() {
			if err := m.Close(); err != nil {
				t.Errorf("closing: %v", err)
			}
			synctest.Wait()
		}()
		f(rig{t, m, conn})
	})
}

func TestAnswer(t *testing.T) {
	bubble(t, 10, func(r rig) {
		t, m, conn := r.t, r.m, r.conn

		a, b := start(t.Context(), m, "a"), start(t.Context(), m, "b")
		s := conn.stream()
		var calls []*samyav1.Call
		for _, msg := range s.taken() {
			calls = append(calls, msg.GetCalls()...)
		}
		if len(calls) != 2 {
			t.Fatalf("%d calls arrived, want 2", len(calls))
		}
		// In the opposite order.
		s.grant(calls[1])
		s.grant(calls[0])
		for id, done := range map[string]<-chan outcome{"a": a, "b": b} {
			if got := want(t, id, done, Answered, nil).result.GetAcquire().GetRequestId(); got != id {
				t.Errorf("call %s is told the answer of %q", id, got)
			}
		}
	})
}

func TestCallsGatherWhileAMessageIsSent(t *testing.T) {
	bubble(t, 100, func(r rig) {
		t, m, conn := r.t, r.m, r.conn

		first := start(t.Context(), m, "first")
		s := conn.stream()
		s.grant(s.taken()[0].GetCalls()...)
		want(t, "first", first, Answered, nil)

		flow := s.stall()
		start(t.Context(), m, "held")
		synctest.Wait()
		for i := range 50 {
			start(t.Context(), m, fmt.Sprint(i))
		}
		synctest.Wait()
		flow()
		var sizes []int
		for _, msg := range s.taken() {
			sizes = append(sizes, len(msg.GetCalls()))
		}
		if fmt.Sprint(sizes) != "[1 50]" {
			t.Errorf("messages of %v calls, want [1 50]", sizes)
		}
	})
}

// TestCallsGatherWhileCallersAreWoken: calls wait for callers that are being woken
// with their answers, but not when they are many.
func TestCallsGatherWhileCallersAreWoken(t *testing.T) {
	bubble(t, 100, func(r rig) {
		t, m, conn := r.t, r.m, r.conn

		first := start(t.Context(), m, "first")
		s := conn.stream()
		s.grant(s.taken()[0].GetCalls()...)
		want(t, "first", first, Answered, nil)
		if n := m.telling.Load(); n != 0 {
			t.Fatalf("%d callers are being woken, want none", n)
		}

		m.telling.Store(2)
		sent := func(calls int) []int {
			for i := range calls {
				start(t.Context(), m, fmt.Sprint(i))
			}
			synctest.Wait()
			var sizes []int
			for _, msg := range s.taken() {
				sizes = append(sizes, len(msg.GetCalls()))
			}
			return sizes
		}
		if got := sent(manyCalls - 1); got != nil {
			t.Errorf("messages of %v calls while callers are woken, want none", got)
		}
		if got := sent(1); fmt.Sprint(got) != fmt.Sprint([]int{manyCalls}) {
			t.Errorf("messages of %v calls, want one of %d", got, manyCalls)
		}
		if got := sent(3); got != nil {
			t.Errorf("messages of %v calls while callers are woken, want none", got)
		}
		m.told()
		if got := sent(0); got != nil {
			t.Errorf("messages of %v calls before the last caller is woken, want none", got)
		}
		m.told()
		if got := sent(0); fmt.Sprint(got) != "[3]" {
			t.Errorf("messages of %v calls once the last caller is woken, want [3]", got)
		}
	})
}

func TestMessagesAreBounded(t *testing.T) {
	bubble(t, 10_000, func(r rig) {
		t, m, conn := r.t, r.m, r.conn

		first := start(t.Context(), m, "first")
		s := conn.stream()
		s.grant(s.taken()[0].GetCalls()...)
		want(t, "first", first, Answered, nil)
		flow := s.stall()
		start(t.Context(), m, "held")
		synctest.Wait()
		const n = 2000
		for i := range n {
			start(t.Context(), m, fmt.Sprintf("%0100d", i))
		}
		synctest.Wait()
		flow()
		got := 0
		for _, msg := range s.taken() {
			got += len(msg.GetCalls())
			if size := proto.Size(msg); size > maxMessage {
				t.Errorf("a message of %d bytes, at most %d", size, maxMessage)
			}
		}
		if got != n+1 {
			t.Errorf("%d calls arrived, want %d", got, n+1)
		}
	})
}

func TestWindow(t *testing.T) {
	bubble(t, 3, func(r rig) {
		t, m, conn := r.t, r.m, r.conn

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var done []<-chan outcome
		for i := range 5 {
			done = append(done, start(ctx, m, fmt.Sprint(i)))
			synctest.Wait()
		}
		s := conn.stream()
		var calls []*samyav1.Call
		for _, msg := range s.taken() {
			calls = append(calls, msg.GetCalls()...)
		}
		if len(calls) != 3 {
			t.Fatalf("%d calls without an answer, with a window of 3", len(calls))
		}
		s.grant(calls[0])
		want(t, "0", done[0], Answered, nil)
		next := s.taken()
		if len(next) != 1 || next[0].GetCalls()[0].GetOperation().GetAcquire().GetRequestId() != "3" {
			t.Fatalf("room was made for one, and %v was sent", next)
		}
		// A call without room honours its context, and was not sent.
		time.Sleep(time.Second) //nolint:forbidigo // simulated time
		want(t, "4", done[4], Unsent, context.DeadlineExceeded)
		want(t, "3", done[3], Lost, context.DeadlineExceeded)
	})
}

// TestUnknownWindow: until the server tells its window, a single call is sent.
func TestUnknownWindow(t *testing.T) {
	bubble(t, 0, func(r rig) {
		t, m, conn := r.t, r.m, r.conn

		a := start(t.Context(), m, "a")
		synctest.Wait()
		b := start(t.Context(), m, "b")
		s := conn.stream()
		got := s.taken()
		if len(got) != 1 || len(got[0].GetCalls()) != 1 {
			t.Fatalf("sent %v, want one call", got)
		}
		s.tell(&samyav1.StreamResponse{Window: 2})
		if more := s.taken(); len(more) != 1 {
			t.Fatalf("sent %v after a window of 2 was told, want one more", more)
		}
		pending(t, "a", a)
		pending(t, "b", b)
	})
}

func TestCancel(t *testing.T) {
	bubble(t, 1, func(r rig) {
		t, m, conn := r.t, r.m, r.conn

		ctx, cancel := context.WithCancel(t.Context())
		a := start(ctx, m, "a")
		s := conn.stream()
		sent := s.taken()[0].GetCalls()[0]
		b := start(t.Context(), m, "b")
		synctest.Wait()
		cancel()
		want(t, "a", a, Lost, context.Canceled)
		msgs := s.taken()
		if len(msgs) != 1 || len(msgs[0].GetCancels()) != 1 || msgs[0].GetCancels()[0] != sent.GetTag() || len(msgs[0].GetCalls()) > 0 {
			t.Fatalf("sent %v, want the cancel alone: the call counts towards the window until it is answered", msgs)
		}
		s.grant(sent)
		calls := s.taken()
		if len(calls) != 1 {
			t.Fatalf("sent %v, want b", calls)
		}
		s.grant(calls[0].GetCalls()...)
		if got := want(t, "b", b, Answered, nil).result.GetAcquire().GetRequestId(); got != "b" {
			t.Errorf("b is told the answer of %q", got)
		}
	})
}

func TestDeadlineIsTold(t *testing.T) {
	bubble(t, 10, func(r rig) {
		t, m, conn := r.t, r.m, r.conn

		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		start(ctx, m, "a")
		s := conn.stream()
		if got := s.taken()[0].GetCalls()[0].GetTimeoutMs(); got != 1500 {
			t.Errorf("timeout_ms %d, want 1500", got)
		}
		start(t.Context(), m, "b")
		if got := s.taken()[0].GetCalls()[0].GetTimeoutMs(); got != 0 {
			t.Errorf("timeout_ms %d of a call without a deadline, want 0", got)
		}
	})
}

func TestEndedContext(t *testing.T) {
	bubble(t, 1, func(r rig) {
		t, m, conn := r.t, r.m, r.conn

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		want(t, "a", start(ctx, m, "a"), Unsent, context.Canceled)
		if conn.opened > 0 {
			t.Error("a stream was begun for it")
		}
	})
}

// TestImpossibleAnswers: an answer that makes no sense ends the stream, as its meaning is
// not known.
func TestImpossibleAnswers(t *testing.T) {
	for name, answer := range map[string]func(s *fakeStream, c *samyav1.Call){
		"of no call": func(s *fakeStream, c *samyav1.Call) {
			s.tell(&samyav1.StreamResponse{Replies: []*samyav1.Reply{{Tag: c.GetTag() + 1}}})
		},
		"of an earlier use of the tag": func(s *fakeStream, c *samyav1.Call) {
			s.tell(&samyav1.StreamResponse{Replies: []*samyav1.Reply{{Tag: c.GetTag() - 1<<32}}})
		},
		"no message": func(s *fakeStream, _ *samyav1.Call) { s.out <- []byte{0xff} },
		"empty": func(s *fakeStream, c *samyav1.Call) {
			s.tell(&samyav1.StreamResponse{Replies: []*samyav1.Reply{{Tag: c.GetTag()}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, func(r rig) {
				t, m, conn := r.t, r.m, r.conn

				a := start(t.Context(), m, "a")
				s := conn.stream()
				answer(s, s.taken()[0].GetCalls()[0])
				synctest.Wait()
				if o := <-a; o.fate != Lost || o.err == nil {
					t.Errorf("%v, %v; want lost, and an error", o.fate, o.err)
				}
			})
		})
	}
}

func TestOperationsThatCannotBeSent(t *testing.T) {
	bubble(t, 10, func(r rig) {
		t, m, conn := r.t, r.m, r.conn

		other := start(t.Context(), m, "other")
		s := conn.stream()
		want(t, "no UTF-8", start(t.Context(), m, "\xff"), Unsent, apierr.InvalidField)
		long := make([]byte, maxOperation+1)
		for i := range long {
			long[i] = 'x'
		}
		want(t, "too large", start(t.Context(), m, string(long)), Unsent, apierr.BodyTooLarge)
		msgs := s.taken()
		if len(msgs) != 1 {
			t.Fatalf("sent %v", msgs)
		}
		s.grant(msgs[0].GetCalls()...)
		want(t, "other", other, Answered, nil)
	})
}

func TestDoBy(t *testing.T) {
	bubble(t, 1, func(r rig) {
		t, m, conn := r.t, r.m, r.conn
		by := func(d time.Duration) <-chan outcome {
			done := make(chan outcome, 1)
			go func() {
				r, f, err := m.DoBy(t.Context(), operation("a"), time.Now().Add(d))
				done <- outcome{r, f, err}
			}()
			return done
		}
		handed := by(time.Second)
		s := conn.stream()
		call := s.taken()[0].GetCalls()[0]
		if call.GetTimeoutMs() != 1000 {
			t.Errorf("timeout_ms %d, want 1000", call.GetTimeoutMs())
		}
		waits := by(time.Second)
		time.Sleep(time.Second) //nolint:forbidigo // simulated time
		want(t, "handed over", handed, Lost, context.DeadlineExceeded)
		want(t, "in the queue", waits, Unsent, context.DeadlineExceeded)
		// A call that is used again does not keep its earlier time.
		again := start(t.Context(), m, "again")
		s.grant(call)
		msgs := s.taken()
		time.Sleep(time.Minute) //nolint:forbidigo // simulated time
		pending(t, "again", again)
		s.grant(msgs[len(msgs)-1].GetCalls()...)
		want(t, "again", again, Answered, nil)
	})
}

func TestDoWhile(t *testing.T) {
	bubble(t, 1, func(r rig) {
		t, m, conn := r.t, r.m, r.conn
		gone := make(chan struct{})
		while := func() <-chan outcome {
			done := make(chan outcome, 1)
			go func() {
				r, f, err := m.DoWhile(t.Context(), operation("a"), time.Time{}, gone)
				done <- outcome{r, f, err}
			}()
			return done
		}
		handed := while()
		s := conn.stream()
		if n := len(s.taken()); n != 1 {
			t.Fatalf("%d messages, want 1", n)
		}
		waits := while()
		pending(t, "handed over", handed)
		pending(t, "in the queue", waits)
		close(gone)
		want(t, "handed over", handed, Lost, ErrGone)
		want(t, "in the queue", waits, Unsent, ErrGone)
	})
}
