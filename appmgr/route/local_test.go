package route

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/appmgr/fake"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/health"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// beside has a router stand in the process of a distant site, with no way to it over the
// network.
func beside(site string) func(*Config) {
	return func(c *Config) {
		c.Local = &Local{Site: site}
		dial := c.Dial
		c.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
			if addr == site {
				return nil, errors.New("the site in this process is dialled")
			}
			return dial(ctx, addr)
		}
	}
}

// TestLocalFirst: the site in the process is asked before sites nearby, by calls. The
// others are asked for tokens that it lacks.
func TestLocalFirst(t *testing.T) {
	inBubble(t, fake.ThreeSites, beside("eu"), func(r *rig) {
		if _, h, ok := r.router.State("eu"); !ok || h.Reach != health.Up {
			r.t.Errorf("the site counts as %d, known %t", h.Reach, ok)
		}
		began := time.Now()
		if site, err := r.acquire(r.t, fake.Take); site != "eu" || err != nil || time.Since(began) != 0 {
			r.t.Errorf("%s, %v, in %v", site, err, time.Since(began))
		}
		c := Call{Moves: r.router.Movement(&samyav1.ReleaseRequest{}, 0)}
		c.Moves.Operation = &samyav1.Operation{Operation: &samyav1.Operation_Release{Release: &samyav1.ReleaseRequest{Entity: "acme", Tokens: 1}}}
		if err := r.router.Do(r.t.Context(), c); err != nil || c.Moves.Result.GetRelease().GetSite() != "eu" {
			r.t.Errorf("%v, %v", c.Moves.Result, err)
		}
		r.sites["eu"].OnBatch = func(context.Context, *samyav1.BatchRequest) (*samyav1.BatchResponse, error) {
			return &samyav1.BatchResponse{Site: "eu"}, nil
		}
		batch := &samyav1.BatchRequest{Atomic: true}
		c = Call{Moves: r.router.Movement(batch, 0)}
		c.Moves.Batch = batch
		if err := r.router.Do(r.t.Context(), c); err != nil || c.Moves.Granted.GetSite() != "eu" {
			r.t.Errorf("%v, %v", c.Moves.Granted, err)
		}
		r.sites["eu"].OnAcquire = func(context.Context, *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
			return nil, elsewhere(time.Second)
		}
		if site, err := r.acquire(r.t, fake.Take); site != "us" || err != nil {
			r.t.Errorf("%s, %v", site, err)
		}
	})
}

// TestLocalServesAgain: the site in the process says by itself whether it serves. Once it
// does, it is asked at once, whatever the last probe found, also if no other serves.
func TestLocalServesAgain(t *testing.T) {
	inBubble(t, fake.ThreeSites, beside("eu"), func(r *rig) {
		r.sites["eu"].OnAcquire = func(context.Context, *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
			return nil, apierr.Unreachable("eu")
		}
		r.sites["eu"].Serves(false)
		time.Sleep(2 * time.Second) //nolint:forbidigo // in a bubble
		if _, h, _ := r.router.State("eu"); h.Reach != health.Down {
			r.t.Errorf("a probe of a site that does not serve finds %d", h.Reach)
		}
		if site, err := r.acquire(r.t, fake.Take); site != "us" || err != nil {
			r.t.Errorf("%s, %v", site, err)
		}
		r.sites["us"].Serves(false)
		r.sites["au"].Serves(false)
		time.Sleep(2 * time.Second) //nolint:forbidigo // in a bubble
		r.sites["eu"].OnAcquire = nil
		if site, err := r.acquire(r.t, fake.Take); site != "eu" || err != nil {
			r.t.Errorf("%s, %v", site, err)
		}
	})
}

// TestLocalWithoutAnAnswer: a call of the site in the process ends with the caller's time,
// and its outcome is unknown.
func TestLocalWithoutAnAnswer(t *testing.T) {
	inBubble(t, fake.ThreeSites, beside("eu"), func(r *rig) {
		r.sites["eu"].OnAcquire = func(ctx context.Context, in *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
			<-ctx.Done()
			return nil, apierr.Unknown(in.GetRequestId(), "eu", context.Cause(ctx))
		}
		for _, c := range []struct {
			what   string
			within time.Duration
			cancel bool
			want   apierr.Reason
			took   time.Duration
		}{
			{"a deadline", time.Second, false, apierr.OutcomeUnknown, time.Second},
			{"a caller that gives up", time.Second, true, apierr.Canceled, time.Second},
		} {
			ctx, cancel := context.WithCancel(r.t.Context())
			if c.cancel {
				time.AfterFunc(c.within, cancel)
			} else {
				ctx, cancel = context.WithTimeout(r.t.Context(), c.within)
			}
			began := time.Now()
			_, err := r.within(ctx, &samyav1.AcquireRequest{Entity: "acme", Tokens: 1, Wait: durationpb.New(time.Second)})
			if got := apierr.ReasonOf(err); got != c.want || time.Since(began) != c.took {
				r.t.Errorf("%s: %v after %v", c.what, err, time.Since(began))
			}
			cancel()
		}
	})
}
