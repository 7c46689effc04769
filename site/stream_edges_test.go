package site_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/engine"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// inputs are the inputs of the calls under way, in their order.
func (e *fakeEngine) inputs() []input.Input {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make([]input.Input, 0, len(e.calls))
	for _, c := range e.calls {
		all = append(all, c.Input)
	}
	return all
}

// receive tells an answer as the engine does.
func receive(c *engine.Call, a answer.Answer, err error) {
	if f := c.To.Receive(c, a, err); f != nil {
		f.Flush(true)
	}
}

// stop ends the engine with calls under way.
func (e *fakeEngine) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.calls {
		receive(c, answer.Answer{}, engine.ErrStopped)
	}
	e.calls = nil
}

// giveUp gives up the calls under way, which must not be handed over again.
func (e *fakeEngine) giveUp() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cancelled == nil {
		e.cancelled = make(map[*engine.Call]bool)
	}
	for _, c := range e.calls {
		e.cancelled[c] = true
		receive(c, answer.Answer{}, engine.ErrGivenUp)
	}
	e.calls = nil
}

// TestStreamGivenUpByTheEngine: calls that the engine gives up may have been done. The
// stream goes on, and uses none of them again.
func TestStreamGivenUpByTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, 10)
		f.calls(1, 2)
		f.engine.giveUp()
		got := f.message()
		for tag := uint64(1); tag <= 2; tag++ {
			if want := string(apierr.OutcomeUnknown); got[tag] != want {
				t.Errorf("call %d is told %q, want %q", tag, got[tag], want)
			}
		}
		f.calls(3, 4)
		f.engine.answer(0)
		f.engine.answer(0)
		if got := f.message(); len(got) != 2 {
			t.Errorf("later calls are told %v", got)
		}
		f.calls(5)
		f.gone()
	})
}

// TestStreamKindsTakeTurns: a reused call is of the kind of its request, whatever it was
// before.
func TestStreamKindsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, 10)
		for tag := uint64(1); tag <= 6; tag++ {
			c, want := call(tag, 0), "acquired"
			if tag%2 == 0 {
				want = "released"
				c.Operation = releaseOf(&samyav1.ReleaseRequest{Entity: "acme/vm", Tokens: int64(tag), RequestId: fmt.Sprint("id", tag)})
			}
			f.in <- &samyav1.StreamRequest{Calls: []*samyav1.Call{c}}
			synctest.Wait()
			if _, releases := f.engine.inputs()[0].(*input.Release); releases != (want == "released") {
				t.Errorf("the core is asked %+v", f.engine.inputs()[0])
			}
			f.engine.answer(0)
			if got := f.message(); got[tag] != fmt.Sprintf("%s %d as id%d, 0 left", want, tag, tag) {
				t.Errorf("call %d: %v", tag, got)
			}
		}
		f.gone()
	})
}

// TestStreamWaitsEndInTime: a call waits for tokens no longer than its caller waits for
// the answer.
func TestStreamWaitsEndInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, 10)
		f.in <- &samyav1.StreamRequest{Calls: []*samyav1.Call{call(1, time.Second), call(2, 0)}}
		synctest.Wait()
		for i, want := range []core.Tick{950, 5000} {
			if got := f.engine.inputs()[i].(*input.Acquire).Wait; got != want {
				t.Errorf("call %d waits for %d ms, want %d", i+1, got, want)
			}
		}
		f.gone()
	})
}

// TestStreamOfAnEngineThatStops: a call under way as the engine stops may have been done.
// Its caller is told the id and the site with which to find out.
func TestStreamOfAnEngineThatStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, 10)
		f.calls(1)
		f.engine.stop()
		e := apierr.FromFailure((<-f.out).GetReplies()[0].GetResult().GetFailure())
		if e.Reason != apierr.OutcomeUnknown || e.RequestID != "id1" || e.Site != "us" {
			t.Errorf("under way: %+v", e)
		}
		f.engine.refuse = engine.ErrStopped
		f.calls(2)
		e = apierr.FromFailure((<-f.out).GetReplies()[0].GetResult().GetFailure())
		if e.Reason != apierr.OutcomeUnknown || e.RequestID != "id2" || e.Site != "us" {
			t.Errorf("not taken: %+v", e)
		}
		f.gone()
	})
}

// eager is a caller that uses a tag again as soon as its answer is on its way.
type eager struct {
	*fakeRPC
	answers int
}

func (e *eager) Send(r *samyav1.StreamResponse) error {
	if len(r.GetReplies()) == 0 || e.answers > 0 {
		return e.fakeRPC.Send(r)
	}
	e.answers++
	e.in <- &samyav1.StreamRequest{Calls: []*samyav1.Call{call(r.GetReplies()[0].GetTag(), 0)}}
	// The site takes it once it has handled the message before.
	e.in <- &samyav1.StreamRequest{}
	return e.fakeRPC.Send(r)
}

// start begins a stream for a caller that is made of f.
func start(t *testing.T, window int, with func(*fakeRPC) samyav1.TokenService_StreamServer) *fakeRPC {
	t.Helper()
	f := &fakeRPC{
		t: t, engine: &fakeEngine{}, closing: make(chan struct{}),
		in: make(chan *samyav1.StreamRequest), out: make(chan *samyav1.StreamResponse), err: make(chan error, 1),
	}
	f.ctx, f.leave = context.WithCancel(t.Context())
	go func() { f.err <- site.ServeStream(f.engine, window, f.closing, with(f)) }()
	<-f.out
	return f
}

// TestStreamTagsAreFreeWithTheAnswer: a tag can be used again once its answer is there,
// and the window has room for it.
func TestStreamTagsAreFreeWithTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 1, func(f *fakeRPC) samyav1.TokenService_StreamServer { return &eager{fakeRPC: f} })
		f.calls(1)
		for range 2 {
			f.engine.answer(0)
			if got := f.message(); got[1] != "acquired 1 as id1, 0 left" {
				t.Errorf("%v", got)
			}
		}
		f.gone()
	})
}

// mute is a caller to whom nothing can be sent, though it can be heard.
type mute struct{ *fakeRPC }

var errMute = errors.New("the caller hears nothing")

func (m mute) Send(r *samyav1.StreamResponse) error {
	if r.GetWindow() == 0 {
		return errMute
	}
	return m.fakeRPC.Send(r)
}

// TestStreamThatEndedBeginsNothing: operations of a caller that no answer reaches are
// not begun.
func TestStreamThatEndedBeginsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 10, func(f *fakeRPC) samyav1.TokenService_StreamServer { return mute{f} })
		f.calls(1, 2)
		f.engine.answer(0)
		if err := <-f.err; !errors.Is(err, errMute) {
			t.Errorf("it ends with %v", err)
		}
		f.calls(3)
		if n := f.engine.underWay(); n != 0 {
			t.Errorf("%d calls under way", n)
		}
		f.leave()
	})
}

// TestStreamMessagesAreBounded: a message holds a part of many answers, and a smaller
// part of large failures. No answer is left out.
func TestStreamMessagesAreBounded(t *testing.T) {
	const calls = 2*site.MaxReplies + 100
	// The failure tells of each field.
	bad := acquireOf(&samyav1.AcquireRequest{
		Entity: strings.Repeat("/", 256), MinTokens: -1, RequestId: strings.Repeat(" ", 128), Site: strings.Repeat("x", 60),
		Wait: durationpb.New(-1), Attempt: 1 << 30, Relay: 1 << 30, Tried: []string{"x"}, NotAfter: &timestamppb.Timestamp{Nanos: -1},
		Lease: &samyav1.LeaseTerms{Holder: "é"},
	})
	for title, c := range map[string]struct {
		of       func(tag uint64) *samyav1.Call
		messages int
	}{
		"done":    {func(tag uint64) *samyav1.Call { return call(tag, 0) }, 3},
		"refused": {func(tag uint64) *samyav1.Call { return &samyav1.Call{Tag: tag, Operation: bad} }, 4},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := serve(t, calls)
			r := &samyav1.StreamRequest{}
			for tag := range uint64(calls) {
				r.Calls = append(r.Calls, c.of(tag+1))
			}
			f.in <- r
			synctest.Wait()
			for f.engine.answerOne(func(int) int { return 0 }) {
			}
			answered, messages := map[uint64]bool{}, 0
			for len(answered) < calls && messages <= calls {
				resp := <-f.out
				messages++
				if n, size := len(resp.GetReplies()), proto.Size(resp); n > site.MaxReplies || size > site.FailureBytes+64<<10 {
					t.Errorf("%s: %d answers of %d bytes in a message", title, n, size)
				}
				for _, r := range resp.GetReplies() {
					answered[r.GetTag()] = true
				}
			}
			if messages < c.messages || messages > 20 {
				t.Errorf("%s: %d answers in %d messages", title, len(answered), messages)
			}
			f.gone()
		})
	}
}
