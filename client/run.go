package client

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/health"
	"github.com/samya-db/samya/internal/mux"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// isClosing reports whether err says that the connection is closed already.
func isClosing(err error) bool { return status.Code(err) == codes.Canceled }

// over returns why a call must end: its context, its deadline, or the end of its client.
// It returns nil if the call may go on.
func (c *Client) over(ctx context.Context, deadline, now time.Time) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case c.ctx.Err() != nil:
		return ErrClosed
	case !now.Before(deadline):
		return context.DeadlineExceeded
	}
	return nil
}

// move makes a movement at target after target until it is settled or its time is over.
// Its error is an *Error.
func (c *Client) move(ctx context.Context, m *movement) (*samyav1.Result, error) {
	if m.fault != nil {
		return nil, m.invalid()
	}
	if err := c.enter(); err != nil {
		return nil, m.final(err)
	}
	defer c.leave()
	ctx, span := m.traced(ctx)
	result, err := c.tries(ctx, m)
	c.sessions.over(m, result)
	if span != nil {
		m.endSpan(span, err)
	}
	return result, err
}

// tries is move for a client that is open.
func (c *Client) tries(ctx context.Context, m *movement) (*samyav1.Result, error) {
	now := time.Now()
	deadline := c.deadline(ctx, m.wait, now)
	m.expire(deadline, c.cfg.RepeatTime)
	t := tour{c: c, takes: m.release == nil}
	m.home, _ = c.home(m.home)
	t.start(now, m.home)
	for {
		at, more := t.target()
		if at == nil {
			if !t.pause(ctx, deadline, now) {
				return nil, m.final(c.over(ctx, deadline, time.Now()))
			}
			now = time.Now()
			m.home, _ = c.home(m.home)
			t.start(now, m.home)
			continue
		}
		site := at.name()
		result, fate, err := c.try(ctx, at, m, c.until(deadline, now, m.wait, more))
		if m.judge(result, fate, err, site) {
			if m.last == nil {
				return result, nil
			}
			return nil, m.final(nil)
		}
		now = time.Now()
		t.learn(at, fate, m.last, now)
		if err := c.over(ctx, deadline, now); err != nil {
			return nil, m.final(err)
		}
		if m.spent(now) {
			return nil, m.final(nil)
		}
		if m.last.Reason == apierr.LeaseMoved {
			m.home = c.heir(m.last, site)
			t.moved(now, m.home)
		}
	}
}

// until returns when a try ends: a try has its own time if another target can be asked.
func (c *Client) until(deadline, now time.Time, wait time.Duration, more bool) time.Time {
	if try := now.Add(wait + c.cfg.TryTime); more && try.Before(deadline) {
		return try
	}
	return deadline
}

// learn records the outcome of a try in the health of its target.
func (t *tour) learn(at *target, fate mux.Fate, e *apierr.Error, now time.Time) {
	switch {
	case fate != mux.Answered:
		return
	case e.Reason == apierr.Overloaded:
		at.update(func(h *health.Health) { h.Refused(now, e.RetryAfter) })
	case e.Reason == apierr.ShuttingDown:
		at.update((*health.Health).Broken)
	case e.Reason == apierr.SiteDraining && e.Site != "" && e.Site == at.name():
		at.shun(now)
	}
	t.retryAfter = max(t.retryAfter, e.RetryAfter)
}

// expire sets the time after which no site executes the request, unless it is resumed.
// Sites count in whole milliseconds.
func (m *movement) expire(deadline time.Time, repeat time.Duration) {
	if m.notAfter.IsZero() {
		m.notAfter = deadline.Add(repeat).Truncate(time.Millisecond)
	}
}

// ask makes a unary call that may be repeated without harm, at target after target, until
// it is answered or its time is over. Unless q.site is empty, it asks only targets that
// may answer for the site. Its error is an *Error.
func (c *Client) ask(ctx context.Context, q question) error {
	if err := c.enter(); err != nil {
		return q.failed(ended(err))
	}
	defer c.leave()
	now := time.Now()
	deadline := c.deadline(ctx, q.wait, now)
	// The caller's own context says why a call is over. The context of the tries ends
	// with the client as well.
	tries, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	t := tour{c: c}
	if settled := q.settleHome(c); settled {
		return q.failed(q.end(nil))
	}
	t.start(now, q.site)
	for {
		at, more := t.target()
		if at == nil {
			if !t.pause(ctx, deadline, now) {
				return q.failed(q.end(c.over(ctx, deadline, time.Now())))
			}
			now = time.Now()
			if settled := q.settleHome(c); settled {
				return q.failed(q.end(nil))
			}
			t.start(now, q.site)
			continue
		}
		site := at.name()
		if q.site != "" && site != "" && site != q.site {
			q.last = apierr.New(apierr.SiteUnavailable, "site %q is needed, and cannot be reached", q.site)
			continue
		}
		fate, err := q.invoke(tries, at, c.until(deadline, now, q.wait, more))
		if err == nil {
			return nil
		}
		now = time.Now()
		settled := q.judge(fate, err)
		if site == "" && q.foreign() {
			settled = false
		}
		t.learn(at, fate, q.last, now)
		if settled {
			return q.failed(q.end(nil))
		}
		if over := c.over(ctx, deadline, now); over != nil {
			return q.failed(q.end(over))
		}
		if q.last.Reason == apierr.LeaseMoved {
			if heir := c.heir(q.last, site); t.moved(now, heir) {
				q.site = heir
			}
		}
	}
}

// question is a unary call that may be repeated.
type question struct {
	method string
	req    proto.Message
	resp   proto.Message
	// site, if set, is the only site that can answer.
	site string
	// moves: the call changes something, so that a lost answer matters.
	moves             bool
	entity, requestID string
	// wait is how long a target may wait before it answers.
	wait time.Duration

	// last is the error of the last try. lost: an earlier try may have been done.
	last *apierr.Error
	lost bool
}

// invoke makes the call at a target.
func (q *question) invoke(ctx context.Context, at *target, by time.Time) (mux.Fate, error) {
	if err := at.enter(); err != nil {
		return mux.Unsent, err
	}
	defer at.leave()
	ctx, cancel := context.WithDeadline(ctx, by)
	defer cancel()
	return at.invoke(ctx, q.method, q.req, q.resp)
}

// judge records the outcome of a failed try. It reports whether the question is settled;
// if not, another try may be made.
func (q *question) judge(fate mux.Fate, err error) (settled bool) {
	if fate != mux.Answered {
		q.lost = q.lost || fate == mux.Lost
		q.last = apierr.New(apierr.SiteUnavailable, "no target answers")
		q.last.Err = err
		return false
	}
	q.last = apierr.FromGRPC(err)
	switch q.last.Reason {
	case apierr.Overloaded, apierr.RateLimited, apierr.QueueFull, apierr.ShuttingDown, apierr.SiteUnavailable, apierr.DeadlineExceeded,
		apierr.SiteDraining, apierr.LeaseMoved:
		return false
	case apierr.OutcomeUnknown, apierr.Canceled:
		q.lost = true
		return false
	case apierr.Internal:
		// A change may have been made before the error.
		q.lost = true
		return !q.moves
	}
	return true
}

// foreign reports whether a target refused the question as one for another site. A target
// whose name is not known yet may be any site.
func (q *question) foreign() bool {
	return q.site != "" && q.last.Reason == apierr.InvalidField &&
		slices.ContainsFunc(q.last.Violations, func(v apierr.Violation) bool { return v.Field == "lease" })
}

// settleHome has the question go to the heir of a site that has left. It reports that the
// question is settled if the site was written off: nobody knows the lease any more.
func (q *question) settleHome(c *Client) (settled bool) {
	home, lost := c.home(q.site)
	if lost && q.moves && q.lost {
		// Whether the lost site had done it nobody knows.
		q.last = apierr.New(apierr.SiteUnavailable, "site %s was written off", home)
		return true
	}
	if lost {
		q.last = apierr.New(apierr.LeaseNotFound, "site %s was written off, and its leases have ended", home)
		q.last.Site = home
		return true
	}
	if home != "" {
		q.site = home
	}
	return false
}

// end returns the error of a call that was given up for the cause over, or that its last
// try has settled. After a change that may have been made, only an outcome that holds for
// all tries of the change settles anything.
func (q *question) end(over error) *apierr.Error {
	switch last := q.last; {
	case q.moves && q.lost && (over != nil || !last.Reason.SettlesChange()):
		e := apierr.New(apierr.OutcomeUnknown, "it may or may not have been done; a repeat does no harm")
		if e.Err = over; over == nil {
			e.Err = last
		}
		return e
	case over != nil && !errors.Is(over, context.DeadlineExceeded), last == nil:
		return ended(over)
	case over != nil:
		e := *last
		e.Err = errors.Join(over, last.Err)
		return &e
	}
	return q.last
}

// failed returns the error for the caller.
func (q *question) failed(e *apierr.Error) error {
	told := *e
	told.Entity = cmp.Or(told.Entity, q.entity)
	told.RequestID = cmp.Or(told.RequestID, q.requestID)
	// Only Resume goes on with attempts, and a question cannot be resumed.
	told.Attempt = 0
	return public(&told)
}
