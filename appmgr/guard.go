package appmgr

import (
	"context"
	"fmt"
	"log/slog"
	"path"
	"runtime/debug"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/methods"
)

// guard stands before every request of either API. It bounds the requests under way,
// refuses all requests while shutting down, counts them, and keeps a panic from ending
// the process.
type guard struct {
	slots   chan struct{}
	closing atomic.Bool
	metrics *metrics
	log     *slog.Logger
	// streams counts the streams under way, by method.
	streams map[string]*atomic.Int64
}

// maxLasting bounds the streams under way of each method.
const maxLasting = 10_000

func newGuard(limit int, m *metrics, log *slog.Logger) *guard {
	return &guard{slots: make(chan struct{}, limit), metrics: m, log: log, streams: streamsUnder()}
}

// do runs f as a request of the method of the API, or refuses the request. The caller of
// do turns the error into the answer.
func (g *guard) do(ctx context.Context, api, method string, f func() error) (err error) {
	began := time.Now()
	defer func() { g.metrics.request(api, method, began, err) }()
	if g.closing.Load() {
		return apierr.New(apierr.ShuttingDown, "this app manager is shutting down; nothing was done")
	}
	if err := ctx.Err(); err != nil {
		return ended(err)
	}
	select {
	case g.slots <- struct{}{}:
	default:
		return apierr.Overload("", time.Second)
	}
	g.metrics.outstanding.Inc()
	defer func() {
		g.metrics.outstanding.Dec()
		<-g.slots
	}()
	return g.kept(ctx, method, f)
}

// passes reports whether a gRPC method passes the guard at any time.
func passes(method string) bool {
	m, _ := methods.Of(method)
	return m.Always
}

// streamsUnder returns a count of streams under way for each streaming method of
// the public API.
func streamsUnder() map[string]*atomic.Int64 {
	under := map[string]*atomic.Int64{noMethod: new(atomic.Int64)}
	for _, m := range methods.All() {
		if m.Stream && !m.Always && !m.Sites {
			under[m.Name] = new(atomic.Int64)
		}
	}
	return under
}

// noMethod is the name, in metrics, of all methods that no service has.
const noMethod = "none"

// unary is the guard as a gRPC interceptor.
func (g *guard) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, h grpc.UnaryHandler) (resp any, err error) {
	call := func() error {
		resp, err = h(ctx, req)
		return err
	}
	if passes(info.FullMethod) {
		err = g.kept(ctx, info.FullMethod, call)
	} else {
		err = g.do(ctx, "grpc", path.Base(info.FullMethod), call)
	}
	if err != nil {
		return nil, apierr.From(err)
	}
	return resp, nil
}

// stream is the guard of gRPC streams.
func (g *guard) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, h grpc.StreamHandler) (err error) {
	call := func() error { return h(srv, stream) }
	if passes(info.FullMethod) {
		return g.kept(stream.Context(), info.FullMethod, call)
	}
	method := path.Base(info.FullMethod)
	if _, known := g.streams[method]; !known {
		method = noMethod
	}
	return g.lasting(stream.Context(), "grpc", method, call)
}

// lasting runs f as a watch or stream of the method of the API, or refuses it. Streams
// last as long as their callers want, so each method has a bound of its own.
func (g *guard) lasting(ctx context.Context, api, method string, f func() error) (err error) {
	defer func() {
		reason := "OK"
		if err != nil {
			e := apierr.From(err)
			reason, err = string(e.Reason), e
		}
		g.metrics.requests.WithLabelValues(api, method, reason).Inc()
	}()
	if g.closing.Load() {
		return errClosing
	}
	under := g.streams[method]
	defer under.Add(-1)
	if under.Add(1) > maxLasting {
		return apierr.Overload("", time.Second)
	}
	return g.kept(ctx, method, f)
}

// kept runs f and turns a panic into an error.
func (g *guard) kept(ctx context.Context, method string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			g.log.ErrorContext(ctx, "panic in a request", slog.String("method", method),
				slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
			err = apierr.Wrap(apierr.Internal, fmt.Errorf("panic: %v", p))
		}
	}()
	return f()
}

// unknownMethod answers calls of methods that no service has.
func unknownMethod(_ any, stream grpc.ServerStream) error {
	m, _ := grpc.MethodFromServerStream(stream)
	return apierr.New(apierr.RouteNotFound, "no method %.128q", m)
}
