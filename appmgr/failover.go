package appmgr

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/mux"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// movement is an acquire, a release or an atomic batch that is tried at site after site.
// Each try after a try that may have run is numbered and names the sites that may have
// run earlier tries. These sites undo what they did; the answer of the last try alone
// counts.
type movement struct {
	attempt  uint32
	tried    []string // by the caller's earlier attempts
	notAfter time.Time
	// owned: the caller gave the request's id, so that it can repeat the request if an
	// answer of this app manager is lost.
	owned bool
	// patience bounds the time of a single try.
	patience time.Duration
	// operation is the request. Each try writes into it its number, from 0, and the sites
	// that earlier tries and attempts may have reached.
	operation *samyav1.Operation
	// result is the answer.
	result *samyav1.Result
	// batch is set instead of operation for an atomic batch, and granted is its answer.
	batch   *samyav1.BatchRequest
	granted *samyav1.BatchResponse

	// unclear are the sites of the tries that may have run.
	unclear []string
}

// attempted is the part of acquires, releases and atomic batches that tells of their
// attempts.
type attempted interface {
	GetRequestId() string
	GetAttempt() uint32
	GetTried() []string
	GetNotAfter() *timestamppb.Timestamp
	GetRelay() uint32
}

var (
	_ attempted = (*samyav1.AcquireRequest)(nil)
	_ attempted = (*samyav1.ReleaseRequest)(nil)
	_ attempted = (*samyav1.BatchRequest)(nil)
)

// checkAttempt checks the fields of a request that tell of its attempts.
func checkAttempt(r attempted) error {
	errs := []error{requestID(r.GetRequestId()), name.Attempt("attempt", int64(r.GetAttempt()))}
	bad := func(field, problem string) { errs = append(errs, &name.Error{Field: field, Problem: problem}) }
	for i, s := range r.GetTried() {
		if i == maxSites {
			bad("tried", fmt.Sprintf("%d sites, at most %d", len(r.GetTried()), maxSites))
			break
		}
		errs = append(errs, name.Site("tried", s))
	}
	switch t := r.GetNotAfter(); {
	case t != nil && t.CheckValid() != nil:
		bad("not_after", "no valid time")
	case t == nil && r.GetAttempt() > 1:
		bad("not_after", "missing: an attempt after the first has that of the first")
	}
	if r.GetAttempt() > 1 && r.GetRequestId() == "" {
		bad("request_id", "missing: an attempt after the first has that of the first")
	}
	if r.GetAttempt() <= 1 && len(r.GetTried()) > 0 {
		bad("tried", "only in attempts after the first")
	}
	if r.GetRelay() != 0 {
		bad("relay", "is for app managers to set")
	}
	return errors.Join(errs...)
}

// movement returns the movement of a request with the given wait.
func (s *service) movement(r attempted, wait time.Duration) *movement {
	m := &movement{
		attempt: max(1, r.GetAttempt()), tried: r.GetTried(), owned: r.GetRequestId() != "", patience: wait + s.cfg.TryTime,
	}
	if t := r.GetNotAfter(); t != nil {
		m.notAfter = t.AsTime()
	} else {
		// Sites count in whole milliseconds. Truncated, the time stays the same in a
		// repeat that copies it.
		m.notAfter = s.router.lasts(time.Now(), wait+s.cfg.RepeatTime)
	}
	return m
}

// next writes the number and the sites of a further try into the request.
func (m *movement) next() {
	if m == nil {
		return
	}
	relay, tried := uint32(len(m.unclear)), m.reached()
	if m.batch != nil {
		m.batch.Relay, m.batch.Tried = relay, tried
		return
	}
	switch op := m.operation.GetOperation().(type) {
	case *samyav1.Operation_Acquire:
		op.Acquire.Relay, op.Acquire.Tried = relay, tried
	case *samyav1.Operation_Release:
		op.Release.Relay, op.Release.Tried = relay, tried
	}
}

// reached returns the sites where attempts and tries so far may have run. nil stands for
// any site: the caller named no site for an attempt after the first.
func (m *movement) reached() []string {
	if m.attempt > 1 && len(m.tried) == 0 {
		return nil
	}
	sites := slices.Clone(m.tried)
	for _, s := range m.unclear {
		if !slices.Contains(sites, s) {
			sites = append(sites, s)
		}
	}
	return sites
}

// repeatable writes into e how the caller finds out the outcome of the request.
func (m *movement) repeatable(e *apierr.Error) {
	e.NotAfter, e.Tried = m.notAfter, m.reached()
	if m.attempt < name.MaxAttempt {
		e.Attempt = m.attempt + 1
		e.Message = fmt.Sprintf(
			"the request may or may not have been done; repeat id %q as attempt %d with the same not_after to find out", e.RequestID, e.Attempt)
	}
}

// final turns the outcome of the last try into the outcome of the movement. After a try,
// or an attempt of the caller, that may have run, only an outcome that holds for all
// tries settles anything.
func (r *router) final(c call, err error) error {
	if c.changes != nil {
		return r.finalChange(c, err)
	}
	if err == nil || c.moves == nil || len(c.moves.unclear) == 0 && c.moves.attempt == 1 {
		return err
	}
	e := apierr.From(err)
	switch e.Reason {
	case apierr.InvalidField, apierr.RequestIDReused, apierr.RequestExpired:
		// These reasons refuse the attempt itself.
		if len(c.moves.unclear) == 0 {
			return e
		}
	default:
		if e.Reason.Settles() {
			return e
		}
	}
	site := e.Site
	if n := len(c.moves.unclear); n > 0 {
		site = c.moves.unclear[n-1]
	}
	u := r.unknown(c, site, e)
	if e.Reason == apierr.Canceled {
		u.Reason = apierr.Canceled
	}
	return u
}

// change is an administrative change that is tried at site after site. Sites keep the
// decision on a request id, so that a later try learns of an earlier one.
type change struct {
	// unclear is the site of the last try that may have made the change; empty for none.
	unclear string
}

// finalChange turns the outcome of the last try into the outcome of a change. After a try
// that may have made the change, only the decision on its id settles anything. A refusal
// for want of time or sites concerns the last try alone.
func (r *router) finalChange(c call, err error) error {
	if err == nil || c.changes.unclear == "" {
		return err
	}
	e := apierr.From(err)
	if e.Reason.SettlesChange() || e.Reason == apierr.OutcomeUnknown {
		return e
	}
	u := r.unknown(c, c.changes.unclear, e)
	if e.Reason == apierr.Canceled {
		u.Reason = apierr.Canceled
	}
	return u
}

// allowance bounds a try: it is over with its context, at a time, or when its site is
// found to be down. A context for each try would cost more than the rest of the try.
type allowance struct {
	ctx  context.Context
	by   time.Time       // zero: none
	gone <-chan struct{} // nil: the site may be down for a while
}

// allowance returns the allowance of a try at a site. If another try can follow, the try
// has its own time and ends when its site is found to be down. Otherwise the caller's
// time could be over before a site that answers was asked.
func (c *call) allowance(ctx context.Context, l *link, more bool) allowance {
	a := allowance{ctx: ctx, by: c.until}
	if c.moves == nil || !c.moves.owned || !more {
		return a
	}
	if own := time.Now().Add(c.moves.patience); a.by.IsZero() || own.Before(a.by) {
		a.by = own
	}
	a.gone = l.life()
	return a
}

// over returns why the try is over, or nil if it is not.
func (a *allowance) over() error {
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
func (a *allowance) pause(d time.Duration) error {
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
func (c *call) over(ctx context.Context) error {
	whole := allowance{ctx: ctx, by: c.until}
	return whole.over()
}
