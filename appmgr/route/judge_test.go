package route

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/apierr/refuse"
	"github.com/samya-db/samya/internal/health"
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
