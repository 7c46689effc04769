package appmgr

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/samya-db/samya/internal/access"
	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

const (
	// streamWindow bounds the calls of a stream without an answer.
	streamWindow = 4096
	// maxReplies bounds the answers in a message, far below the bound of clients.
	maxReplies = 512
)

// Stream implements samyav1.TokenServiceServer. It reads at all times, so that cancels
// are heard. The window bounds the calls it holds: a call counts until its answer is
// about to be sent.
func (s *service) Stream(rpc grpc.BidiStreamingServer[samyav1.StreamRequest, samyav1.StreamResponse]) error {
	at, err := s.streaming.begin(access.CallerOf(rpc.Context()))
	if err != nil {
		return err
	}
	defer s.streaming.end(at)
	ctx, cancel := context.WithCancel(rpc.Context())
	st := &stream{service: s, ctx: ctx, open: make(map[uint64]context.CancelFunc), wake: make(chan struct{}, 1)}
	defer st.calls.Wait()
	defer cancel()
	defer st.close()
	return st.serve(rpc)
}

// stream is many callers' calls over a single connection. One goroutine reads; another
// sends, in each message, all answers ready by then.
type stream struct {
	*service
	// ctx is the context of all calls.
	ctx   context.Context
	calls sync.WaitGroup

	mu sync.Mutex
	// open has the cancel function of each call without a sent answer, by tag.
	open map[uint64]context.CancelFunc
	// out are the answers to send.
	out []*samyav1.Reply
	// closed: no further call is begun.
	closed bool
	// wake holds a token when there are answers to send.
	wake chan struct{}
}

// serve runs the stream until its caller has closed it and has all answers, or until it
// fails. A stopping app manager ends the stream with ShuttingDown once it has answered
// all calls that it began. A call without an answer was not begun.
func (st *stream) serve(rpc grpc.BidiStreamingServer[samyav1.StreamRequest, samyav1.StreamResponse]) error {
	if err := rpc.Send(&samyav1.StreamResponse{Window: streamWindow}); err != nil {
		return fmt.Errorf("telling the window: %w", err)
	}
	// read ends when the stream has, maybe after serve has returned.
	ended := make(chan error, 1)
	go func() { ended <- st.read(rpc) }()
	stopping := st.service.open.Done()
	var end error
	for {
		replies, drained := st.take()
		if len(replies) > 0 {
			if err := rpc.Send(&samyav1.StreamResponse{Replies: replies}); err != nil {
				return fmt.Errorf("sending answers: %w", err)
			}
			continue
		}
		if drained {
			return end
		}
		select {
		case <-st.wake:
		case <-st.ctx.Done():
			return apierr.Wrap(apierr.Canceled, context.Cause(st.ctx))
		case err := <-ended:
			if !errors.Is(err, io.EOF) {
				return err
			}
			st.close()
		case <-stopping:
			stopping, end = nil, errClosing
			st.close()
		}
	}
}

// read begins and cancels calls as the caller asks, until the stream ends.
func (st *stream) read(rpc grpc.BidiStreamingServer[samyav1.StreamRequest, samyav1.StreamResponse]) error {
	for {
		r, err := rpc.Recv()
		if err != nil {
			return err
		}
		if err := st.handle(r); err != nil {
			return err
		}
	}
}

func (st *stream) handle(r *samyav1.StreamRequest) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.closed {
		return nil
	}
	if n := len(st.open) + len(r.GetCalls()); n > streamWindow {
		return apierr.New(apierr.WindowExceeded, "%d calls without an answer, the window is %d", n, streamWindow)
	}
	for i, c := range r.GetCalls() {
		if st.open[c.GetTag()] != nil {
			return apierr.Invalid(fmt.Sprintf("calls[%d].tag", i), fmt.Sprintf("%d is that of a call without an answer", c.GetTag()))
		}
		ctx, cancel := patience(st.ctx, c.GetTimeoutMs())
		st.open[c.GetTag()] = cancel
		st.calls.Go(func() {
			o := st.operate(ctx, "grpc", c.GetOperation())
			st.answered(&samyav1.Reply{Tag: c.GetTag(), Result: o.result()})
		})
	}
	for _, tag := range r.GetCancels() {
		if cancel := st.open[tag]; cancel != nil {
			cancel()
		}
	}
	return nil
}

// patience returns a context that ends after ms milliseconds; 0: never.
func patience(ctx context.Context, ms uint32) (context.Context, context.CancelFunc) {
	if ms == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Duration(ms)*time.Millisecond)
}

// answered queues an answer for the sender.
func (st *stream) answered(r *samyav1.Reply) {
	st.mu.Lock()
	st.out = append(st.out, r)
	first := len(st.out) == 1
	st.mu.Unlock()
	if first {
		select {
		case st.wake <- struct{}{}:
		default:
		}
	}
}

// take removes and returns the answers to send next. drained reports that the stream is
// closed and has sent all.
func (st *stream) take() (replies []*samyav1.Reply, drained bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	n := min(len(st.out), maxReplies)
	replies, st.out = st.out[:n:n], st.out[n:]
	for _, r := range replies {
		st.open[r.GetTag()]()
		delete(st.open, r.GetTag())
	}
	return replies, st.closed && len(st.open) == 0
}

// close keeps further calls from being begun.
func (st *stream) close() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.closed = true
}
