package route

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/mux"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// Movement is an acquire, a release or an atomic batch that is tried at site after site.
// Each try after a try that may have run is numbered and names the sites that may have
// run earlier tries. These sites undo what they did; the answer of the last try alone
// counts.
type Movement struct {
	attempt  uint32
	tried    []string // by the caller's earlier attempts
	NotAfter time.Time
	// owned: the caller gave the request's id, so that it can repeat the request if an
	// answer of this app manager is lost.
	owned bool
	// patience bounds the time of a single try.
	patience time.Duration
	// Operation is the request. Each try writes into it its number, from 0, and the sites
	// that earlier tries and attempts may have reached.
	Operation *samyav1.Operation
	// Result is the answer.
	Result *samyav1.Result
	// Batch is set instead of operation for an atomic batch, and granted is its answer.
	Batch   *samyav1.BatchRequest
	Granted *samyav1.BatchResponse

	// indeterminate are the sites of the tries that may have run.
	indeterminate []string
}

// Attempted is the part of acquires, releases and atomic batches that tells of their
// attempts.
type Attempted interface {
	GetRequestId() string
	GetAttempt() uint32
	GetTried() []string
	GetNotAfter() *timestamppb.Timestamp
	GetRelay() uint32
}

var (
	_ Attempted = (*samyav1.AcquireRequest)(nil)
	_ Attempted = (*samyav1.ReleaseRequest)(nil)
	_ Attempted = (*samyav1.BatchRequest)(nil)
)

// Movement returns the movement of a request with the given wait.
func (r *Router) Movement(req Attempted, wait time.Duration) *Movement {
	m := &Movement{
		attempt: max(1, req.GetAttempt()), tried: req.GetTried(), owned: req.GetRequestId() != "", patience: wait + r.cfg.TryTime,
	}
	if t := req.GetNotAfter(); t != nil {
		m.NotAfter = t.AsTime()
	} else {
		// Sites count in whole milliseconds. Truncated, the time stays the same in a
		// repeat that copies it.
		m.NotAfter = r.lasts(time.Now(), wait+r.cfg.RepeatTime)
	}
	return m
}

// next writes the number and the sites of a further try into the request.
func (m *Movement) next() {
	if m == nil {
		return
	}
	relay, tried := uint32(len(m.indeterminate)), m.reached()
	if m.Batch != nil {
		m.Batch.Relay, m.Batch.Tried = relay, tried
		return
	}
	switch op := m.Operation.GetOperation().(type) {
	case *samyav1.Operation_Acquire:
		op.Acquire.Relay, op.Acquire.Tried = relay, tried
	case *samyav1.Operation_Release:
		op.Release.Relay, op.Release.Tried = relay, tried
	}
}

// reached returns the sites where attempts and tries so far may have run. nil stands for
// any site: the caller named no site for an attempt after the first.
func (m *Movement) reached() []string {
	if m.attempt > 1 && len(m.tried) == 0 {
		return nil
	}
	sites := slices.Clone(m.tried)
	for _, s := range m.indeterminate {
		if !slices.Contains(sites, s) {
			sites = append(sites, s)
		}
	}
	return sites
}

// repeatable writes into e how the caller finds out the outcome of the request.
func (m *Movement) repeatable(e *apierr.Error) {
	e.NotAfter, e.Tried = m.NotAfter, m.reached()
	if m.attempt < name.MaxAttempt {
		e.Attempt = m.attempt + 1
		e.Message = fmt.Sprintf(
			"the request may or may not have been done; repeat id %q as attempt %d with the same not_after to find out", e.RequestID, e.Attempt)
	}
}

// final turns the outcome of the last try into the outcome of the movement. After a try,
// or an attempt of the caller, that may have run, only an outcome that holds for all
// tries settles anything.
func (r *Router) final(c Call, err error) error {
	if c.Changes != nil {
		return r.finalChange(c, err)
	}
	if err == nil || c.Moves == nil || len(c.Moves.indeterminate) == 0 && c.Moves.attempt == 1 {
		return err
	}
	e := apierr.From(err)
	switch e.Reason {
	case apierr.InvalidField, apierr.RequestIDReused, apierr.RequestExpired:
		// These reasons refuse the attempt itself.
		if len(c.Moves.indeterminate) == 0 {
			return e
		}
	default:
		if e.Reason.Settles() {
			return e
		}
	}
	site := e.Site
	if n := len(c.Moves.indeterminate); n > 0 {
		site = c.Moves.indeterminate[n-1]
	}
	u := r.Unknown(c, site, e)
	if e.Reason == apierr.Canceled {
		u.Reason = apierr.Canceled
	}
	return u
}

// Change is an administrative change that is tried at site after site. Sites keep the
// decision on a request id, so that a later try learns of an earlier one.
type Change struct {
	// indeterminate is the site of the last try that may have made the change; empty for none.
	indeterminate string
}

// finalChange turns the outcome of the last try into the outcome of a change. After a try
// that may have made the change, only the decision on its id settles anything. A refusal
// for want of time or sites concerns the last try alone.
func (r *Router) finalChange(c Call, err error) error {
	if err == nil || c.Changes.indeterminate == "" {
		return err
	}
	e := apierr.From(err)
	if e.Reason.SettlesChange() || e.Reason == apierr.OutcomeUnknown {
		return e
	}
	u := r.Unknown(c, c.Changes.indeterminate, e)
	if e.Reason == apierr.Canceled {
		u.Reason = apierr.Canceled
	}
	return u
}

// deadline bounds a try: it is over with its context, at a time, or when its site is
// found to be down. A context for each try would cost more than the rest of the try.
type deadline struct {
	ctx  context.Context
	by   time.Time       // zero: none
	gone <-chan struct{} // nil: the site may be down for a while
}

// deadline returns the deadline of a try at a site. If another try can follow, the try
// has its own time and ends when its site is found to be down. Otherwise the caller's
// time could be over before a site that answers was asked.
func (c *Call) deadline(ctx context.Context, l *link, more bool) deadline {
	a := deadline{ctx: ctx, by: c.Until}
	if c.Moves == nil || !c.Moves.owned || !more {
		return a
	}
	if own := time.Now().Add(c.Moves.patience); a.by.IsZero() || own.Before(a.by) {
		a.by = own
	}
	a.gone = l.life()
	return a
}

// over returns why the try is over, or nil if it is not.
func (a *deadline) over() error {
	if err := a.ctx.Err(); err != nil {
		return err
	}
	select {
	case <-a.gone:
		return mux.ErrGone
	default:
	}
	if !a.by.IsZero() && !time.Now().Before(a.by) {
		return context.DeadlineExceeded
	}
	return nil
}

// pause waits for d or until the try is over. It returns why the try is over, or nil.
func (a *deadline) pause(d time.Duration) error {
	if d <= 0 {
		return a.over()
	}
	if !a.by.IsZero() {
		d = max(0, min(d, time.Until(a.by)))
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-a.ctx.Done():
	case <-a.gone:
	case <-t.C:
	}
	return a.over()
}

// over returns why the caller's time is up, or nil if it is not.
func (c *Call) over(ctx context.Context) error {
	whole := deadline{ctx: ctx, by: c.Until}
	return whole.over()
}
