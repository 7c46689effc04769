package limiter

import (
	"context"
	"fmt"
	"log/slog"
	"path"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/methods"
	"github.com/samya-db/samya/internal/tracing"
)

// Limiter stands before every request of either API. It bounds the requests under way,
// refuses all requests while shutting down, counts them, and keeps a panic from ending
// the process.
type Limiter struct {
	slots   chan struct{}
	closing atomic.Bool
	metrics *metrics
	log     *slog.Logger
	// open ends, by end, when the limiter is closed.
	open context.Context
	end  context.CancelFunc
	// streams counts the streams under way, by method.
	streams map[string]*atomic.Int64
}

// Trace has the traces of requests be exemplars of the metrics. It must be called before the
// limiter is used.
func (l *Limiter) Trace(t *tracing.Traces) { l.metrics.traces = t }

// MaxStreaming bounds the streams under way of each method.
const MaxStreaming = 10_000

// New makes a limiter that lets at most limit requests in at a time.
func New(limit int, reg prometheus.Registerer, log *slog.Logger) (*Limiter, error) {
	m, err := newMetrics(reg)
	if err != nil {
		return nil, err
	}
	l := &Limiter{slots: make(chan struct{}, limit), metrics: m, log: log, streams: streamsUnder()}
	l.open, l.end = context.WithCancel(context.Background())
	return l, nil
}

// Close refuses all further requests and ends the watches and streams under way.
func (l *Limiter) Close() {
	l.closing.Store(true)
	l.end()
}

// Closing returns a context that ends when the limiter is closed.
func (l *Limiter) Closing() context.Context { return l.open }

// Closed reports whether the limiter is closed.
func (l *Limiter) Closed() bool { return l.closing.Load() }

// UnderWay returns how many requests, watches and streams are under way.
func (l *Limiter) UnderWay() int {
	n := len(l.slots)
	for _, under := range l.streams {
		n += int(under.Load())
	}
	return n
}

// Refused counts a request that was refused before the limiter saw it.
func (l *Limiter) Refused(api, method string, err error) {
	l.metrics.requests.WithLabelValues(api, method, string(apierr.ReasonOf(err))).Inc()
}

// ErrClosing ends watches and streams when the limiter is closed.
var ErrClosing = apierr.New(apierr.ShuttingDown, "this app manager is shutting down")

// Do runs f as a request of the method of the API, or refuses the request. The caller of
// Do turns the error into the answer.
func (l *Limiter) Do(ctx context.Context, api, method string, f func() error) (err error) {
	began := time.Now()
	defer func() { l.metrics.request(api, method, began, err, l.metrics.traces.Current(ctx)) }()
	if l.closing.Load() {
		return apierr.New(apierr.ShuttingDown, "this app manager is shutting down; nothing was done")
	}
	if err := ctx.Err(); err != nil {
		return apierr.Ended(err)
	}
	select {
	case l.slots <- struct{}{}:
	default:
		return apierr.Overload("", time.Second)
	}
	l.metrics.outstanding.Inc()
	defer func() {
		l.metrics.outstanding.Dec()
		<-l.slots
	}()
	return l.kept(ctx, method, f)
}

// passes reports whether a gRPC method passes the limiter at any time.
func passes(method string) bool {
	m, _ := methods.Of(method)
	return m.Always
}

// streamsUnder returns a count of streams under way for each streaming method of
// the public API.
func streamsUnder() map[string]*atomic.Int64 {
	under := map[string]*atomic.Int64{NoMethod: new(atomic.Int64)}
	for _, m := range methods.All() {
		if m.Stream && !m.Always && !m.Sites {
			under[m.Name] = new(atomic.Int64)
		}
	}
	return under
}

// NoMethod is the name, in metrics, of all methods that no service has.
const NoMethod = "none"

// Unary is the limiter as a gRPC interceptor.
func (l *Limiter) Unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, h grpc.UnaryHandler) (resp any, err error) {
	call := func() error {
		resp, err = h(ctx, req)
		return err
	}
	if passes(info.FullMethod) {
		err = l.kept(ctx, info.FullMethod, call)
	} else {
		err = l.Do(ctx, "grpc", path.Base(info.FullMethod), call)
	}
	if err != nil {
		return nil, apierr.From(err)
	}
	return resp, nil
}

// Stream is the limiter of gRPC streams.
func (l *Limiter) Stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, h grpc.StreamHandler) (err error) {
	call := func() error { return h(srv, stream) }
	if passes(info.FullMethod) {
		return l.kept(stream.Context(), info.FullMethod, call)
	}
	method := path.Base(info.FullMethod)
	if _, known := l.streams[method]; !known {
		method = NoMethod
	}
	return l.DoStreaming(stream.Context(), "grpc", method, call)
}

// DoStreaming runs f as a watch or stream of the method of the API, or refuses it. Streams
// last as long as their callers want, so each method has a bound of its own.
func (l *Limiter) DoStreaming(ctx context.Context, api, method string, f func() error) (err error) {
	defer func() {
		reason := "OK"
		if err != nil {
			e := apierr.From(err)
			reason, err = string(e.Reason), e
		}
		l.metrics.requests.WithLabelValues(api, method, reason).Inc()
	}()
	if l.closing.Load() {
		return ErrClosing
	}
	under := l.streams[method]
	defer under.Add(-1)
	if under.Add(1) > MaxStreaming {
		return apierr.Overload("", time.Second)
	}
	return l.kept(ctx, method, f)
}

// kept runs f and turns a panic into an error.
func (l *Limiter) kept(ctx context.Context, method string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			l.log.ErrorContext(ctx, "panic in a request", slog.String("method", method),
				slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
			err = apierr.Wrap(apierr.Internal, fmt.Errorf("panic: %v", p))
		}
	}()
	return f()
}
