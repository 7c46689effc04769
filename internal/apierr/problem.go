package apierr

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// ProblemType is the media type of a problem document.
const ProblemType = "application/problem+json"

// Problem is an Error as an RFC 9457 problem document.
type Problem struct {
	Type     string `json:"type"`
	Title    string `json:"title"`
	Status   int    `json:"status"`
	Detail   string `json:"detail,omitempty"`
	Instance string `json:"instance,omitempty"`

	// Reason and the fields below are samya's extension members.
	Reason       Reason      `json:"reason"`
	Errors       []Violation `json:"errors,omitempty"`
	TokensLeft   *int64      `json:"tokens_left,omitempty"`
	Limit        *int64      `json:"limit,omitempty"`
	RetryAfterMS int64       `json:"retry_after_ms,omitempty"`
	RequestID    string      `json:"request_id,omitempty"`
	Site         string      `json:"site,omitempty"`
	Entity       string      `json:"entity,omitempty"`
	Lacking      string      `json:"lacking,omitempty"`
	Elsewhere    bool        `json:"elsewhere,omitempty"`
	Attempt      uint32      `json:"attempt,omitempty"`
	NotAfter     *time.Time  `json:"not_after,omitempty"`
	Tried        []string    `json:"tried,omitempty"`
	TraceID      string      `json:"trace_id,omitempty"`
}

// Problem returns e as a problem document about instance, the request's path.
func (e *Error) Problem(instance string) Problem {
	p := Problem{
		Type:         e.Reason.Type(),
		Title:        e.Reason.Title(),
		Status:       e.Reason.HTTPStatus(),
		Detail:       clip(e.message()),
		Instance:     clip(instance),
		Reason:       e.Reason,
		TokensLeft:   e.Left,
		Limit:        e.Limit,
		RetryAfterMS: ceil(e.RetryAfter, time.Millisecond),
		RequestID:    clip(e.RequestID),
		Site:         clip(e.Site),
		Entity:       clip(e.Entity),
		Lacking:      clip(e.Lacking),
		Elsewhere:    e.Elsewhere,
		Attempt:      e.Attempt,
		Tried:        e.Tried,
	}
	if !e.NotAfter.IsZero() {
		p.NotAfter = new(e.NotAfter.UTC())
	}
	for _, v := range e.Violations[:min(len(e.Violations), maxViolations)] {
		p.Errors = append(p.Errors, Violation{Field: clip(v.Field), Problem: clip(v.Problem)})
	}
	return p
}

// Error turns a problem document that a client received back into an Error. A
// document of another origin becomes Internal.
func (p Problem) Error() *Error {
	e := &Error{
		Reason: p.Reason, Message: p.Detail, Left: p.TokensLeft, Limit: p.Limit,
		RetryAfter: time.Duration(p.RetryAfterMS) * time.Millisecond,
		RequestID:  p.RequestID, Site: p.Site, Entity: p.Entity, Lacking: p.Lacking,
		Elsewhere: p.Elsewhere, Attempt: p.Attempt, Tried: p.Tried,
	}
	if p.NotAfter != nil {
		e.NotAfter = *p.NotAfter
	}
	if !e.Reason.Known() {
		e.Reason = Internal
	}
	e.Violations = append(e.Violations, p.Errors...)
	return e
}

// WriteProblem answers r with the problem document of err (see [From]). If err advises
// when to try again, a Retry-After header tells it in whole seconds, rounded up. If the
// request's trace is recorded, the document tells its id. Nothing must have been written to w before.
func WriteProblem(w http.ResponseWriter, r *http.Request, err error) {
	e := From(err)
	if e == nil {
		e = Wrap(Internal, nil)
	}
	p := e.Problem(r.URL.EscapedPath())
	if sc := trace.SpanContextFromContext(r.Context()); sc.IsSampled() {
		p.TraceID = sc.TraceID().String()
	}
	body, jerr := json.Marshal(p)
	if jerr != nil {
		// Strings and numbers always marshal; should that change, the client still gets
		// an answer.
		http.Error(w, string(p.Reason), p.Status)
		return
	}
	h := w.Header()
	h.Set("Content-Type", ProblemType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if e.Reason == Unauthenticated {
		h.Set("WWW-Authenticate", "Bearer")
	}
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(ceil(e.RetryAfter, time.Second), 10))
	}
	w.WriteHeader(p.Status)
	// A write fails only where the client has gone; nobody is left to be told.
	_, _ = w.Write(append(body, '\n'))
}

// ceil returns d in units, rounded up, at least 0.
func ceil(d, unit time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return int64((d-1)/unit) + 1
}
