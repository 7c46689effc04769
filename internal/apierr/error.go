package apierr

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/samya-db/samya/internal/name"
)

// Error is a refusal or failure as clients see it. Only Reason is always set.
type Error struct {
	// Reason is the machine-readable reason.
	Reason Reason
	// Message tells the reason to people: a sentence without a full stop, safe to show to
	// a client. Empty: the reason's title.
	Message string
	// Violations names the fields at fault; set with InvalidField.
	Violations []Violation
	// Left is how many tokens the answering site can still grant, of Lacking if set; nil
	// if unknown. Set with OutOfTokens.
	Left *int64
	// Limit is the limit that the tokens asked for exceed, of Lacking if set; nil if
	// unknown. Set with ExceedsLimit.
	Limit *int64
	// RetryAfter is how long to wait before trying again; zero: no advice.
	RetryAfter time.Duration
	// RequestID is the request's id: with OutcomeUnknown, the id to repeat.
	RequestID string
	// Site is the site concerned: with OutcomeUnknown, the site to repeat at.
	Site string
	// Entity is the entity concerned.
	Entity string
	// Lacking is the entity that lacks tokens, lacks room for another waiting acquire, or
	// has too low a limit; empty if it is Entity. It is an entity above Entity, or an
	// entity of an atomic batch.
	Lacking string
	// Elsewhere: other sites may have the tokens; nothing was done here, and they may be asked.
	// Set with OutOfTokens.
	Elsewhere bool
	// Attempt, NotAfter and Tried are given with OutcomeUnknown if the request can be
	// repeated at any site. The repeat has RequestID, the same body, and these three
	// values. An empty Tried then means any site.
	Attempt  uint32
	NotAfter time.Time
	Tried    []string
	// Err is the cause. Error() tells it, errors.Is and errors.As find it, and it is
	// never sent to a client.
	Err error
}

// Violation is a field at fault and its rule.
type Violation struct {
	// Field is the field's name in the API, such as "tokens".
	Field string `json:"field"`
	// Problem says how the field is wrong and names the bound.
	Problem string `json:"problem"`
}

// New returns an Error with a formatted message.
func New(r Reason, format string, args ...any) *Error {
	return &Error{Reason: r, Message: fmt.Sprintf(format, args...)}
}

// Invalid returns an InvalidField error about a single field.
func Invalid(field, problem string) *Error {
	return InvalidFields(Violation{Field: field, Problem: problem})
}

// InvalidFields returns an InvalidField error about one or more fields.
func InvalidFields(vs ...Violation) *Error {
	parts := make([]string, len(vs))
	for i, v := range vs {
		parts[i] = v.Field + ": " + v.Problem
	}
	return &Error{Reason: InvalidField, Message: strings.Join(parts, "; "), Violations: vs}
}

// FromName turns errors of package name, also joined errors, into an InvalidField error,
// and any other error as [From] does. It returns nil for nil.
func FromName(err error) *Error {
	if err == nil {
		return nil
	}
	if vs := violations(err, nil); len(vs) > 0 {
		return InvalidFields(vs...)
	}
	return From(err)
}

// violations appends the name.Errors in err's tree to vs.
func violations(err error, vs []Violation) []Violation {
	switch e := err.(type) { //nolint:errorlint // the tree is walked here, node by node
	case *name.Error:
		return append(vs, Violation{Field: e.Field, Problem: e.Problem})
	case interface{ Unwrap() []error }:
		for _, sub := range e.Unwrap() {
			vs = violations(sub, vs)
		}
	case interface{ Unwrap() error }:
		return violations(e.Unwrap(), vs)
	}
	return vs
}

// LackedBy sets the entity that lacked the wanted tokens, or has too low a limit, if it
// is not the entity asked for tokens. It changes e and returns it.
func (e *Error) LackedBy(lacking string, wanted int64) *Error {
	e.Lacking = lacking
	of := cmp.Or(e.Entity, "several entities")
	switch {
	case e.Limit != nil:
		e.Message = fmt.Sprintf("%d tokens of %s wanted, the limit of %s is %d", wanted, of, lacking, *e.Limit)
	case e.Left != nil:
		e.Message = fmt.Sprintf("%d tokens of %s wanted, %d left of %s", wanted, of, *e.Left, lacking)
	}
	return e
}

// NotFound returns an EntityNotFound error.
func NotFound(entity string) *Error {
	return &Error{Reason: EntityNotFound, Message: fmt.Sprintf("no entity %q", entity), Entity: entity}
}

// Overload returns an Overloaded error of site (empty: the answering process).
func Overload(site string, retryAfter time.Duration) *Error {
	return &Error{
		Reason:     Overloaded,
		Message:    "more work than can be done in time; nothing was done",
		RetryAfter: retryAfter,
		Site:       site,
	}
}

// Unreachable returns the SiteUnavailable error for a site that cannot be reached; empty:
// no site can be.
func Unreachable(site string) *Error {
	e := &Error{
		Reason: SiteUnavailable, Message: "no site can be reached; nothing was done", RetryAfter: retryUnreachable, Site: site,
	}
	if site != "" {
		e.Message = fmt.Sprintf("site %q cannot be reached; nothing was done", site)
	}
	return e
}

// retryUnreachable is the advice to a caller when no site can be reached: each site is
// probed again within this time.
const retryUnreachable = time.Second

// Ended returns the error of a request whose context ended before it was sent to a site.
func Ended(cause error) *Error {
	if errors.Is(cause, context.Canceled) {
		return &Error{Reason: Canceled, Message: "canceled before it was sent to a site", Err: cause}
	}
	return &Error{Reason: DeadlineExceeded, Message: "the deadline passed before a site was reached; nothing was done", Err: cause}
}

// Unknown returns an OutcomeUnknown error: the request may have been done at
// site, for the cause err.
func Unknown(requestID, site string, err error) *Error {
	m := "the request may or may not have been done"
	if requestID != "" && site != "" {
		m = fmt.Sprintf("the request may or may not have been done; repeat id %q at site %q to find out", requestID, site)
	}
	return &Error{Reason: OutcomeUnknown, Message: m, RequestID: requestID, Site: site, Err: err}
}

// Wrap returns an Error with a cause that clients do not see. Its message is
// the reason's title.
func Wrap(r Reason, err error) *Error { return &Error{Reason: r, Err: err} }

// From turns any error into an Error. An Error or Reason in err's chain stays as it is.
// An error of package name is turned as by [FromName], and a gRPC status as by
// [FromGRPC]. An ended context becomes Canceled or OutcomeUnknown (an ended context alone
// proves nothing about the request), and any other error Internal. From returns nil for
// nil.
func From(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if r, ok := errors.AsType[Reason](err); ok {
		return Wrap(r, err)
	}
	if vs := violations(err, nil); len(vs) > 0 {
		return FromName(err)
	}
	if e := fromStatus(err); e != nil {
		return e
	}
	switch {
	case errors.Is(err, context.Canceled):
		return Wrap(Canceled, err)
	case errors.Is(err, context.DeadlineExceeded):
		return Unknown("", "", err)
	}
	return Wrap(Internal, err)
}

// ReasonOf returns the reason that err shows to a client, and "" for nil.
func ReasonOf(err error) Reason {
	if err == nil {
		return ""
	}
	return From(err).Reason
}

// Error returns reason, message and cause.
func (e *Error) Error() string {
	s := string(e.Reason) + ": " + e.message()
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is e's Reason.
func (e *Error) Is(target error) bool {
	r, ok := target.(Reason)
	return ok && r == e.Reason
}

// message returns the message that clients see.
func (e *Error) message() string {
	if e.Message == "" {
		return e.Reason.Title()
	}
	return e.Message
}

// maxText bounds every text that an Error sends to a client, in bytes: parts of it repeat
// the client's input.
const maxText = 1024

// clip makes s fit to be sent: valid UTF-8 (a protobuf string must be) and at
// most maxText bytes.
func clip(s string) string {
	if len(s) > maxText {
		s = s[:maxText-3]
		return strings.ToValidUTF8(s, "") + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
