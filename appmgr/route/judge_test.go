package route

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/samya-db/samya/appmgr/fake"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/apierr/refuse"
	"github.com/samya-db/samya/internal/health"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestJudge: conclusions from a failed try about the request, about its site, and about
// asking another site.
func TestJudge(t *testing.T) {
	broken := status.Error(codes.Unavailable, "the connection broke")
	late, gone := context.DeadlineExceeded, context.Canceled
	for name, test := range map[string]struct {
		fate fate
		err  error
		// over is why the try is over; up says that the caller's time is over with it.
		over error
		up   bool
		// once: the caller gave no id, so that it cannot repeat the request; read: it is
		// no movement.
		once, read bool

		again         bool
		want          apierr.Reason
		indeterminate bool
		reach         health.Reach
		shunned       bool
	}{
		"never sent":                 {fate: unsent, err: broken, again: true, want: apierr.SiteUnavailable, reach: health.Down},
		"lost":                       {fate: lost, err: broken, again: true, want: apierr.OutcomeUnknown, indeterminate: true, reach: health.Down},
		"lost, cannot be repeated":   {fate: lost, err: broken, once: true, want: apierr.OutcomeUnknown, indeterminate: true, reach: health.Down},
		"a lost read":                {fate: lost, err: broken, read: true, again: true, want: apierr.SiteUnavailable, reach: health.Down},
		"a slow try":                 {fate: lost, err: late, over: late, again: true, want: apierr.OutcomeUnknown, indeterminate: true, reach: health.Up},
		"a slow try never sent":      {fate: unsent, err: late, over: late, again: true, want: apierr.SiteUnavailable, reach: health.Up},
		"the caller's time is up":    {fate: lost, err: late, over: late, up: true, want: apierr.OutcomeUnknown, indeterminate: true, reach: health.Up},
		"up before it was sent":      {fate: unsent, err: late, over: late, up: true, want: apierr.DeadlineExceeded, reach: health.Up},
		"the caller gave up":         {fate: lost, err: gone, over: gone, up: true, want: apierr.Canceled, indeterminate: true, reach: health.Up},
		"gave up before it was sent": {fate: unsent, err: gone, over: gone, up: true, want: apierr.Canceled, reach: health.Up},
		"overloaded":                 {fate: answered, err: apierr.Overload("us", 2*time.Second), again: true, want: apierr.Overloaded, reach: health.Up, shunned: true},
		"stopping":                   {fate: answered, err: apierr.ShuttingDown, again: true, want: apierr.ShuttingDown, reach: health.Down},
		"not let in":                 {fate: answered, err: apierr.Unauthenticated, again: true, want: apierr.SiteUnavailable, reach: health.Up},
		"not allowed":                {fate: answered, err: apierr.PermissionDenied, again: true, want: apierr.SiteUnavailable, reach: health.Up},
		"a full queue":               {fate: answered, err: apierr.QueueFull, again: true, want: apierr.QueueFull, reach: health.Up},
		"the site is cut off":        {fate: answered, err: apierr.SiteUnavailable, again: true, want: apierr.SiteUnavailable, reach: health.Up},
		"too late at the site":       {fate: answered, err: apierr.DeadlineExceeded, over: late, again: true, want: apierr.DeadlineExceeded, reach: health.Up},
		"too late for the caller":    {fate: answered, err: apierr.DeadlineExceeded, over: late, up: true, want: apierr.DeadlineExceeded, reach: health.Up},
		"too late by its own clock":  {fate: answered, err: apierr.DeadlineExceeded, want: apierr.DeadlineExceeded, reach: health.Up},
		"unknown to the site":        {fate: answered, err: apierr.Unknown("id", "us", nil), again: true, want: apierr.OutcomeUnknown, indeterminate: true, reach: health.Up},
		"unknown, time is up":        {fate: answered, err: apierr.Unknown("id", "us", nil), over: late, up: true, want: apierr.OutcomeUnknown, indeterminate: true, reach: health.Up},
		"canceled at the site":       {fate: answered, err: apierr.Canceled, again: true, want: apierr.OutcomeUnknown, indeterminate: true, reach: health.Up},
		"no tokens":                  {fate: answered, err: refuse.NoTokens("acme", "us", 2, 1, 0), want: apierr.OutOfTokens, reach: health.Up},
		"no tokens here":             {fate: answered, err: elsewhere(time.Second), again: true, want: apierr.OutOfTokens, reach: health.Up},
		"no tokens here, time is up": {fate: answered, err: elsewhere(time.Second), over: late, up: true, want: apierr.OutOfTokens, reach: health.Up},
		"no entity":                  {fate: answered, err: apierr.NotFound("acme"), want: apierr.EntityNotFound, reach: health.Up},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, []string{"us"}, nil, func(r *rig) {
				l := r.router.link("us")
				l.update(func(h *health.Health) { *h = health.Health{Reach: health.Up} })
				m := &Movement{attempt: 1, owned: !test.once}
				c := Call{RequestID: "id", Entity: "acme", Moves: m}
				if test.read {
					c.Moves, c.Read = nil, true
				}
				ctx, cancel := context.WithCancel(r.t.Context())
				defer cancel()
				switch {
				case test.up && errors.Is(test.over, gone):
					cancel()
				case test.up:
					c.Until = time.Now()
				}
				again, err := r.router.classify(ctx, test.over, c, l, test.fate, test.err)
				e := apierr.From(err)
				if again != test.again || e.Reason != test.want {
					r.t.Errorf("%v, again %t; want %s, again %t", err, again, test.want, test.again)
				}
				if e.RequestID != "id" || e.Entity != "acme" {
					r.t.Errorf("it does not say of what: %+v", e)
				}
				if got := slices.Equal(m.indeterminate, []string{"us"}); got != test.indeterminate || !got && len(m.indeterminate) > 0 {
					r.t.Errorf("indeterminate at %q, want that it is: %t", m.indeterminate, test.indeterminate)
				}
				h := l.state()
				if h.Reach != test.reach || h.Overloaded(time.Now()) != test.shunned {
					r.t.Errorf("the site counts as %d, shunned %t; want %d, %t", h.Reach, h.Overloaded(time.Now()), test.reach, test.shunned)
				}
			})
		})
	}
}

// elsewhere refuses an acquire of a key, of which other sites may have tokens after a time.
func elsewhere(retry time.Duration) *apierr.Error {
	e := refuse.NoTokens("acme", "us", 2, 1, retry)
	e.Elsewhere = true
	return e
}

// TestElsewhere: an acquire of a key asks site after site. If all refuse, the answer tells the
// soonest time at which any has tokens.
func TestElsewhere(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		var asked []string
		refusing := func(site string, retry time.Duration) func(context.Context, *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
			return func(_ context.Context, in *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
				if asked = append(asked, site); in.GetRelay() > 0 {
					r.t.Errorf("%s counts refusals as tries: %v", site, in)
				}
				return nil, elsewhere(retry)
			}
		}
		r.sites["us"].OnAcquire = refusing("us", 3*time.Second)
		r.sites["eu"].OnAcquire = refusing("eu", time.Second)
		if site, err := r.within(r.t.Context(), fake.Take); err != nil || site != "au" || len(asked) != 2 {
			r.t.Errorf("%s, %v, refused by %v", site, err, asked)
		}
		r.sites["au"].OnAcquire = refusing("au", 2*time.Second)
		_, err := r.within(r.t.Context(), fake.Take)
		if e := apierr.From(err); e == nil || e.Reason != apierr.OutOfTokens || e.RetryAfter != time.Second || e.Elsewhere || len(asked) != 5 {
			r.t.Errorf("%+v, refused by %v", e, asked)
		}
		// A site that could not be asked may have tokens.
		r.sites["au"].OnAcquire = func(context.Context, *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
			return nil, apierr.Overload("au", time.Second)
		}
		_, err = r.within(r.t.Context(), fake.Take)
		if e := apierr.From(err); e == nil || e.Reason != apierr.OutOfTokens || !e.Elsewhere || len(asked) != 7 {
			r.t.Errorf("%+v, refused by %v", e, asked)
		}
	})
}
