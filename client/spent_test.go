package client

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/mux"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestSpent: no attempt is made past the last number, or once no site may run it. A
// clock that steps back makes the time of a request no later, whatever it is by then.
func TestSpent(t *testing.T) {
	now := time.Unix(1_700_000_000, 123_456_789)
	m := newAcquire("e", 1, nil)
	m.expire(now, time.Minute)
	// Sites count whole milliseconds: a repeat has to tell the very same time.
	end := time.Unix(1_700_000_060, 123_000_000)
	if !m.notAfter.Equal(end) {
		t.Fatalf("it ends at %v", m.notAfter)
	}
	for _, step := range []time.Duration{time.Hour, -time.Hour, 0} {
		if m.expire(now.Add(step), 2*time.Minute); !m.notAfter.Equal(end) {
			t.Errorf("looked at %v later it ends at %v", step, m.notAfter)
		}
	}
	for at, spent := range map[time.Time]bool{now: false, end: false, end.Add(time.Nanosecond): true, end.Add(time.Hour): true} {
		if m.spent(at) != spent {
			t.Errorf("at %v it is spent: %v", at, !spent)
		}
	}
	for m.attempt < name.MaxAttempt {
		m.judge(nil, mux.Lost, errReset, "us")
	}
	if m.spent(now) {
		t.Errorf("attempt %d may not be made", m.attempt)
	}
	if m.judge(nil, mux.Lost, errReset, "us"); !m.spent(now) {
		t.Errorf("attempt %d may be made, the last is %d", m.attempt, uint32(name.MaxAttempt))
	}
}

// TestResumedAndGivenUp: the attempt before a resumed request may have been done. If the
// request is given up, or refused for now, its outcome stays unknown. A fresh request
// with such an end was not done.
func TestResumedAndGivenUp(t *testing.T) {
	for what, o := range map[string]outcome{
		"nothing was sent": unsent(),
		"overloaded":       said(&apierr.Error{Reason: apierr.Overloaded}, "us"),
		"unavailable":      said(&apierr.Error{Reason: apierr.SiteUnavailable}, "us"),
		"shutting down":    said(&apierr.Error{Reason: apierr.ShuttingDown}, "us"),
	} {
		for _, resumed := range []bool{false, true} {
			m := newAcquire("e", 1, nil)
			if resumed {
				m.resume(&Error{RequestID: "r", Attempt: 2, Tried: []string{"eu"}, NotAfter: time.Unix(1_700_000_000, 0)})
			}
			if m.judge(o.result, o.fate, o.err, o.site) {
				t.Errorf("%s: it is settled", what)
			}
			for _, over := range []error{context.DeadlineExceeded, context.Canceled, nil} {
				if unknown := errors.Is(m.final(over), ErrOutcomeUnknown); unknown != resumed {
					t.Errorf("%s, resumed %v, given up for %v: the outcome is unknown: %v", what, resumed, over, unknown)
				}
			}
		}
	}
}

// TestAnotherSiteBehindAConnection: another site is behind the connection by the time
// that a try is lost. The next attempt names the site that the try was sent to.
func TestAnotherSiteBehindAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		eu, us := w.site("eu", near), w.site("us", far)
		var next *samyav1.AcquireRequest
		us.answer = func(op *samyav1.Operation) *samyav1.Result {
			next = op.GetAcquire()
			return us.execute(op)
		}
		bubble(t, w, nil, "eu", func(c *Client) {
			eu.answers(func(op *samyav1.Operation) *samyav1.Result {
				eu.execute(op)
				for _, at := range c.targets {
					at.mu.Lock()
					if at.Address == "eu" {
						at.site = "ap"
					}
					at.mu.Unlock()
				}
				eu.cut()
				return nil
			})
			if _, err := c.Acquire(t.Context(), "acme/vm", 3); err != nil {
				t.Error(err)
			}
		})
		if next.GetAttempt() != 2 || !slices.Equal(next.GetTried(), []string{"eu"}) {
			t.Errorf("the second site is asked %v, want attempt 2 behind eu", next)
		}
		w.books(t, 3)
	})
}
