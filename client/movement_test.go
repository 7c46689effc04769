package client

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/mux"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// outcome is the outcome of a try.
type outcome struct {
	result *samyav1.Result
	fate   mux.Fate
	err    error
	site   string
}

var (
	errReset = status.Error(codes.Unavailable, "connection reset")
	foreign  = &samyav1.Result{Result: &samyav1.Result_Release{Release: &samyav1.ReleaseResponse{}}}
	given    = &samyav1.Result{Result: &samyav1.Result_Acquire{Acquire: &samyav1.AcquireResponse{Tokens: 1}}}
)

func lost(site string) outcome { return outcome{nil, mux.Lost, errReset, site} }
func unsent() outcome          { return outcome{nil, mux.Unsent, errReset, "us"} }

// said is a failure answered by a target.
func said(e *apierr.Error, site string) outcome {
	return outcome{&samyav1.Result{Result: &samyav1.Result_Failure{Failure: e.Failure()}}, mux.Answered, nil, site}
}

// told is an unknown outcome answered by an app manager, with the sites that it has
// tried.
func told(attempt uint32, tried ...string) outcome {
	return said(&apierr.Error{Reason: apierr.OutcomeUnknown, Attempt: attempt, Tried: tried}, "am")
}

// TestWhereARequestMayHaveRun: the next try names the sites where earlier tries may have
// run, or no site if any site may have run them. No earlier try can have had its attempt
// number.
func TestWhereARequestMayHaveRun(t *testing.T) {
	overloaded := said(&apierr.Error{Reason: apierr.Overloaded}, "us")
	for what, c := range map[string]struct {
		tries   []outcome
		attempt uint32
		tried   []string
		unknown bool
	}{
		"nothing was sent":                     {[]outcome{unsent(), unsent()}, 0, nil, false},
		"refused before it was begun":          {[]outcome{overloaded, unsent()}, 0, nil, false},
		"lost at a site":                       {[]outcome{lost("us")}, 2, []string{"us"}, true},
		"lost at two sites":                    {[]outcome{lost("us"), lost("eu")}, 3, []string{"us", "eu"}, true},
		"lost twice at a site":                 {[]outcome{lost("us"), lost("us")}, 3, []string{"us"}, true},
		"lost somewhere":                       {[]outcome{lost("")}, 2, nil, true},
		"lost somewhere, then at a site":       {[]outcome{lost(""), lost("us")}, 3, nil, true},
		"lost at a site, then somewhere":       {[]outcome{lost("us"), lost("")}, 3, nil, true},
		"lost, then refused":                   {[]outcome{lost("us"), overloaded}, 2, []string{"us"}, true},
		"an answer to something else":          {[]outcome{{foreign, mux.Answered, nil, "us"}}, 2, []string{"us"}, true},
		"no answer at all":                     {[]outcome{{&samyav1.Result{}, mux.Answered, nil, "us"}}, 2, []string{"us"}, true},
		"an app manager tried two":             {[]outcome{told(3, "us", "eu")}, 3, []string{"us", "eu"}, true},
		"an app manager knows not where":       {[]outcome{told(3)}, 3, nil, true},
		"an app manager after a site":          {[]outcome{lost("as"), told(5, "us")}, 5, []string{"as", "us"}, true},
		"a site after an app manager":          {[]outcome{told(5, "us"), lost("as")}, 6, []string{"us", "as"}, true},
		"an app manager that forgot, a site":   {[]outcome{told(5), lost("as")}, 6, nil, true},
		"an attempt that is lower than ours":   {[]outcome{lost("as"), lost("as"), told(2, "us")}, 4, []string{"as", "us"}, true},
		"a site that cannot tell":              {[]outcome{said(&apierr.Error{Reason: apierr.OutcomeUnknown}, "us")}, 2, []string{"us"}, true},
		"a site that cannot tell, by its name": {[]outcome{said(&apierr.Error{Reason: apierr.Internal, Site: "eu"}, "am")}, 2, []string{"eu"}, true},
	} {
		m := newAcquire("e", 1, nil)
		m.notAfter = time.Unix(1000, 0)
		m.named()
		for i, o := range c.tries {
			if m.judge(o.result, o.fate, o.err, o.site) {
				t.Errorf("%s: try %d settles it: %v", what, i, m.last)
			}
		}
		a := m.operation().GetAcquire()
		if a.GetAttempt() != c.attempt || !slices.Equal(a.GetTried(), c.tried) {
			t.Errorf("%s: next is attempt %d, tried %q; want %d, %q", what, a.GetAttempt(), a.GetTried(), c.attempt, c.tried)
		}
		var e *Error
		if err := m.final(context.DeadlineExceeded); !errors.As(err, &e) || errors.Is(err, ErrOutcomeUnknown) != c.unknown {
			t.Errorf("%s: it ends with %v, unknown %v", what, err, c.unknown)
		}
		if !c.unknown || e == nil || e.Attempt == 0 {
			continue
		}
		// The resumed request goes on from there, and forgets nothing either.
		again := newAcquire("e", 1, []AcquireOption{Resume(e)})
		b := again.operation().GetAcquire()
		if b.GetAttempt() != c.attempt || !slices.Equal(b.GetTried(), c.tried) || b.GetRequestId() != a.GetRequestId() || !b.GetNotAfter().AsTime().Equal(m.notAfter) {
			t.Errorf("%s: resumed as attempt %d, tried %q; want %d, %q", what, b.GetAttempt(), b.GetTried(), c.attempt, c.tried)
		}
		again.judge(nil, mux.Lost, errReset, "zz")
		if next := again.operation().GetAcquire().GetTried(); c.tried == nil && len(next) > 0 {
			t.Errorf("%s: resumed and lost at a site it names %q alone, and may have run anywhere", what, next)
		}
	}
}

// TestWhatSettles: after an attempt that may have been done, a refusal is told as a
// failure only if it holds for all attempts.
func TestWhatSettles(t *testing.T) {
	for reason, c := range map[apierr.Reason]struct{ alone, behind bool }{
		apierr.OutOfTokens:      {true, true},
		apierr.ExceedsLimit:     {true, true},
		apierr.Superseded:       {true, true},
		apierr.EntityNotFound:   {true, false},
		apierr.InvalidField:     {true, false},
		apierr.RequestExpired:   {true, false},
		apierr.RequestIDReused:  {true, false},
		apierr.PermissionDenied: {true, false},
		apierr.Unauthenticated:  {true, false},
	} {
		for _, behind := range []bool{false, true} {
			m := newAcquire("e", 1, nil)
			if behind {
				m.judge(nil, mux.Lost, errReset, "us")
			}
			o := said(&apierr.Error{Reason: reason}, "us")
			if !m.judge(o.result, o.fate, o.err, o.site) {
				t.Errorf("%s leaves it open", reason)
			}
			settled := !errors.Is(m.final(nil), ErrOutcomeUnknown)
			if want := behind && c.behind || !behind && c.alone; settled != want {
				t.Errorf("%s, behind a lost attempt %v: settled %v: %v", reason, behind, settled, m.final(nil))
			}
		}
	}
	m := newAcquire("e", 1, nil)
	m.judge(nil, mux.Lost, errReset, "us")
	if !m.judge(given, mux.Answered, nil, "us") || m.last != nil {
		t.Errorf("a grant behind a lost attempt: %v", m.last)
	}
	// A stream refused after a lost attempt says nothing of that attempt.
	m = newAcquire("e", 1, nil)
	m.judge(nil, mux.Lost, errReset, "us")
	if !m.judge(nil, mux.Unsent, apierr.Unauthenticated.GRPCStatus().Err(), "eu") || !errors.Is(m.final(nil), ErrOutcomeUnknown) {
		t.Errorf("refused behind a lost attempt: %v", m.final(nil))
	}
}
