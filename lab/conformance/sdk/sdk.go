// Package sdk drives the Go client by lines of JSON, as the drivers of the other clients do:
// it makes the calls that the conformance suite asks for, and judges nothing.
package sdk

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/samya-db/samya/client"
)

// request is a call, and reply its outcome.
type request struct {
	ID   int             `json:"id"`
	Op   string          `json:"op"`
	With json.RawMessage `json:"with"`
}

type reply struct {
	ID    int            `json:"id"`
	OK    map[string]any `json:"ok,omitempty"`
	Error map[string]any `json:"error,omitempty"`
}

// driver makes calls.
type driver struct {
	mu      sync.Mutex
	out     *json.Encoder
	clients map[string]*client.Client
	cancels map[int]context.CancelFunc
	held    map[string]*client.Lease
	kept    map[string]*kept
}

// kept is a lease that is kept alive.
type kept struct {
	ctx  context.Context //nolint:containedctx // it is the state to be told
	stop context.CancelFunc
}

// closeTime bounds the closing of a client, whose calls have ended by then.
const closeTime = 5 * time.Second

// Run answers the calls of in until its end.
func Run(in io.Reader, out io.Writer) error {
	d := &driver{
		out: json.NewEncoder(out), clients: map[string]*client.Client{}, cancels: map[int]context.CancelFunc{},
		held: map[string]*client.Lease{}, kept: map[string]*kept{},
	}
	ctx, cancel := context.WithCancel(context.Background())
	var calls sync.WaitGroup
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			cancel()
			return fmt.Errorf("read a call: %w", err)
		}
		cctx, end := context.WithCancel(ctx)
		d.mu.Lock()
		d.cancels[r.ID] = end
		d.mu.Unlock()
		calls.Go(func() {
			d.answer(cctx, r)
			end()
			d.mu.Lock()
			defer d.mu.Unlock()
			delete(d.cancels, r.ID)
		})
	}
	cancel()
	calls.Wait()
	errs := []error{lines.Err()}
	ctx, cancel = context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	for _, c := range d.clients {
		errs = append(errs, c.Close(ctx))
	}
	return errors.Join(errs...)
}

// answer makes a call and tells its outcome.
func (d *driver) answer(ctx context.Context, r request) {
	var with args
	var result map[string]any
	err := json.Unmarshal(r.With, &with)
	if err == nil {
		if with.Timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, ms(with.Timeout))
			defer cancel()
		}
		result, err = d.do(ctx, r.Op, with)
	}
	line := reply{ID: r.ID, OK: result}
	if err != nil {
		line.Error = failure(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	_ = d.out.Encode(line) // nobody is left to be told
}

func ms(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }

// args are the arguments of all calls; times are milliseconds.
type args struct {
	Client      string   `json:"client"`
	Targets     []string `json:"targets"`
	Token       string   `json:"token"`
	CA          string   `json:"ca"`
	Entity      string   `json:"entity"`
	Tokens      int64    `json:"tokens"`
	MinTokens   int64    `json:"min_tokens"`
	DryRun      bool     `json:"dry_run"`
	Wait        *float64 `json:"wait_ms"`
	Timeout     float64  `json:"timeout_ms"`
	RequestID   string   `json:"request_id"`
	Resume      *point   `json:"resume"`
	Parts       []part   `json:"parts"`
	TTL         float64  `json:"ttl_ms"`
	Holder      string   `json:"holder"`
	Lease       string   `json:"lease"`
	Consistency string   `json:"consistency"`
	MaxAge      float64  `json:"max_age_ms"`
	ResumeToken string   `json:"resume_token"`
	UntilLimit  *int64   `json:"until_limit"`
	Limit       int64    `json:"limit"`
	Parent      string   `json:"parent"`
	Version     uint64   `json:"expected_version"`
	WaitApplied bool     `json:"wait_applied"`
	Subtree     bool     `json:"subtree"`
	Workers     int      `json:"workers"`
	Of          int      `json:"of"`
}

type part struct {
	Entity string `json:"entity"`
	Tokens int64  `json:"tokens"`
}

// point is how to go on with a request of unknown outcome.
type point struct {
	RequestID string   `json:"request_id"`
	Attempt   uint32   `json:"attempt"`
	NotAfter  int64    `json:"not_after_ms"`
	Tried     []string `json:"tried"`
}

// kinds are the kinds of errors, by the names that all clients share.
var kinds = map[string]error{
	"OutOfTokens": client.ErrOutOfTokens, "ExceedsLimit": client.ErrExceedsLimit, "OutcomeUnknown": client.ErrOutcomeUnknown,
	"EntityNotFound": client.ErrEntityNotFound, "EntityExists": client.ErrEntityExists, "ParentNotFound": client.ErrParentNotFound,
	"HasChildren": client.ErrHasChildren, "VersionMismatch": client.ErrVersionMismatch, "LeaseNotFound": client.ErrLeaseNotFound,
	"Invalid": client.ErrInvalid, "RequestIdReused": client.ErrRequestIDReused, "RequestExpired": client.ErrRequestExpired,
	"Superseded": client.ErrSuperseded, "Unauthenticated": client.ErrUnauthenticated, "PermissionDenied": client.ErrPermissionDenied,
	"Overloaded": client.ErrOverloaded, "Unavailable": client.ErrUnavailable, "Closed": client.ErrClosed,
}

// kindOf returns the kind of an error.
func kindOf(err error, reason string) string {
	for name, kind := range kinds {
		if errors.Is(err, kind) && name != "Closed" {
			return name
		}
	}
	switch {
	case errors.Is(err, client.ErrClosed):
		return "Closed"
	case reason == "CANCELED":
		return "Canceled"
	case reason == "DEADLINE_EXCEEDED":
		return "DeadlineExceeded"
	}
	return ""
}

// failure tells an error as all drivers do.
func failure(err error) map[string]any {
	e, ok := errors.AsType[*client.Error](err)
	if !ok {
		return map[string]any{"kind": "Fault", "message": err.Error()}
	}
	out := map[string]any{
		"kind": kindOf(err, e.Reason), "reason": e.Reason, "message": e.Error(), "entity": e.Entity, "request_id": e.RequestID,
		"lacking": e.Lacking, "retry_after_ms": e.RetryAfter.Milliseconds(),
	}
	if e.Left >= 0 {
		out["left"] = e.Left
	}
	if e.Limit >= 0 {
		out["limit"] = e.Limit
	}
	var violations []map[string]any
	for _, v := range e.Violations {
		violations = append(violations, map[string]any{"field": v.Field, "problem": v.Problem})
	}
	out["violations"] = violations
	if e.Attempt > 0 {
		out["resume"] = point{e.RequestID, e.Attempt, e.NotAfter.UnixMilli(), e.Tried}
	}
	return out
}

// error is the error to resume from.
func (p *point) error() error {
	if p == nil {
		return nil
	}
	return &client.Error{
		Reason: "OUTCOME_UNKNOWN", RequestID: p.RequestID, Attempt: p.Attempt, NotAfter: time.UnixMilli(p.NotAfter), Tried: p.Tried,
	}
}
