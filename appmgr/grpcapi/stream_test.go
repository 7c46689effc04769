package grpcapi

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/appmgr/fake"
	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// fakeRPC is a stream with the test as its caller.
type fakeRPC struct {
	grpc.BidiStreamingServer[samyav1.StreamRequest, samyav1.StreamResponse]
	ctx   context.Context
	leave context.CancelFunc
	in    chan *samyav1.StreamRequest
	out   chan *samyav1.StreamResponse
	err   chan error
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
	select {
	case f.out <- r:
		return nil
	case <-f.ctx.Done():
		return f.ctx.Err()
	}
}

// stream opens a stream to the app manager.
func (r *rig) stream() *fakeRPC {
	ctx, cancel := context.WithCancel(r.t.Context())
	f := &fakeRPC{
		ctx: ctx, leave: cancel, in: make(chan *samyav1.StreamRequest), out: make(chan *samyav1.StreamResponse, 100), err: make(chan error, 1),
	}
	go func() {
		f.err <- r.service.Stream(f)
		cancel()
	}()
	if resp := <-f.out; resp.GetWindow() != streamWindow {
		r.t.Errorf("the first answer: %v", resp)
	}
	return f
}

func (f *fakeRPC) call(tag uint64, timeout time.Duration, op *samyav1.Operation) {
	f.in <- &samyav1.StreamRequest{Calls: []*samyav1.Call{{Tag: tag, Operation: op, TimeoutMs: uint32(timeout.Milliseconds())}}}
}

// replies returns the answers so far, by tag, once all is quiet.
func (f *fakeRPC) replies() map[uint64]string {
	synctest.Wait()
	got := map[uint64]string{}
	for {
		select {
		case resp := <-f.out:
			for _, r := range resp.GetReplies() {
				got[r.GetTag()] = fake.OfResult(r.GetResult())
			}
		default:
			return got
		}
	}
}

// wantOnly checks that the call of tag alone was answered, with result.
func (f *fakeRPC) wantOnly(t *testing.T, tag uint64, result string) {
	t.Helper()
	if got := f.replies(); len(got) != 1 || got[tag] != result {
		t.Errorf("answers %v, want %d: %s", got, tag, result)
	}
}

func slow(id string) *samyav1.Operation {
	return fake.AcquireOf(&samyav1.AcquireRequest{Entity: "slow", Tokens: 1, RequestId: id, Wait: durationpb.New(20 * time.Second)})
}

// TestStream: each answer comes as soon as it is there, time-outs and cancels end calls,
// and a tag can be used again. The stream ends well after its caller's last call.
func TestStream(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		for _, f := range r.sites {
			fake.Slowly(f)
		}
		s := r.stream()
		s.call(1, 0, slow("s1"))
		s.call(2, 2*time.Second, slow("s2"))
		s.call(3, 0, fake.ReleaseOf(&samyav1.ReleaseRequest{Entity: "a", Tokens: 1, RequestId: "r"}))
		s.wantOnly(t, 3, "released 1 as r")
		s.call(3, 0, fake.AcquireOf(&samyav1.AcquireRequest{Entity: "a/"}))
		s.wantOnly(t, 3, "INVALID_FIELD of entity")
		s.call(4, 0, nil)
		s.wantOnly(t, 4, "INVALID_FIELD of operation")
		fake.Pass(2 * time.Second)
		if got := s.replies(); len(got) != 1 || got[2] == "" {
			t.Errorf("after the time of a call: %v", got)
		}
		s.in <- &samyav1.StreamRequest{Cancels: []uint64{7, 1}}
		if got := s.replies(); len(got) != 1 || got[1] == "" {
			t.Errorf("after a cancel: %v", got)
		}
		s.call(5, 0, fake.AcquireOf(&samyav1.AcquireRequest{Entity: "a", Tokens: 1, RequestId: "x"}))
		close(s.in)
		if err := <-s.err; err != nil {
			t.Error(err)
		}
		s.wantOnly(t, 5, "acquired 1 as x")
	})
}

// TestStreamRefuses: more calls than the window, and a tag without an answer yet, end the
// stream and its calls under way.
func TestStreamRefuses(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		for _, f := range r.sites {
			fake.Slowly(f)
		}
		many := &samyav1.StreamRequest{}
		for i := range uint64(streamWindow) {
			many.Calls = append(many.Calls, &samyav1.Call{Tag: i + 1})
		}
		for reason, r2 := range map[apierr.Reason]*samyav1.StreamRequest{
			apierr.WindowExceeded: many,
			apierr.InvalidField:   {Calls: []*samyav1.Call{{Tag: 0}}},
		} {
			s := r.stream()
			s.call(0, 0, slow("s"))
			synctest.Wait()
			s.in <- r2
			if err := <-s.err; !errors.Is(err, reason) {
				t.Errorf("%v, want %s", err, reason)
			}
		}
		if n := r.limiter.UnderWay(); n != 0 {
			t.Errorf("%d calls or streams left", n)
		}
	})
}

// TestStreamAtStop: an app manager that stops finishes its calls under way, begins no
// more, and ends its streams.
func TestStreamAtStop(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		for _, f := range r.sites {
			fake.Slowly(f)
		}
		s := r.stream()
		s.call(1, 0, slow("s1"))
		synctest.Wait()
		r.limiter.Close()
		synctest.Wait()
		s.call(2, 0, slow("s2"))
		fake.Pass(25 * time.Second)
		s.wantOnly(t, 1, "OUT_OF_TOKENS")
		if err := <-s.err; !errors.Is(err, apierr.ShuttingDown) {
			t.Error(err)
		}
	})
}

// TestStreamLeft: when the caller goes, nothing of its stream stays.
func TestStreamLeft(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		for _, f := range r.sites {
			fake.Slowly(f)
		}
		s := r.stream()
		for i := range uint64(100) {
			s.call(i, 0, fake.AcquireOf(&samyav1.AcquireRequest{Entity: "slow", Tokens: 1, Wait: durationpb.New(time.Minute)}))
		}
		synctest.Wait()
		s.leave()
		if err := <-s.err; !errors.Is(err, apierr.Canceled) && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if n := r.limiter.UnderWay(); n != 0 {
			t.Errorf("%d calls or streams left", n)
		}
	})
}
