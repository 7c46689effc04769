package route

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/health"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// Watch watches an entity at a site and calls tell for each state, until tell is done or
// fails. Its other errors are *apierr.Errors: why the site tells no more.
func (r *Router) Watch(
	ctx context.Context, site string, req *samyav1.WatchEntityRequest, tell func(*samyav1.WatchEntityResponse) (done bool, err error),
) error {
	l := r.link(site)
	if l == nil {
		return apierr.Unreachable(site)
	}
	return stay(ctx, r, l, 0, func(ctx context.Context) (grpc.ServerStreamingClient[samyav1.WatchEntityResponse], error) {
		return samyav1.NewEntityServiceClient(l.conn).WatchEntity(ctx, req)
	}, tell)
}

// stay watches at a link and calls tell for each message, until tell is done or fails, or
// the link has told nothing for the time silence; 0: for ever.
func stay[M any](
	ctx context.Context, r *Router, l *link, silence time.Duration,
	open func(context.Context) (grpc.ServerStreamingClient[M], error), tell func(*M) (done bool, err error),
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := Pause(ctx, l.delay); err != nil {
		return WatchOver(err)
	}
	w := &watch{}
	stream, err := open(context.WithValue(ctx, watchKey{}, w))
	if err != nil {
		return r.lost(ctx, l, w, err)
	}
	arrivals := make(chan arrival[M], 16)
	go receive(ctx, stream, arrivals)
	alive := time.NewTicker(r.cfg.ProbeInterval)
	defer alive.Stop()
	heard := time.Now()
	for {
		select {
		case a := <-arrivals:
			if err := Pause(ctx, l.delay-time.Since(a.at)); err != nil {
				return WatchOver(context.Cause(ctx))
			}
			if a.err != nil {
				return r.lost(ctx, l, w, a.err)
			}
			if done, err := tell(a.message); done || err != nil {
				return err
			}
			heard = time.Now()
		case <-alive.C:
			// A broken path shows in the probes long before it shows in the stream.
			if l.state().Reach == health.Down || r.link(l.info.Name) != l || silence > 0 && time.Since(heard) > silence {
				return apierr.Unreachable(l.info.Name)
			}
		case <-l.over.Done():
			return apierr.Unreachable(l.info.Name)
		case <-ctx.Done():
			return WatchOver(context.Cause(ctx))
		}
	}
}

// WatchOver returns the error of a watch whose caller has gone.
func WatchOver(cause error) *apierr.Error {
	if errors.Is(cause, context.DeadlineExceeded) {
		return &apierr.Error{Reason: apierr.DeadlineExceeded, Message: "the watch's time is up", Err: cause}
	}
	return &apierr.Error{Reason: apierr.Canceled, Message: "the watch was canceled", Err: cause}
}

// arrival is a message or an error received from a stream, and when.
type arrival[M any] struct {
	message *M
	err     error
	at      time.Time
}

// receive passes on each arrival, until the stream or ctx ends.
func receive[M any](ctx context.Context, stream grpc.ServerStreamingClient[M], to chan<- arrival[M]) {
	for {
		message, err := stream.Recv()
		select {
		case to <- arrival[M]{message, err, time.Now()}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// lost turns the end of a stream into an error, and records it in the site's health.
func (r *Router) lost(ctx context.Context, l *link, w *watch, err error) error {
	if ctx.Err() != nil {
		return WatchOver(context.Cause(ctx))
	}
	f := w.fate(err)
	l.calls[f].Inc()
	if _, ok := status.FromError(err); f != answered || !ok || errors.Is(err, io.EOF) {
		l.update((*health.Health).Broken)
		e := apierr.Unreachable(l.info.Name)
		e.Err = err
		return e
	}
	e := apierr.FromGRPC(err)
	switch e.Reason {
	case apierr.Unauthenticated, apierr.PermissionDenied:
		// The site refuses this app manager, not its caller.
		e = apierr.Unreachable(l.info.Name)
		e.Err = err
	case apierr.Overloaded:
		l.update(func(h *health.Health) { h.Refused(time.Now(), e.RetryAfter) })
	case apierr.ShuttingDown:
		l.update((*health.Health).Broken)
	}
	return e
}
