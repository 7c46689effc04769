package site

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/versions"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/engine"
)

// TestMembersChanging: who has to wait for a change of the members is told what the change
// waits for.
func TestMembersChanging(t *testing.T) {
	leaving := func(sites ...core.SiteID) answer.Members {
		m := answer.Members{Behind: 1}
		for _, s := range sites {
			m.Sites = append(m.Sites, answer.Member{Site: s, State: "draining"})
		}
		return m
	}
	for want, m := range map[string]answer.Members{
		"it waits for 12 entities to adopt the new voters": {Behind: 12}, "site as hands over its tokens": leaving("as"),
		"sites as and eu hand over their tokens": leaving("as", "eu"), "it has ended meanwhile": {},
	} {
		a := answer.Answer{Code: answer.Changing, Details: &answer.Details{Members: m}}
		err := shell().refusal(t.Context(), a, &input.Change{Kind: input.Reconcile, Name: "acme/vm", RequestID: "id"})
		if e := apierr.From(err); e.Message != "a change of members is under way: "+want+"; nothing was done" {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestRefusedRescues: each refusal of a rescue is told in words.
func TestRefusedRescues(t *testing.T) {
	for _, c := range []struct {
		a     answer.Answer
		want  apierr.Reason
		words string
	}{
		{answer.Answer{Code: answer.Mismatch}, apierr.VersionMismatch, "changed meanwhile"},
		{answer.Answer{Code: answer.NoParent}, apierr.VersionMismatch, "an entity above"},
		{answer.Answer{Code: answer.Changing, RetryAfter: 1000}, apierr.MembersChanging, "not counted yet"},
		{answer.Answer{Code: answer.Changing, Details: &answer.Details{Members: answer.Members{Behind: 3}}}, apierr.MembersChanging, "3 entities"},
		{answer.Answer{Code: answer.NotFound}, apierr.EntityNotFound, "acme/vm"},
	} {
		ch := &input.Change{Kind: input.RescueEntity, Name: "acme/vm", RequestID: "id", Rescue: &input.Rescue{Site: "eu"}}
		if e := apierr.From(shell().refusal(t.Context(), c.a, ch)); e.Reason != c.want || !strings.Contains(e.Error(), c.words) || e.Entity != "acme/vm" {
			t.Errorf("%v: %+v, want %s with %q", c.a.Code, e, c.want, c.words)
		}
	}
}

// TestFailures: the errors that clients see of each answer but OK.
func TestFailures(t *testing.T) {
	s := shell()
	s.speaks.Store(&versions.Speaker{Cluster: 1})
	q := asked{entity: "acme/vm", requestID: "id", tokens: 9}
	const retry = 1500 * time.Millisecond
	of := func(r apierr.Reason) *apierr.Error {
		return &apierr.Error{Reason: r, Entity: q.entity, RequestID: q.requestID, Site: "us"}
	}
	with := func(e *apierr.Error, change func(e *apierr.Error)) *apierr.Error {
		change(e)
		return e
	}
	lacking := func(e *apierr.Error) { e.Lacking = "acme" }
	for _, c := range []struct {
		code answer.Code
		q    asked
		want *apierr.Error
	}{
		{answer.OutOfTokens, q, with(of(apierr.OutOfTokens), func(e *apierr.Error) { e.Left, e.RetryAfter, e.Lacking = new(int64(3)), retry, "acme" })},
		{answer.ExceedsLimit, q, with(of(apierr.ExceedsLimit), func(e *apierr.Error) { e.Limit, e.Lacking = new(int64(7)), "acme" })},
		{answer.NotFound, q, &apierr.Error{Reason: apierr.EntityNotFound, Entity: "acme/vm"}},
		{answer.NotFound, asked{}, &apierr.Error{Reason: apierr.EntityNotFound, Entity: "acme"}},
		{answer.Exists, q, &apierr.Error{Reason: apierr.EntityExists, Entity: "acme/vm"}},
		{answer.Reused, q, &apierr.Error{Reason: apierr.RequestIDReused, RequestID: "id", Site: "us"}},
		{answer.Mismatch, q, &apierr.Error{Reason: apierr.VersionMismatch, Entity: "acme/vm"}},
		{answer.Mismatch, asked{}, &apierr.Error{Reason: apierr.VersionMismatch}},
		{answer.Overloaded, q, &apierr.Error{Reason: apierr.Overloaded, Site: "us", RetryAfter: retry}},
		{answer.QueueFull, q, with(of(apierr.QueueFull), func(e *apierr.Error) { lacking(e); e.RetryAfter = retry })},
		{answer.Superseded, q, of(apierr.Superseded)},
		{answer.Expired, q, of(apierr.RequestExpired)},
		{answer.NoLease, q, &apierr.Error{Reason: apierr.LeaseNotFound, RequestID: "id", Site: "us"}},
		{answer.NoQuorum, q, with(of(apierr.NoQuorum), func(e *apierr.Error) { e.RetryAfter = retry })},
		{answer.Unknown, q, &apierr.Error{Reason: apierr.OutcomeUnknown, RequestID: "id", Site: "us"}},
		{answer.Overflow, q, &apierr.Error{Reason: apierr.OutOfRange, Entity: "acme/vm"}},
		{answer.Overflow, asked{}, &apierr.Error{Reason: apierr.OutOfRange, Entity: "acme"}},
		{answer.Stopping, q, of(apierr.ShuttingDown)},
		{answer.Unvouched, q, with(of(apierr.SiteUnavailable), func(e *apierr.Error) { e.RetryAfter = time.Second })},
		{answer.Halted, q, with(of(apierr.SiteUnavailable), func(e *apierr.Error) { e.RetryAfter = time.Second })},
		{answer.Draining, q, of(apierr.SiteDraining)},
		{answer.Moved, q, with(of(apierr.LeaseMoved), func(e *apierr.Error) { e.Site = "acme" })},
		{answer.TooEarly, q, &apierr.Error{Reason: apierr.ClusterVersionTooLow}},
		{answer.Changing, q, with(of(apierr.MembersChanging), func(e *apierr.Error) { e.RetryAfter = time.Second })},
		{answer.Invalid, q, &apierr.Error{Reason: apierr.InvalidField, Violations: []apierr.Violation{{Field: "tokens", Problem: "out of range"}}}},
		{answer.Code(99), q, &apierr.Error{Reason: apierr.Internal}},
	} {
		a := answer.Answer{Code: c.code, Tokens: 7, Left: 3, RetryAfter: 1500, Lacking: "acme", Missing: 1}
		err := s.failure(a, c.q)
		if d := cmp.Diff(error(c.want), err, cmpopts.IgnoreFields(apierr.Error{}, "Err", "Message")); d != "" {
			t.Errorf("%v of %+v (-want +got):\n%s", c.code, c.q, d)
		}
	}
	if err := s.failure(answer.Answer{Tokens: 7, Lacking: "acme"}, q); err != nil {
		t.Errorf("OK: %v", err)
	}
	for _, lacks := range []string{"", "acme/vm"} {
		if e := apierr.From(s.failure(answer.Answer{Code: answer.OutOfTokens, Lacking: lacks}, q)); e.Lacking != "" {
			t.Errorf("%q lacks tokens: %+v", lacks, e)
		}
	}
}

// TestBroken: a request without an answer of the engine may have been done, unless the
// engine did not take it.
func TestBroken(t *testing.T) {
	s := shell()
	q := asked{entity: "acme/vm", requestID: "id"}
	for _, c := range []struct {
		err  error
		q    asked
		want apierr.Error
	}{
		{engine.ErrBusy, q, apierr.Error{Reason: apierr.Overloaded, Site: "us", RetryAfter: time.Second}},
		{engine.ErrBusy, asked{}, apierr.Error{Reason: apierr.Overloaded, Site: "us", RetryAfter: time.Second}},
		{engine.ErrStopped, q, apierr.Error{Reason: apierr.OutcomeUnknown, RequestID: "id", Site: "us"}},
		{context.Canceled, q, apierr.Error{Reason: apierr.OutcomeUnknown, RequestID: "id", Site: "us"}},
		{context.DeadlineExceeded, q, apierr.Error{Reason: apierr.OutcomeUnknown, RequestID: "id", Site: "us"}},
		{engine.ErrGivenUp, q, apierr.Error{Reason: apierr.OutcomeUnknown, RequestID: "id", Site: "us"}},
		{engine.ErrGivenUp, asked{}, apierr.Error{Reason: apierr.SiteUnavailable, Site: "us", RetryAfter: 100 * time.Millisecond}},
		{engine.ErrStalled, q, apierr.Error{Reason: apierr.SiteUnavailable, Site: "us", RetryAfter: 100 * time.Millisecond}},
		{
			fmt.Errorf("%w: %w", engine.ErrStalled, ErrHandedOver), q,
			apierr.Error{Reason: apierr.SiteUnavailable, Site: "us", RetryAfter: 10 * time.Millisecond},
		},
		// A read that is told again does no harm.
		{context.Canceled, asked{}, apierr.Error{Reason: apierr.Canceled}},
	} {
		e, ok := errors.AsType[*apierr.Error](s.broken(c.err, c.q))
		if !ok {
			t.Errorf("%v: no answer for clients", c.err)
			continue
		}
		if d := cmp.Diff(c.want, *e, cmpopts.IgnoreFields(apierr.Error{}, "Err", "Message")); d != "" {
			t.Errorf("%v of %+v (-want +got):\n%s", c.err, c.q, d)
		}
	}
}
