package client

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/mux"
	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/spanctx"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// errNoResult is the outcome of a try with an answer to another question.
var errNoResult = errors.New("an answer to something else")

// movement is an acquire, of a single entity or of several, or a release on its way to an
// answer. It decides how the outcome of a try changes the next try. It knows neither
// targets nor clock.
type movement struct {
	// id is empty until the first try, unless the caller has chosen it.
	id string
	// ticket is the place of the id in a session, if any. Requests of the session below acked
	// are acknowledged. beyond: a target that does not know sessions was tried.
	ticket   ticket
	acked    uint64
	beyond   bool
	notAfter time.Time
	// attempt is the number of the next attempt, from 1.
	attempt uint32
	// tried are the sites that may have done earlier attempts. anywhere: unknown sites
	// may have done them too.
	tried    []string
	anywhere bool
	// indeterminate: a try of this call may have been done, and its attempt is not settled.
	indeterminate bool
	// last is the error of the last try; nil after an answer.
	last *apierr.Error

	wait  time.Duration // how long an acquire may wait at a site
	home  string        // the site to be asked first; empty: any
	fault error         // of an option
	// trace is the span of the movement; nil for none.
	trace *spanctx.Context

	// Exactly one is set.
	acquire *samyav1.AcquireRequest
	release *samyav1.ReleaseRequest
	all     *samyav1.BatchRequest
}

// resume goes on from the error of an earlier call.
func (m *movement) resume(e *Error) {
	m.id, m.attempt, m.notAfter = e.RequestID, e.Attempt, e.NotAfter
	m.tried, m.anywhere = slices.Clone(e.Tried), len(e.Tried) == 0
}

// entity returns the name of the entity; empty if there are several.
func (m *movement) entity() string {
	if m.acquire != nil {
		return m.acquire.GetEntity()
	}
	return m.release.GetEntity()
}

// next returns the number of the next try, and the sites it names.
func (m *movement) next() (attempt uint32, tried []string) {
	attempt, tried = m.attempt, m.tried
	if attempt == 1 {
		attempt = 0
	}
	if m.anywhere || attempt == 0 {
		tried = nil
	}
	return attempt, tried
}

// operation returns the next try.
func (m *movement) operation() *samyav1.Operation {
	attempt, tried := m.next()
	if r := m.acquire; r != nil {
		r.RequestId, r.Attempt, r.Tried, r.Acknowledged = m.id, attempt, tried, m.acknowledges()
		if r.NotAfter == nil && !r.GetDryRun() {
			r.NotAfter = timestamppb.New(m.notAfter)
		}
		return &samyav1.Operation{Operation: &samyav1.Operation_Acquire{Acquire: r}}
	}
	r := m.release
	r.RequestId, r.Attempt, r.Tried, r.Acknowledged = m.id, attempt, tried, m.acknowledges()
	if r.NotAfter == nil {
		r.NotAfter = timestamppb.New(m.notAfter)
	}
	return &samyav1.Operation{Operation: &samyav1.Operation_Release{Release: r}}
}

// judge records the outcome of a try at a target of the given site; site is empty if
// unknown. It reports whether the request is settled; if not, another try may be made.
func (m *movement) judge(result *samyav1.Result, fate mux.Fate, err error, site string) (settled bool) {
	if fate == mux.Answered && !m.answeredBy(result) {
		fate, err = mux.Lost, errNoResult
	}
	switch fate {
	case mux.Answered:
		if f := result.GetFailure(); f != nil {
			return m.refused(apierr.FromFailure(f), site)
		}
		m.last = nil
		return true
	case mux.Lost:
		m.mayHaveRun(site)
		m.last = &apierr.Error{Reason: apierr.OutcomeUnknown, Site: site, Err: err}
	default:
		m.last = ended(err)
		switch e := apierr.From(err); e.Reason {
		case apierr.InvalidField, apierr.BodyTooLarge, apierr.Unauthenticated, apierr.PermissionDenied:
			// The request cannot be sent to anybody, or no target takes it from this
			// caller.
			m.last = e
			return true
		}
	}
	return false
}

// answeredBy reports whether r can be the result of the movement.
func (m *movement) answeredBy(r *samyav1.Result) bool {
	return r.GetFailure() != nil || m.release == nil && r.GetAcquire() != nil || m.release != nil && r.GetRelease() != nil
}

// refused records a failure in an answer. It reports whether the request is settled.
func (m *movement) refused(e *apierr.Error, site string) (settled bool) {
	m.last = e
	switch e.Reason {
	case apierr.Overloaded, apierr.RateLimited, apierr.QueueFull, apierr.ShuttingDown, apierr.SiteUnavailable, apierr.DeadlineExceeded,
		apierr.SiteDraining, apierr.LeaseMoved:
		// Nothing of this attempt was done.
		return false
	case apierr.OutcomeUnknown, apierr.Canceled, apierr.Internal:
		next := max(m.attempt+1, e.Attempt)
		switch {
		case e.Attempt > 0 && len(e.Tried) == 0:
			m.mayHaveRun("")
		case e.Attempt > 0:
			m.mayHaveRun(e.Tried...)
		default:
			m.mayHaveRun(cmp.Or(e.Site, site))
		}
		if !m.dry() {
			m.attempt = next
		}
		return false
	}
	return true
}

// mayHaveRun notes that the last try may have been done at the sites; an empty name
// stands for an unknown site.
func (m *movement) mayHaveRun(sites ...string) {
	if m.dry() {
		return
	}
	m.attempt++
	m.indeterminate = true
	for _, s := range sites {
		switch {
		case s == "":
			m.anywhere = true
		case !slices.Contains(m.tried, s):
			m.tried = append(m.tried, s)
		}
	}
}

// spent reports whether no further attempt can be made, by its number or at the time now.
func (m *movement) spent(now time.Time) bool {
	return m.attempt > name.MaxAttempt || now.After(m.notAfter)
}

// final returns the error of a request that failed as its last try did, or that was given
// up for the cause over. After an attempt that may have been done, only an outcome that
// holds for all attempts settles the request.
func (m *movement) final(over error) error {
	e := m.last
	switch {
	case m.dry() && over != nil:
		// A dry run moves nothing, so its outcome does not matter.
		e = ended(over)
	case !m.settles(e) && over != nil:
		e = m.unknown(over)
	case !m.settles(e):
		e = m.unknown(e)
	case over != nil && (e == nil || e.Reason == apierr.DeadlineExceeded):
		e = ended(over)
	}
	told := *e
	if over != nil && !errors.Is(e, over) {
		told.Err = errors.Join(over, e.Err)
	}
	told.RequestID, told.Entity = cmp.Or(e.RequestID, m.named()), cmp.Or(e.Entity, m.entity())
	return public(&told)
}

// invalid returns the error of a movement with a faulty option.
func (m *movement) invalid() error {
	return public(&apierr.Error{Reason: apierr.InvalidField, Message: m.fault.Error(), Entity: m.entity(), RequestID: m.named()})
}

// dry reports whether the movement is a dry run.
func (m *movement) dry() bool { return m.acquire.GetDryRun() }

// settles reports whether ending with e leaves nothing open.
func (m *movement) settles(e *apierr.Error) bool {
	if !m.indeterminate && m.attempt == 1 {
		return true
	}
	if e == nil {
		return false
	}
	switch e.Reason {
	case apierr.InvalidField, apierr.RequestIDReused, apierr.RequestExpired:
		// These reasons refuse a resumed attempt itself.
		return !m.indeterminate
	}
	return e.Reason.Settles()
}

// unknown returns the error that tells how to go on.
func (m *movement) unknown(cause error) *apierr.Error {
	e := &apierr.Error{
		Reason: apierr.OutcomeUnknown, RequestID: m.named(), NotAfter: m.notAfter, Entity: m.entity(), Err: cause,
		Message: fmt.Sprintf("the request may or may not have been done; resume %q as attempt %d to find out", m.id, m.attempt),
	}
	if m.last != nil {
		e.Site = m.last.Site
	}
	if e.Attempt = m.attempt; !m.anywhere {
		e.Tried = slices.Clone(m.tried)
	}
	return e
}
