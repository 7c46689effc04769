package apierr_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/apierr/refuse"
)

// TestWhatReasonsProve pins the conclusions from a refused attempt. They are for this
// attempt, for all attempts of an acquire or a release, and for all tries of a change.
// With a reason too many in a list, a caller repeats a finished request under another id.
func TestWhatReasonsProve(t *testing.T) {
	all := func(proves func(apierr.Reason) bool) []apierr.Reason {
		return slices.DeleteFunc(apierr.Reasons(), func(r apierr.Reason) bool { return !proves(r) })
	}
	for name, list := range map[string]struct{ got, want []apierr.Reason }{
		"all attempts": {all(apierr.Reason.Settles), []apierr.Reason{
			apierr.ExceedsLimit, apierr.LeaseNotFound, apierr.OutOfTokens, apierr.Superseded,
		}},
		"all tries of a change": {all(apierr.Reason.SettlesChange), []apierr.Reason{
			apierr.EntityExists, apierr.HasChildren, apierr.LeaseNotFound, apierr.MemberState, apierr.ParentNotFound, apierr.RequestIDReused, apierr.VersionMismatch,
		}},
		"not even this attempt": {all(func(r apierr.Reason) bool { return !r.NothingDone() }), []apierr.Reason{
			apierr.Canceled, apierr.Internal, apierr.OutcomeUnknown, apierr.WindowExceeded,
		}},
	} {
		if !slices.Equal(list.got, list.want) {
			t.Errorf("%s: %v, want %v", name, list.got, list.want)
		}
	}
	for _, r := range []apierr.Reason{"", "FROM_THE_FUTURE"} {
		if r.Settles() || r.SettlesChange() || r.NothingDone() || r.Known() {
			t.Errorf("%q proves something", r)
		}
	}
}

// TestForeignDetails: a reason of another domain counts as unknown, and so does a reason
// from a later version. The metadata of both is not read. A negative advice to wait
// counts as no advice.
func TestForeignDetails(t *testing.T) {
	info := func(domain, reason string) *errdetails.ErrorInfo {
		return &errdetails.ErrorInfo{Domain: domain, Reason: reason, Metadata: map[string]string{"site": "eu", "tokens_left": "3", "attempt": "4294967296", "limit": "x", "not_after": "soon"}}
	}
	for _, test := range []struct {
		info *errdetails.ErrorInfo
		want apierr.Reason
		site string
	}{
		{info("samya", "OUT_OF_TOKENS"), apierr.OutOfTokens, "eu"},
		{info("googleapis.com", "OUT_OF_TOKENS"), apierr.OutcomeUnknown, ""},
		{info("", "OUT_OF_TOKENS"), apierr.OutcomeUnknown, ""},
		{info("samya", "FROM_THE_FUTURE"), apierr.OutcomeUnknown, ""},
		{info("samya", ""), apierr.OutcomeUnknown, ""},
	} {
		st, err := status.New(codes.Unavailable, "m").WithDetails(test.info, &errdetails.RetryInfo{RetryDelay: durationpb.New(-time.Second)})
		if err != nil {
			t.Fatal(err)
		}
		got := apierr.FromGRPC(st.Err())
		if got.Reason != test.want || got.Site != test.site || (got.Left != nil) != (test.site != "") || got.RetryAfter != 0 {
			t.Errorf("%v reads as %+v", test.info, got)
		}
		if got.Attempt != 0 || got.Limit != nil || !got.NotAfter.IsZero() {
			t.Errorf("figures that cannot be read are taken: %+v", got)
		}
	}
}

// TestAdviceToWait: advice is rounded up, never down to none, and negative advice is
// left out.
func TestAdviceToWait(t *testing.T) {
	for _, test := range []struct {
		wait   time.Duration
		ms     int64
		header string
	}{
		{0, 0, ""},
		{-time.Second, 0, ""},
		{1, 1, "1"},
		{time.Millisecond, 1, "1"},
		{time.Millisecond + 1, 2, "1"},
		{time.Second, 1000, "1"},
		{time.Second + 1, 1001, "2"},
	} {
		e := apierr.Overload("us", test.wait)
		if got := e.Problem("/").RetryAfterMS; got != test.ms {
			t.Errorf("%v: %d ms, want %d", test.wait, got, test.ms)
		}
		rec := httptest.NewRecorder()
		apierr.WriteProblem(rec, httptest.NewRequest(http.MethodGet, "/", nil), e)
		if got := rec.Header().Get("Retry-After"); got != test.header {
			t.Errorf("%v: Retry-After %q, want %q", test.wait, got, test.header)
		}
		if got := apierr.FromGRPC(e.GRPCStatus().Err()).RetryAfter; got != max(0, test.wait) {
			t.Errorf("%v comes back as %v", test.wait, got)
		}
	}
}

// TestProblemHeaders: no cache keeps an answer, no browser guesses its type, and only a
// lack of credentials is answered with a challenge.
func TestProblemHeaders(t *testing.T) {
	for r, challenge := range map[apierr.Reason]string{apierr.Unauthenticated: "Bearer", apierr.PermissionDenied: "", apierr.NoQuorum: ""} {
		rec := httptest.NewRecorder()
		apierr.WriteProblem(rec, httptest.NewRequest(http.MethodGet, "/", nil), r)
		for header, want := range map[string]string{
			"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "WWW-Authenticate": challenge,
		} {
			if got := rec.Header().Get(header); got != want {
				t.Errorf("%s: %s is %q, want %q", r, header, got, want)
			}
		}
	}
	rec := httptest.NewRecorder()
	apierr.WriteProblem(rec, httptest.NewRequest(http.MethodGet, "/", nil), nil)
	if rec.Code != http.StatusInternalServerError {
		t.Errorf("no error shows as %d", rec.Code)
	}
	foreign := apierr.Problem{Reason: "FROM_THE_FUTURE", Detail: "d", Errors: []apierr.Violation{{Field: "f", Problem: "p"}}}.Error()
	if foreign.Reason != apierr.Internal || foreign.Message != "d" || len(foreign.Violations) != 1 {
		t.Errorf("a foreign document reads as %+v", foreign)
	}
}

// TestMessages: messages name entity, tokens and bound, for an entity, for several, and
// for a parent without the tokens.
func TestMessages(t *testing.T) {
	for want, e := range map[string]*apierr.Error{
		"3 tokens of acme wanted, 2 left":                                                        refuse.NoTokens("acme", "us", 3, 2, 0),
		"3 tokens of several entities wanted, 2 left":                                            refuse.NoTokens("", "us", 3, 2, 0),
		"3 tokens of acme/vm wanted, 2 left of acme":                                             refuse.NoTokens("acme/vm", "us", 3, 2, 0).LackedBy("acme", 3),
		"3 tokens of acme wanted, the limit is 2":                                                refuse.Exceeds("acme", "us", 3, 2),
		"3 tokens of several entities wanted, the limit is 2":                                    refuse.Exceeds("", "us", 3, 2),
		"no entity \"acme\" to stand above \"acme/vm\"":                                          refuse.NoParent("acme/vm", "acme"),
		"no entity \"acme\"":                                                                     apierr.NotFound("acme"),
		"entity \"acme\" exists":                                                                 refuse.Exists("acme"),
		"request id \"id\" was used with another body":                                           refuse.Reused("id", "us"),
		"more work than can be done in time; nothing was done":                                   apierr.Overload("us", time.Second),
		"the request may or may not have been done":                                              apierr.Unknown("id", "", nil),
		"the request may or may not have been done; repeat id \"id\" at site \"us\" to find out": apierr.Unknown("id", "us", nil),
	} {
		if got := e.Problem("/").Detail; got != want {
			t.Errorf("%s says %q, want %q", e.Reason, got, want)
		}
		if !strings.HasPrefix(e.Error(), string(e.Reason)+": "+want) {
			t.Errorf("%q does not begin with the reason", e.Error())
		}
	}
	if e := refuse.NoParent("acme/vm", "acme"); e.Entity != "acme" || e.Reason != apierr.ParentNotFound {
		t.Errorf("no parent: %+v", e)
	}
	if e := refuse.NoTokens("acme/vm", "us", 3, 2, time.Second).LackedBy("acme", 3); e.Entity != "acme/vm" || e.Lacking != "acme" || *e.Left != 2 || e.Site != "us" || e.RetryAfter != time.Second {
		t.Errorf("lacked by a parent: %+v", e)
	}
	if e := refuse.Exceeds("acme", "us", 3, 2); *e.Limit != 2 || e.Left != nil || e.Site != "us" || e.Entity != "acme" {
		t.Errorf("exceeds: %+v", e)
	}
	if e := refuse.Reused("id", "us"); e.RequestID != "id" || e.Site != "us" {
		t.Errorf("reused: %+v", e)
	}
}
