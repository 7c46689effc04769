package site_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/engine"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// fakeEngine answers calls when the test says so: each with the tokens that it asks for.
type fakeEngine struct {
	mu     sync.Mutex
	refuse error
	calls  []*engine.Call
	// cancelled are calls that must not be handed over again: the engine may still look
	// at their inputs. again counts the calls that were.
	cancelled map[*engine.Call]bool
	again     int
}

func (e *fakeEngine) Start(calls []*engine.Call) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.refuse != nil {
		return e.refuse
	}
	for _, c := range calls {
		if e.cancelled[c] {
			e.again++
		}
	}
	e.calls = append(e.calls, calls...)
	return nil
}

func (e *fakeEngine) Cancel(c *engine.Call) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.takeOut(c) {
		return false
	}
	if e.cancelled == nil {
		e.cancelled = make(map[*engine.Call]bool)
	}
	e.cancelled[c] = true
	return true
}

func (e *fakeEngine) takeOut(c *engine.Call) bool {
	for i, open := range e.calls {
		if open == c {
			e.calls = append(e.calls[:i], e.calls[i+1:]...)
			return true
		}
	}
	return false
}

// answer answers call i of the calls under way.
func (e *fakeEngine) answer(i int) { e.answerOne(func(int) int { return i }) }

// answerOne answers the call that pick names of the n under way. It reports whether there
// was a call: others may cancel calls until then.
func (e *fakeEngine) answerOne(pick func(n int) int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.calls) == 0 {
		return false
	}
	c := e.calls[pick(len(e.calls))]
	e.takeOut(c)
	a := answer.Answer{Code: answer.OK}
	switch in := c.Input.(type) {
	case *input.Acquire:
		a.Tokens = in.Tokens
	case *input.Release:
		a.Tokens = in.Tokens
	}
	receive(c, a, nil)
	return true
}

func (e *fakeEngine) underWay() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.calls)
}

// fakeRPC is a stream with the test as its caller. It takes a single message at a time.
type fakeRPC struct {
	grpc.BidiStreamingServer[samyav1.StreamRequest, samyav1.StreamResponse]
	t       *testing.T
	engine  *fakeEngine
	ctx     context.Context
	leave   context.CancelFunc
	closing chan struct{}
	in      chan *samyav1.StreamRequest
	out     chan *samyav1.StreamResponse
	err     chan error
}

func (f *fakeRPC) Context() context.Context { return f.ctx }

func (f *fakeRPC) Recv() (*samyav1.StreamRequest, error) {
	select {
	case r, ok := <-f.in:
		if !ok {
			return nil, io.EOF
		}
		return r, nil
	case <-f.ctx.Done():
		return nil, f.ctx.Err()
	}
}

func (f *fakeRPC) Send(r *samyav1.StreamResponse) error {
	// The memory of the message is used again after Send.
	select {
	case f.out <- proto.Clone(r).(*samyav1.StreamResponse):
		return nil
	case <-f.ctx.Done():
		return f.ctx.Err()
	}
}

// serve begins a stream with a window before an engine of the test's.
func serve(t *testing.T, window int) *fakeRPC {
	t.Helper()
	f := &fakeRPC{
		t: t, engine: &fakeEngine{}, closing: make(chan struct{}),
		in: make(chan *samyav1.StreamRequest), out: make(chan *samyav1.StreamResponse), err: make(chan error, 1),
	}
	f.ctx, f.leave = context.WithCancel(t.Context())
	go func() {
		f.err <- site.ServeStream(f.engine, window, f.closing, f)
		f.leave()
	}()
	if resp := <-f.out; resp.GetWindow() != uint32(window) || len(resp.GetReplies()) != 0 {
		t.Errorf("the first answer: %v", resp)
	}
	return f
}

// call makes a call. Its tokens are its tag.
func call(tag uint64, timeout time.Duration) *samyav1.Call {
	return &samyav1.Call{
		Tag: tag, TimeoutMs: uint32(timeout.Milliseconds()),
		Operation: acquireOf(&samyav1.AcquireRequest{Entity: "acme/vm", Tokens: int64(tag), RequestId: fmt.Sprint("id", tag)}),
	}
}

func (f *fakeRPC) calls(tags ...uint64) {
	r := &samyav1.StreamRequest{}
	for _, tag := range tags {
		r.Calls = append(r.Calls, call(tag, 0))
	}
	f.in <- r
	synctest.Wait()
}

// message returns the tags and results of the next message.
func (f *fakeRPC) message() map[uint64]string {
	f.t.Helper()
	synctest.Wait()
	got := map[uint64]string{}
	select {
	case resp := <-f.out:
		for _, r := range resp.GetReplies() {
			got[r.GetTag()] = ofResult(r.GetResult())
		}
	default:
	}
	return got
}

// gone has the caller go, and checks that nothing of the stream is left.
func (f *fakeRPC) gone() {
	f.t.Helper()
	f.leave()
	if err := <-f.err; !errors.Is(err, apierr.Canceled) && !errors.Is(err, context.Canceled) {
		f.t.Error(err)
	}
	if n := f.engine.underWay(); n != 0 {
		f.t.Errorf("%d calls wait on", n)
	}
	if f.engine.again != 0 {
		f.t.Errorf("%d calls that were cancelled were handed over again", f.engine.again)
	}
}

// TestStreamKeepsNothingOfBefore: calls are reused for later calls, but calls that were
// given up are not. Nothing of an earlier use stays, such as the caller's deadline.
func TestStreamKeepsNothingOfBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, 10)
		tag := uint64(0)
		begin := func(timeout time.Duration) uint64 {
			tag++
			f.in <- &samyav1.StreamRequest{Calls: []*samyav1.Call{call(tag, timeout)}}
			synctest.Wait()
			return tag
		}
		want := func(tag uint64, result string) {
			t.Helper()
			if got := f.message(); len(got) != 1 || got[tag] != result {
				t.Errorf("answered %v, want %s of %d", got, result, tag)
			}
		}
		answered := func(tag uint64) string { return fmt.Sprintf("acquired %d as id%d, 0 left", tag, tag) }
		for range 3 {
			// Answered in time, then used again without a bound.
			n := begin(time.Second)
			f.engine.answer(0)
			want(n, answered(n))
			n = begin(0)
			<-time.After(time.Minute)
			if under := f.engine.underWay(); under != 1 {
				t.Fatalf("a call without a bound was given up")
			}
			f.engine.answer(0)
			want(n, answered(n))
			// Given up by time, and by the caller.
			n = begin(time.Second)
			<-time.After(2 * time.Second)
			want(n, "OUTCOME_UNKNOWN")
			n = begin(0)
			f.in <- &samyav1.StreamRequest{Cancels: []uint64{n}}
			want(n, "OUTCOME_UNKNOWN")
			n = begin(0)
			f.engine.answer(0)
			want(n, answered(n))
		}
		f.gone()
	})
}

// TestStreamGathers: answers that come while a message waits to be taken go into the next
// message, and no answer waits for more.
func TestStreamGathers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, 10)
		f.calls(1, 2, 3, 4)
		if n := f.engine.underWay(); n != 4 {
			t.Fatalf("%d calls at the engine", n)
		}
		f.engine.answer(1)
		synctest.Wait()
		for range 3 {
			f.engine.answer(0)
		}
		if got := f.message(); len(got) != 1 || got[2] != "acquired 2 as id2, 0 left" {
			t.Errorf("the first message: %v", got)
		}
		if got := f.message(); len(got) != 3 || got[1] == "" || got[3] == "" || got[4] == "" {
			t.Errorf("the second message: %v", got)
		}
		close(f.in)
		if err := <-f.err; err != nil {
			t.Error(err)
		}
	})
}

// TestStreamWindow: calls count against the window until their answers have been sent. A
// stream with too many ends, and its waiting calls are given up.
func TestStreamWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, 4)
		f.calls(1, 2, 3, 4)
		f.engine.answer(0)
		synctest.Wait()
		// The first is about to be sent, the second has to wait for that.
		f.engine.answer(0)
		f.calls(5)
		if n := f.engine.underWay(); n != 3 {
			t.Fatalf("%d calls at the engine", n)
		}
		f.in <- &samyav1.StreamRequest{Calls: []*samyav1.Call{call(6, 0)}}
		synctest.Wait()
		if first, second := f.message(), f.message(); len(first)+len(second) != 2 {
			t.Errorf("messages before the end: %v, %v", first, second)
		}
		if err := <-f.err; !errors.Is(err, apierr.WindowExceeded) {
			t.Error(err)
		}
		if n := f.engine.underWay(); n != 0 {
			t.Errorf("%d calls wait on", n)
		}
	})
}

// TestStreamExpires: an overdue call is given up and answered, however late the engine
// is. Others wait on.
func TestStreamExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, 10)
		f.in <- &samyav1.StreamRequest{Calls: []*samyav1.Call{call(1, time.Hour), call(2, 0), call(3, 300*time.Millisecond), call(4, 100*time.Millisecond)}}
		began := time.Now()
		for _, want := range []struct {
			tag uint64
			at  time.Duration
		}{{4, 100 * time.Millisecond}, {3, 300 * time.Millisecond}, {1, time.Hour}} {
			resp := <-f.out
			if len(resp.GetReplies()) != 1 || resp.GetReplies()[0].GetTag() != want.tag || ofResult(resp.GetReplies()[0].GetResult()) != "OUTCOME_UNKNOWN" {
				t.Errorf("%v, want %d", resp, want.tag)
			}
			if took := time.Since(began); took < want.at || took > want.at+20*time.Millisecond {
				t.Errorf("call %d was given up after %v", want.tag, took)
			}
		}
		if n := f.engine.underWay(); n != 1 {
			t.Errorf("%d calls under way", n)
		}
		f.gone()
	})
}

// TestStreamBusy: calls that the engine does not take fail by themselves.
func TestStreamBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, 10)
		f.engine.refuse = engine.ErrBusy
		f.calls(1, 2)
		got := map[uint64]string{}
		for range 2 {
			maps.Copy(got, f.message())
		}
		if got[1] != "OVERLOADED" || got[2] != "OVERLOADED" {
			t.Error(got)
		}
		f.engine.refuse = nil
		f.calls(1)
		f.engine.answer(0)
		if got := f.message(); got[1] != "acquired 1 as id1, 0 left" {
			t.Error(got)
		}
		f.gone()
	})
}

// TestStreamEndsAtStop: nothing is begun once the site stops. Calls under way are
// answered before the stream ends.
func TestStreamEndsAtStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, 10)
		f.calls(1)
		close(f.closing)
		synctest.Wait()
		f.calls(2)
		if n := f.engine.underWay(); n != 1 {
			t.Errorf("%d calls under way", n)
		}
		f.engine.answer(0)
		if got := f.message(); len(got) != 1 || got[1] == "" {
			t.Errorf("the last message: %v", got)
		}
		if err := <-f.err; !errors.Is(err, apierr.ShuttingDown) {
			t.Error(err)
		}
	})
}

// TestStreamAnswersEachOnce: calls that are answered, cancelled and timed out in any
// order get exactly one answer each, their own.
func TestStreamAnswersEachOnce(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			f := serve(t, 64)
			open, answered := map[uint64]bool{}, 0
			next := uint64(1)
			take := func() {
				for tag, result := range f.message() {
					if own := fmt.Sprintf("acquired %d as id%d, 0 left", tag, tag); !open[tag] || result != own && result != "OUTCOME_UNKNOWN" {
						t.Fatalf("seed %d: call %d got %q, open %v", seed, tag, result, open[tag])
					}
					delete(open, tag)
					answered++
				}
			}
			for range 600 {
				switch {
				case rng.IntN(4) == 0 && f.engine.answerOne(rng.IntN):
				case rng.IntN(6) == 0:
					f.in <- &samyav1.StreamRequest{Cancels: []uint64{1 + rng.Uint64N(next), 1 + rng.Uint64N(next)}}
				case rng.IntN(8) == 0:
					<-time.After(time.Duration(rng.IntN(50)) * time.Millisecond)
				case len(open) < 60:
					r := &samyav1.StreamRequest{}
					for range 1 + rng.IntN(3) {
						r.Calls = append(r.Calls, call(next, time.Duration(rng.IntN(3)*rng.IntN(100))*time.Millisecond))
						open[next] = true
						next++
					}
					f.in <- r
				default:
					take()
				}
			}
			synctest.Wait()
			for f.engine.underWay() > 0 {
				f.engine.answerOne(func(int) int { return 0 })
			}
			close(f.in)
			for len(open) > 0 {
				was := answered
				if take(); answered == was {
					t.Fatalf("seed %d: %d calls without an answer", seed, len(open))
				}
			}
			if err := <-f.err; err != nil {
				t.Error(err)
			}
			if answered < 200 {
				t.Errorf("seed %d: only %d calls", seed, answered)
			}
		})
	}
}
