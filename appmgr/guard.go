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
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// guard stands before every request of either API: it bounds how many are
// under way, refuses all while shutting down, counts, and keeps a panic from
// ending the process.
type guard struct {
	slots   chan struct{}
	closing atomic.Bool
	metrics *metrics
	log     *slog.Logger
}

func newGuard(limit int, m *metrics, log *slog.Logger) *guard {
	return &guard{slots: make(chan struct{}, limit), metrics: m, log: log}
}

// do runs f as a request of the method of the API, or refuses it. What f's
// caller makes of the error is the answer.
func (g *guard) do(ctx context.Context, api, method string, f func() error) (err error) {
	began := time.Now()
	defer func() {
		if p := recover(); p != nil {
			g.log.ErrorContext(ctx, "panic in a request", slog.String("method", method),
				slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
			err = apierr.Wrap(apierr.Internal, fmt.Errorf("panic: %v", p))
		}
		g.metrics.request(api, method, began, err)
	}()
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
	return f()
}

// grpcMethods are the methods that metrics tell apart.
var grpcMethods = map[string]bool{
	samyav1.TokenService_Acquire_FullMethodName:       true,
	samyav1.TokenService_Release_FullMethodName:       true,
	samyav1.TokenService_Batch_FullMethodName:         true,
	samyav1.TokenService_RenewLease_FullMethodName:    true,
	samyav1.TokenService_CommitLease_FullMethodName:   true,
	samyav1.TokenService_ListLeases_FullMethodName:    true,
	samyav1.EntityService_CreateEntity_FullMethodName: true,
	samyav1.EntityService_GetEntity_FullMethodName:    true,
	samyav1.EntityService_ListEntities_FullMethodName: true,
	samyav1.EntityService_UpdateEntity_FullMethodName: true,
	samyav1.EntityService_DeleteEntity_FullMethodName: true,
	samyav1.EntityService_MoveEntity_FullMethodName:   true,
	samyav1.ClusterService_ListSites_FullMethodName:   true,
}

// unary is the guard as a gRPC interceptor. Health checks pass it: a full
// server is not a dead one.
func (g *guard) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, h grpc.UnaryHandler) (resp any, err error) {
	if !grpcMethods[info.FullMethod] {
		return h(ctx, req)
	}
	err = g.do(ctx, "grpc", path.Base(info.FullMethod), func() error {
		resp, err = h(ctx, req)
		return err
	})
	if err != nil {
		return nil, apierr.From(err)
	}
	return resp, nil
}

// stream is the guard of watches and streams. They have bounds of their own, since
// they last as long as their callers want.
func (g *guard) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, h grpc.StreamHandler) (err error) {
	switch info.FullMethod {
	case samyav1.EntityService_WatchEntity_FullMethodName, samyav1.TokenService_Stream_FullMethodName:
		return g.lasting(stream.Context(), "grpc", path.Base(info.FullMethod), func() error { return h(srv, stream) })
	}
	return h(srv, stream)
}

// lasting runs f as a watch or stream of the method of the API, or refuses it.
func (g *guard) lasting(ctx context.Context, api, method string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			g.log.ErrorContext(ctx, "panic in a stream", slog.String("method", method), slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
			err = apierr.Wrap(apierr.Internal, fmt.Errorf("panic: %v", p))
		}
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
	return f()
}

// unknownMethod answers calls of methods that no service has.
func unknownMethod(_ any, stream grpc.ServerStream) error {
	m, _ := grpc.MethodFromServerStream(stream)
	return apierr.New(apierr.RouteNotFound, "no method %.128q", m)
}
