package reads

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"

	"github.com/samya-db/samya/appmgr/limiter"
	"github.com/samya-db/samya/appmgr/route"
	"github.com/samya-db/samya/internal/access"
	"github.com/samya-db/samya/internal/apierr"
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
func (s *Reads) WatchEntity(in *samyav1.WatchEntityRequest, stream grpc.ServerStreamingServer[samyav1.WatchEntityResponse]) error {
	return s.Watch(stream.Context(), in, stream.Send)
}

// Watch relays a watch from the nearest healthy site to send, and resumes it at
// another site when the first goes away. It returns nil after a deletion. Otherwise it
// returns why the watch ends: an *apierr.Error, or the error of send. States never go
// back to an earlier generation or version.
func (s *Reads) Watch(ctx context.Context, in *samyav1.WatchEntityRequest, send func(*samyav1.WatchEntityResponse) error) error {
	if err := errors.Join(name.Entity("name", in.GetName()), resumeToken(in.GetResumeToken())); err != nil {
		return apierr.FromName(err)
	}
	return s.watch(ctx, func(ctx context.Context) error {
		r := &relay{Reads: s, entity: in.GetName(), token: in.GetResumeToken(), send: send, contact: time.Now()}
		return r.run(ctx)
	})
}

// watch runs a watch within the bounds of its caller, until it ends or the limiter is
// closed.
func (s *Reads) watch(ctx context.Context, run func(context.Context) error) error {
	at, err := s.watching.Begin(access.CallerOf(ctx))
	if err != nil {
		return err
	}
	defer s.watching.End(at)
	s.metrics.watches.Inc()
	defer s.metrics.watches.Dec()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.limiter.Closing(), func() { cancel(limiter.ErrClosing) })()
	if err = run(ctx); err != nil && errors.Is(context.Cause(ctx), limiter.ErrClosing) {
		return limiter.ErrClosing
	}
	return err
}

func resumeToken(t string) error {
	if len(t) > maxResumeToken {
		return &name.Error{Field: "resume_token", Problem: "is none that a watch gave"}
	}
	return nil
}

// relay is a watch under way.
type relay struct {
	*Reads
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
			return route.WatchOver(context.Cause(ctx))
		case r.last == nil || time.Since(r.contact) > resumeTime:
			return err
		case r.contact != contact:
			wait = firstResume
		}
		r.metrics.resumed.Inc()
		if route.Pause(ctx, wait) != nil {
			return route.WatchOver(context.Cause(ctx))
		}
	}
}

// pass watches at the sites, best first, until a site has told something and ended. again
// reports whether the watch may go on.
func (r *relay) pass(ctx context.Context) (again bool, err error) {
	last := apierr.Unreachable("")
	asked, absent := 0, 0
	for _, site := range r.router.Order() {
		contact := r.contact
		err := r.router.Watch(ctx, site, &samyav1.WatchEntityRequest{Name: r.entity, ResumeToken: r.token}, r.tell)
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

// tell passes a state on, unless a later state was told: another site may lag behind the
// site before.
func (r *relay) tell(state *samyav1.WatchEntityResponse) (done bool, err error) {
	r.contact = time.Now()
	e := state.GetEntity()
	if r.last != nil && (e.GetGeneration() < r.last.GetGeneration() ||
		!state.GetDeleted() && e.GetGeneration() == r.last.GetGeneration() && e.GetVersion() < r.last.GetVersion()) {
		return false, nil
	}
	r.last, r.token = e, state.GetResumeToken()
	return state.GetDeleted(), r.send(state)
}
