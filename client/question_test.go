package client

import (
	"context"
	"errors"
	"testing"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/mux"
)

// tried is the outcome of a try of a unary call.
type tried struct {
	fate mux.Fate
	err  error
}

// answer is a failure answered by a target.
func answer(r apierr.Reason) tried { return tried{mux.Answered, &apierr.Error{Reason: r}} }

// TestWhatBecameOfAChange: after a try of a change that may have been done, only an
// answer that holds for all tries is told as settled. A target's answer about itself or
// about the caller is not. A read tells the last answer.
func TestWhatBecameOfAChange(t *testing.T) {
	gone, none := tried{mux.Lost, errReset}, tried{mux.Unsent, errReset}
	late := context.DeadlineExceeded
	for what, c := range map[string]struct {
		tries []tried
		over  error
		// moves is the reason told for a change, reads for any other call.
		moves, reads apierr.Reason
	}{
		"nothing was sent":              {[]tried{none, none}, late, apierr.SiteUnavailable, apierr.SiteUnavailable},
		"nothing was asked":             {nil, late, apierr.DeadlineExceeded, apierr.DeadlineExceeded},
		"denied":                        {[]tried{answer(apierr.PermissionDenied)}, nil, apierr.PermissionDenied, apierr.PermissionDenied},
		"denied behind a lost try":      {[]tried{gone, answer(apierr.PermissionDenied)}, nil, apierr.OutcomeUnknown, apierr.PermissionDenied},
		"unknown caller behind one":     {[]tried{gone, answer(apierr.Unauthenticated)}, nil, apierr.OutcomeUnknown, apierr.Unauthenticated},
		"invalid behind one":            {[]tried{gone, answer(apierr.InvalidField)}, nil, apierr.OutcomeUnknown, apierr.InvalidField},
		"expired behind one":            {[]tried{gone, answer(apierr.RequestExpired)}, nil, apierr.OutcomeUnknown, apierr.RequestExpired},
		"not found behind one":          {[]tried{gone, answer(apierr.EntityNotFound)}, nil, apierr.OutcomeUnknown, apierr.EntityNotFound},
		"there already behind one":      {[]tried{gone, answer(apierr.EntityExists)}, nil, apierr.EntityExists, apierr.EntityExists},
		"another version behind one":    {[]tried{gone, answer(apierr.VersionMismatch)}, nil, apierr.VersionMismatch, apierr.VersionMismatch},
		"no lease behind one":           {[]tried{gone, answer(apierr.LeaseNotFound)}, nil, apierr.LeaseNotFound, apierr.LeaseNotFound},
		"unsent behind one":             {[]tried{gone, none}, late, apierr.OutcomeUnknown, apierr.SiteUnavailable},
		"refused behind one":            {[]tried{gone, answer(apierr.Overloaded)}, late, apierr.OutcomeUnknown, apierr.Overloaded},
		"refused between":               {[]tried{gone, answer(apierr.Overloaded), none, answer(apierr.PermissionDenied)}, nil, apierr.OutcomeUnknown, apierr.PermissionDenied},
		"told as unknown, then denied":  {[]tried{answer(apierr.OutcomeUnknown), answer(apierr.PermissionDenied)}, nil, apierr.OutcomeUnknown, apierr.PermissionDenied},
		"canceled there, then denied":   {[]tried{answer(apierr.Canceled), answer(apierr.PermissionDenied)}, nil, apierr.OutcomeUnknown, apierr.PermissionDenied},
		"told as unknown, time is over": {[]tried{answer(apierr.OutcomeUnknown)}, late, apierr.OutcomeUnknown, apierr.OutcomeUnknown},
		"given up by the caller":        {[]tried{none}, context.Canceled, apierr.Canceled, apierr.Canceled},
		"given up behind a lost try":    {[]tried{gone}, context.Canceled, apierr.OutcomeUnknown, apierr.Canceled},
	} {
		for kind, want := range map[bool]apierr.Reason{true: c.moves, false: c.reads} {
			q := question{moves: kind, entity: "e", requestID: "r"}
			for i, o := range c.tries {
				if settled := q.judge(o.fate, o.err); settled && i+1 < len(c.tries) {
					t.Fatalf("%s: try %d settles it", what, i)
				} else if !settled && i+1 == len(c.tries) && c.over == nil {
					t.Fatalf("%s: the last try does not settle it", what)
				}
			}
			var told *Error
			if err := q.failed(q.end(c.over)); !errors.As(err, &told) || told.Reason != string(want) {
				t.Errorf("%s, a change is %v: %v, want %v", what, kind, err, want)
			}
			if told.RequestID != "r" || told.Entity != "e" {
				t.Errorf("%s: request %q of %q", what, told.RequestID, told.Entity)
			}
		}
	}
}

// TestInternalErrorsOfChanges: a target may fail after a change was done. So a change is
// tried again and its outcome is unknown; a read has failed.
func TestInternalErrorsOfChanges(t *testing.T) {
	failed := answer(apierr.Internal)
	change, read := question{moves: true}, question{}
	if change.judge(failed.fate, failed.err) || change.end(context.DeadlineExceeded).Reason != apierr.OutcomeUnknown {
		t.Errorf("a change that failed within is settled: %v", change.end(nil))
	}
	if !read.judge(failed.fate, failed.err) || read.end(nil).Reason != apierr.Internal {
		t.Errorf("a read that failed within: %v", read.end(nil))
	}
}
