package appmgr

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/samya-db/samya/internal/access"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/health"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

const (
	// resumeTime is how long a watch that was told something looks for another site.
	// Between two looks it pauses from firstResume to lastResume.
	resumeTime              = 30 * time.Second
	firstResume, lastResume = 50 * time.Millisecond, 2 * time.Second
	// maxResumeToken bounds a resume token, in bytes.
	maxResumeToken = 256
)

// WatchEntity implements samyav1.EntityServiceServer.
func (s *service) WatchEntity(in *samyav1.WatchEntityRequest, stream grpc.ServerStreamingServer[samyav1.WatchEntityResponse]) error {
	return s.watchEntity(stream.Context(), in, stream.Send)
}

// watchEntity relays a watch from the nearest healthy site to send, and resumes it at
// another site when the first goes away. It returns nil after a deletion. Otherwise it
// returns why the watch ends: an *apierr.Error, or the error of send. States never go
// back to an earlier generation or version.
func (s *service) watchEntity(ctx context.Context, in *samyav1.WatchEntityRequest, send func(*samyav1.WatchEntityResponse) error) error {
	if err := errors.Join(name.Entity("name", in.GetName()), resumeToken(in.GetResumeToken())); err != nil {
		return apierr.FromName(err)
	}
	at, err := s.watching.begin(access.CallerOf(ctx))
	if err != nil {
		return err
	}
	defer s.watching.end(at)
	s.router.metrics.watches.Inc()
	defer s.router.metrics.watches.Dec()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.open, func() { cancel(errClosing) })()
	r := &relay{service: s, entity: in.GetName(), token: in.GetResumeToken(), send: send, contact: time.Now()}
	err = r.run(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errClosing) {
		return errClosing
	}
	return err
}

var errClosing = apierr.New(apierr.ShuttingDown, "this app manager is shutting down")

func resumeToken(t string) error {
	if len(t) > maxResumeToken {
		return &name.Error{Field: "resume_token", Problem: "is none that a watch gave"}
	}
	return nil
}

// relay is a watch under way.
type relay struct {
	*service
	entity, token string
	send          func(*samyav1.WatchEntityResponse) error
	// last is the entity last told; nil for none. contact is when a site last told
	// anything.
	last    *samyav1.Entity
	contact time.Time
}

// run watches at site after site.
func (r *relay) run(ctx context.Context) error {
	for wait := firstResume; ; wait = min(2*wait, lastResume) {
		contact := r.contact
		again, err := r.pass(ctx)
		switch {
		case !again:
			return err
		case ctx.Err() != nil:
			return over(context.Cause(ctx))
		case r.last == nil || time.Since(r.contact) > resumeTime:
			return err
		case r.contact != contact:
			wait = firstResume
		}
		r.router.metrics.resumed.Inc()
		if pause(ctx, wait) != nil {
			return over(context.Cause(ctx))
		}
	}
}

// pass watches at the sites, best first, until a site has told something and ended. again
// reports whether the watch may go on.
func (r *relay) pass(ctx context.Context) (again bool, err error) {
	last := unreachable("")
	asked, absent := 0, 0
	for _, site := range order(r.router.candidates(), time.Now()) {
		contact := r.contact
		err := r.at(ctx, site)
		if err == nil {
			return false, nil
		}
		var e *apierr.Error
		if !errors.As(err, &e) {
			// send failed.
			return false, err
		}
		switch {
		case ctx.Err() != nil || e.Reason == apierr.InvalidField:
			return false, e
		case r.contact != contact:
			return true, e
		case e.Reason == apierr.EntityNotFound:
			absent++
		}
		asked++
		last = e
	}
	// A site that has missed the creation answers like a site that knows of the deletion.
	// So the caller is told only if all sites answer so.
	return absent == 0 || absent < asked, last
}

// at watches at a site. It returns nil after a deletion.
func (r *relay) at(ctx context.Context, site string) error {
	l := r.router.link(site)
	if l == nil {
		return unreachable(site)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := pause(ctx, l.delay); err != nil {
		return over(err)
	}
	w := &watch{}
	stream, err := samyav1.NewEntityServiceClient(l.conn).WatchEntity(
		context.WithValue(ctx, watchKey{}, w), &samyav1.WatchEntityRequest{Name: r.entity, ResumeToken: r.token})
	if err != nil {
		return r.lost(ctx, l, w, err)
	}
	arrivals := make(chan arrival, 16)
	go receive(ctx, stream, arrivals)
	alive := time.NewTicker(r.cfg.ProbeInterval)
	defer alive.Stop()
	for {
		select {
		case a := <-arrivals:
			if err := pause(ctx, l.delay-time.Since(a.at)); err != nil {
				return over(context.Cause(ctx))
			}
			if a.err != nil {
				return r.lost(ctx, l, w, a.err)
			}
			r.contact = time.Now()
			if done, err := r.tell(a.state); done || err != nil {
				return err
			}
		case <-alive.C:
			// A broken path shows in the probes long before it shows in the stream.
			if l.state().Reach == health.Down || r.router.link(site) != l {
				return unreachable(site)
			}
		case <-ctx.Done():
			return over(context.Cause(ctx))
		}
	}
}

// over returns the error of a watch whose caller has gone.
func over(cause error) *apierr.Error {
	if errors.Is(cause, context.DeadlineExceeded) {
		return &apierr.Error{Reason: apierr.DeadlineExceeded, Message: "the watch's time is up", Err: cause}
	}
	return &apierr.Error{Reason: apierr.Canceled, Message: "the watch was canceled", Err: cause}
}

// arrival is a state or an error received from a stream, and when.
type arrival struct {
	state *samyav1.WatchEntityResponse
	err   error
	at    time.Time
}

// receive passes on each arrival, until the stream or ctx ends.
func receive(ctx context.Context, stream grpc.ServerStreamingClient[samyav1.WatchEntityResponse], to chan<- arrival) {
	for {
		state, err := stream.Recv()
		select {
		case to <- arrival{state, err, time.Now()}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// tell passes a state on, unless a later state was told: another site may lag behind the
// site before.
func (r *relay) tell(state *samyav1.WatchEntityResponse) (done bool, err error) {
	e := state.GetEntity()
	if r.last != nil && (e.GetGeneration() < r.last.GetGeneration() ||
		!state.GetDeleted() && e.GetGeneration() == r.last.GetGeneration() && e.GetVersion() < r.last.GetVersion()) {
		return false, nil
	}
	r.last, r.token = e, state.GetResumeToken()
	return state.GetDeleted(), r.send(state)
}

// lost turns the end of a stream into an error, and records it in the site's health.
func (r *relay) lost(ctx context.Context, l *link, w *watch, err error) error {
	if ctx.Err() != nil {
		return over(context.Cause(ctx))
	}
	f := w.fate(err)
	l.calls[f].Inc()
	if _, ok := status.FromError(err); f != answered || !ok || errors.Is(err, io.EOF) {
		l.update((*health.Health).Broken)
		e := unreachable(l.info.Name)
		e.Err = err
		return e
	}
	e := apierr.FromGRPC(err)
	switch e.Reason {
	case apierr.Unauthenticated, apierr.PermissionDenied:
		// The site refuses this app manager, not its caller.
		e = unreachable(l.info.Name)
		e.Err = err
	case apierr.Overloaded:
		l.update(func(h *health.Health) { h.Refused(time.Now(), e.RetryAfter) })
	case apierr.ShuttingDown:
		l.update((*health.Health).Broken)
	}
	return e
}
