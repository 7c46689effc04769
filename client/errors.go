package client

import (
	"context"
	"errors"
	"time"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/mux"
)

// The kinds of errors, for errors.Is. With errors.As, an *Error has the details.
var (
	// ErrOutOfTokens: the tokens could not be found within the wait. The Error says
	// how many are left and when to ask again.
	ErrOutOfTokens = errors.New("out of tokens")
	// ErrExceedsLimit: more tokens are asked for than the limit of the entity, or of an
	// entity above it, so that they can never be granted. The Error says the limit.
	ErrExceedsLimit = errors.New("exceeds the limit")
	// ErrOutcomeUnknown: the operation may or may not have been done. The Error says
	// how to go on; see Resume.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	// ErrEntityNotFound: there is no entity of that name.
	ErrEntityNotFound = errors.New("entity not found")
	// ErrEntityExists: there is an entity of that name already.
	ErrEntityExists = errors.New("entity exists")
	// ErrParentNotFound: there is no entity of the parent's name.
	ErrParentNotFound = errors.New("parent not found")
	// ErrHasChildren: other entities stand below the entity to delete; see Subtree.
	ErrHasChildren = errors.New("entity has children")
	// ErrVersionMismatch: the entity does not have the expected version.
	ErrVersionMismatch = errors.New("version mismatch")
	// ErrLeaseNotFound: there is no such lease, or it has ended.
	ErrLeaseNotFound = errors.New("lease not found")
	// ErrInvalid: an argument has a forbidden value; the message names the argument and
	// its bounds.
	ErrInvalid = errors.New("invalid argument")
	// ErrRequestIDReused: the request id was used before with other arguments.
	ErrRequestIDReused = errors.New("request id reused")
	// ErrRequestExpired: the request was resumed too late, or this machine's clock is
	// behind the sites' clocks.
	ErrRequestExpired = errors.New("request expired")
	// ErrSuperseded: somebody else has made a later attempt of the same request.
	ErrSuperseded = errors.New("superseded")
	// ErrUnauthenticated: the targets do not know the caller: it shows no credentials, or
	// none that are good. Nothing was done.
	ErrUnauthenticated = errors.New("unauthenticated")
	// ErrPermissionDenied: the caller may not do this. Nothing was done.
	ErrPermissionDenied = errors.New("permission denied")
	// ErrOverloaded: all targets have more work than they can do in time, or this caller
	// makes more requests a second than it may. Nothing was done.
	ErrOverloaded = errors.New("overloaded")
	// ErrUnavailable: no target, or none of its sites, could be reached. Nothing was
	// done.
	ErrUnavailable = errors.New("unavailable")
	// ErrClosed: the client is closed.
	ErrClosed = errors.New("client closed")
)

// kinds maps the reasons of the API to the errors of this package. Other reasons have no
// kind; the Error tells their names.
var kinds = map[apierr.Reason]error{
	apierr.OutOfTokens:      ErrOutOfTokens,
	apierr.ExceedsLimit:     ErrExceedsLimit,
	apierr.OutcomeUnknown:   ErrOutcomeUnknown,
	apierr.EntityNotFound:   ErrEntityNotFound,
	apierr.EntityExists:     ErrEntityExists,
	apierr.ParentNotFound:   ErrParentNotFound,
	apierr.HasChildren:      ErrHasChildren,
	apierr.VersionMismatch:  ErrVersionMismatch,
	apierr.LeaseNotFound:    ErrLeaseNotFound,
	apierr.InvalidField:     ErrInvalid,
	apierr.OutOfRange:       ErrInvalid,
	apierr.BodyTooLarge:     ErrInvalid,
	apierr.RequestIDReused:  ErrRequestIDReused,
	apierr.RequestExpired:   ErrRequestExpired,
	apierr.Superseded:       ErrSuperseded,
	apierr.Unauthenticated:  ErrUnauthenticated,
	apierr.PermissionDenied: ErrPermissionDenied,
	apierr.Overloaded:       ErrOverloaded,
	apierr.RateLimited:      ErrOverloaded,
	apierr.QueueFull:        ErrOverloaded,
	apierr.SiteUnavailable:  ErrUnavailable,
	apierr.SiteDraining:     ErrUnavailable,
	apierr.LeaseMoved:       ErrUnavailable,
	apierr.NoQuorum:         ErrUnavailable,
	apierr.ShuttingDown:     ErrUnavailable,
}

// Error is why a call failed.
type Error struct {
	// Reason is the reason's name in the API, such as "OUT_OF_TOKENS".
	Reason string
	// Message says what went wrong, for people.
	Message string
	// Entity and RequestID are the entity and the id of the call; Site is the site that
	// answered, if known.
	Entity, RequestID, Site string
	// Lacking is the entity that lacked tokens or has too low a limit, unless it is
	// Entity itself. It is an entity above, or an entity of AcquireAll.
	Lacking string
	// Left is how many tokens the site that answered can still grant, of Lacking if set;
	// -1 if the site did not tell. It is set with ErrOutOfTokens.
	Left int64
	// Limit is the exceeded limit, of Lacking if set, as the site knows it; -1 if the
	// site did not tell. It is set with ErrExceedsLimit.
	Limit int64
	// RetryAfter is how long to wait before asking again; 0: no advice.
	RetryAfter time.Duration
	// Attempt is the number of the next attempt. It is above 0 only with
	// ErrOutcomeUnknown: then RequestID, Attempt, NotAfter and Tried are all a resumed
	// request needs. They may be kept anywhere; see Resume.
	Attempt uint32
	// NotAfter is the time until which the request can be resumed.
	NotAfter time.Time
	// Tried are the sites that may have done the request; none: any site.
	Tried []string
	// Violations are the fields at fault, each with the bound that its value breaks. They are
	// set with ErrInvalid if a target refused the fields.
	Violations []struct{ Field, Problem string }
	// Err is the cause, if any: an error of a context or of gRPC, or ErrClosed.
	Err error
}

// Error implements error.
func (e *Error) Error() string {
	s := "samya: " + e.Message
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is e's kind.
func (e *Error) Is(target error) bool {
	kind, ok := kinds[apierr.Reason(e.Reason)]
	return ok && kind == target
}

// public turns an error of the API into an Error.
func public(e *apierr.Error) *Error {
	p := &Error{
		Reason: string(e.Reason), Message: e.Message, Entity: e.Entity, RequestID: e.RequestID, Site: e.Site, Lacking: e.Lacking,
		Left: -1, Limit: -1, RetryAfter: e.RetryAfter, Attempt: e.Attempt, NotAfter: e.NotAfter, Tried: e.Tried,
	}
	if p.Message == "" {
		p.Message = e.Reason.Title()
	}
	for _, v := range e.Violations {
		p.Violations = append(p.Violations, struct{ Field, Problem string }{v.Field, v.Problem})
	}
	if e.Left != nil {
		p.Left = *e.Left
	}
	if e.Limit != nil {
		p.Limit = *e.Limit
	}
	// A status that carries a reason adds nothing else.
	if e.Err != nil && (errors.Is(e.Err, context.Canceled) || errors.Is(e.Err, context.DeadlineExceeded) ||
		errors.Is(e.Err, ErrClosed) || e.Reason == apierr.OutcomeUnknown || e.Reason == apierr.SiteUnavailable) {
		p.Err = e.Err
	}
	return p
}

// ended returns the error of a call that was over, for the cause err, before anything was
// done.
func ended(err error) *apierr.Error {
	switch {
	case errors.Is(err, context.Canceled):
		return &apierr.Error{Reason: apierr.Canceled, Message: "canceled before anything was done", Err: err}
	case errors.Is(err, context.DeadlineExceeded):
		return &apierr.Error{Reason: apierr.DeadlineExceeded, Message: "the deadline passed before anything was done", Err: err}
	case errors.Is(err, ErrClosed), errors.Is(err, mux.ErrClosed):
		return &apierr.Error{Reason: apierr.ShuttingDown, Message: "nothing was done", Err: ErrClosed}
	}
	return &apierr.Error{Reason: apierr.SiteUnavailable, Message: "no target could be reached; nothing was done", Err: err}
}
