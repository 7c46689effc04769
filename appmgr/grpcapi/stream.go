package grpcapi

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/samya-db/samya/appmgr/limiter"
	"github.com/samya-db/samya/internal/access"
	"github.com/samya-db/samya/internal/mux"
	"github.com/samya-db/samya/internal/tracing"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

const (
	// streamWindow bounds the calls of a stream without an answer.
	streamWindow = 4096
	// maxReplies bounds the answers in a message, far below the bound of clients.
	maxReplies = 512
)

// Stream implements samyav1.TokenServiceServer.
func (s *Service) Stream(rpc samyav1.TokenService_StreamServer) error {
	at, err := s.streaming.Begin(access.CallerOf(rpc.Context()))
	if err != nil {
		return err
	}
	defer s.streaming.End(at)
	st := &stream{Service: s, ctx: rpc.Context()}
	st.Handler, st.Window, st.MaxReplies = st, streamWindow, maxReplies
	st.Stopping, st.Stopped = s.limiter.Closing().Done(), limiter.ErrClosing
	defer st.calls.Wait()
	return st.Serve(rpc)
}

// stream is the mux.Handler of a stream.
type stream struct {
	mux.Server[streamed, *streamed]
	*Service
	// ctx is the stream's.
	ctx   context.Context
	calls sync.WaitGroup
	// roots begin traces of calls that come without one.
	roots tracing.Roots
}

// streamed is a call of a stream.
type streamed struct {
	mux.Entry
	Operated
	cancel context.CancelFunc
}

// Read implements mux.Handler. It begins the call, which ends by its deadline.
func (st *stream) Read(c *streamed, m *samyav1.Call) {
	ctx, cancel := patience(st.ctx, c.Deadline)
	c.cancel = cancel
	ctx, span := st.span(ctx, m, c.Began)
	st.calls.Go(func() {
		c.Operated = st.operate(ctx, "grpc", m.GetOperation())
		cancel()
		if span != nil {
			tracing.End(span, c.Err)
		}
		st.Answered(c)
	})
}

// span begins the span of a call, unless its trace is not recorded.
func (st *stream) span(ctx context.Context, m *samyav1.Call, at time.Time) (context.Context, trace.Span) {
	if st.Traces == nil {
		return ctx, nil
	}
	method := samyav1.TokenService_Acquire_FullMethodName
	if m.GetOperation().GetRelease() != nil {
		method = samyav1.TokenService_Release_FullMethodName
	}
	return st.Traces.Operation(ctx, m.GetTrace(), &st.roots, method, at)
}

// Start implements mux.Handler.
func (*stream) Start(int) {}

// patience returns a context that ends at a deadline; zero: never.
func patience(ctx context.Context, deadline time.Time) (context.Context, context.CancelFunc) {
	if deadline.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline)
}

// Cancel implements mux.Handler. The call answers by itself.
func (*stream) Cancel(c *streamed, _ error) bool {
	c.cancel()
	return false
}

// Answer implements mux.Handler.
func (*stream) Answer(calls []*streamed, replies []*samyav1.Reply) int {
	for i, c := range calls {
		replies[i].Tag = c.Tag
		c.tell(replies[i].GetResult())
		c.Operated = Operated{}
	}
	return len(calls)
}
