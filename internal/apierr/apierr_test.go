package apierr_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/apierr/refuse"
	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/testfuzz"
)

// declared reads the Reason constants out of the source, so that a constant
// added without a row in the table fails the test.
func declared(t *testing.T) []apierr.Reason {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "reason.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var rs []apierr.Reason
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if id, ok := v.Type.(*ast.Ident); !ok || id.Name != "Reason" {
			return true
		}
		for _, x := range v.Values {
			s, err := strconv.Unquote(x.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			rs = append(rs, apierr.Reason(s))
		}
		return true
	})
	return rs
}

func TestEveryReasonHasARow(t *testing.T) {
	rs := declared(t)
	if len(rs) < 10 {
		t.Fatalf("found %d reasons in the source; the test does not see them", len(rs))
	}
	if got := len(apierr.Reasons()); got != len(rs) {
		t.Errorf("table has %d rows, source has %d reasons", got, len(rs))
	}
	titles := map[string]apierr.Reason{}
	for _, r := range rs {
		if !r.Known() {
			t.Errorf("%s has no row", r)
			continue
		}
		if r.Title() == "" || strings.HasSuffix(r.Title(), ".") {
			t.Errorf("%s: bad title %q", r, r.Title())
		}
		if o, ok := titles[r.Title()]; ok {
			t.Errorf("%s and %s share a title", r, o)
		}
		titles[r.Title()] = r
		if r.Code() == codes.OK || r.HTTPStatus() < 400 || r.HTTPStatus() > 599 {
			t.Errorf("%s shows as %s, %d", r, r.Code(), r.HTTPStatus())
		}
	}
}

// TestMapping pins the codes and statuses that clients may rely on.
func TestMapping(t *testing.T) {
	for _, c := range []struct {
		r    apierr.Reason
		code codes.Code
		http int
	}{
		{apierr.OutOfTokens, codes.ResourceExhausted, 429},
		{apierr.ExceedsLimit, codes.FailedPrecondition, 400},
		{apierr.EntityNotFound, codes.NotFound, 404},
		{apierr.ParentNotFound, codes.NotFound, 404},
		{apierr.HasChildren, codes.FailedPrecondition, 409},
		{apierr.EntityExists, codes.AlreadyExists, 409},
		{apierr.RequestIDReused, codes.AlreadyExists, 409},
		{apierr.InvalidField, codes.InvalidArgument, 400},
		{apierr.OutOfRange, codes.OutOfRange, 400},
		{apierr.MalformedJSON, codes.InvalidArgument, 400},
		{apierr.BodyTooLarge, codes.ResourceExhausted, 413},
		{apierr.UnsupportedMediaType, codes.InvalidArgument, 415},
		{apierr.MethodNotAllowed, codes.Unimplemented, 405},
		{apierr.RouteNotFound, codes.Unimplemented, 404},
		{apierr.VersionMismatch, codes.FailedPrecondition, 409},
		{apierr.MemberNotFound, codes.NotFound, 404},
		{apierr.MemberState, codes.FailedPrecondition, 409},
		{apierr.Overloaded, codes.Unavailable, 503},
		{apierr.SiteUnavailable, codes.Unavailable, 503},
		{apierr.SiteDraining, codes.Unavailable, 503},
		{apierr.LeaseMoved, codes.Unavailable, 503},
		{apierr.MembersChanging, codes.FailedPrecondition, 409},
		{apierr.NoQuorum, codes.Unavailable, 503},
		{apierr.ShuttingDown, codes.Unavailable, 503},
		{apierr.DeadlineExceeded, codes.DeadlineExceeded, 504},
		{apierr.OutcomeUnknown, codes.Unknown, 504},
		{apierr.Canceled, codes.Canceled, 499},
		{apierr.Internal, codes.Internal, 500},
	} {
		if c.r.Code() != c.code || c.r.HTTPStatus() != c.http {
			t.Errorf("%s shows as %s, %d; want %s, %d", c.r, c.r.Code(), c.r.HTTPStatus(), c.code, c.http)
		}
	}
	for _, r := range []apierr.Reason{apierr.OutcomeUnknown, apierr.Canceled, apierr.Internal, "FROM_THE_FUTURE"} {
		if r.NothingDone() {
			t.Errorf("%s claims that nothing was done", r)
		}
	}
}

// full returns an Error with every field set.
func full(r apierr.Reason) *apierr.Error {
	return &apierr.Error{
		Reason: r, Message: "something", Left: new(int64(-7)), Limit: new(int64(9)), RetryAfter: 1500 * time.Millisecond,
		RequestID: "id-1", Site: "eu", Entity: "acme/vm", Lacking: "acme",
		Attempt: 3, NotAfter: time.Date(2026, 3, 4, 5, 6, 7, 8_000_000, time.UTC), Tried: []string{"us", "eu"},
		Violations: []apierr.Violation{{Field: "tokens", Problem: "at least 1"}, {Field: "wait", Problem: "at most 60s"}},
	}
}

var noCause = cmpopts.IgnoreFields(apierr.Error{}, "Err")

func TestRoundTripGRPC(t *testing.T) {
	for _, r := range apierr.Reasons() {
		for _, e := range []*apierr.Error{full(r), {Reason: r, Message: "bare"}} {
			got := apierr.FromGRPC(e.GRPCStatus().Err())
			if d := cmp.Diff(e, got, noCause); d != "" {
				t.Errorf("%s (-sent +received):\n%s", r, d)
			}
			if status.Code(e) != r.Code() {
				t.Errorf("%s returned as an error has code %s", r, status.Code(e))
			}
		}
		if got := apierr.FromGRPC(r.GRPCStatus().Err()); got.Reason != r || got.Message != r.Title() {
			t.Errorf("bare %s came back as %v", r, got)
		}
	}
}

func TestRoundTripProblem(t *testing.T) {
	for _, r := range apierr.Reasons() {
		e := full(r)
		rec := httptest.NewRecorder()
		apierr.WriteProblem(rec, httptest.NewRequest(http.MethodPost, "/v1/entities/a%2Fb:acquire?x=1", nil), fmt.Errorf("outside: %w", e))
		var p apierr.Problem
		if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil {
			t.Fatalf("%s: %v in %s", r, err, rec.Body)
		}
		if d := cmp.Diff(e, p.Error(), noCause); d != "" {
			t.Errorf("%s (-sent +received):\n%s", r, d)
		}
		if rec.Code != r.HTTPStatus() || p.Status != rec.Code {
			t.Errorf("%s: status %d, in the document %d", r, rec.Code, p.Status)
		}
		if p.Instance != "/v1/entities/a%2Fb:acquire" {
			t.Errorf("instance %q", p.Instance)
		}
		if got := rec.Header().Get("Retry-After"); got != "2" {
			t.Errorf("%s: Retry-After %q, want 2 (1.5s rounded up)", r, got)
		}
		if got := rec.Header().Get("Content-Type"); got != apierr.ProblemType {
			t.Errorf("%s: Content-Type %q", r, got)
		}
	}
}

func TestProblemDocument(t *testing.T) {
	rec := httptest.NewRecorder()
	apierr.WriteProblem(rec, httptest.NewRequest(http.MethodPost, "/v1/entities/acme/vm:acquire", nil),
		refuse.NoTokens("acme/vm", "us", 3, 0, 250*time.Millisecond))
	const want = `{"type":"tag:samya-db.github.io,2026:out-of-tokens","title":"Not enough tokens left","status":429,` +
		`"detail":"3 tokens of acme/vm wanted, 0 left","instance":"/v1/entities/acme/vm:acquire",` +
		`"reason":"OUT_OF_TOKENS","tokens_left":0,"retry_after_ms":250,"site":"us","entity":"acme/vm"}` + "\n"
	if d := cmp.Diff(want, rec.Body.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}

	rec = httptest.NewRecorder()
	apierr.WriteProblem(rec, httptest.NewRequest(http.MethodPost, "/v1/entities/acme/vm:acquire", nil),
		refuse.Exceeds("acme/vm", "us", 301, 300).LackedBy("acme", 301))
	const exceeds = `{"type":"tag:samya-db.github.io,2026:exceeds-limit","title":"More than the limit","status":400,` +
		`"detail":"301 tokens of acme/vm wanted, the limit of acme is 300","instance":"/v1/entities/acme/vm:acquire",` +
		`"reason":"EXCEEDS_LIMIT","limit":300,"site":"us","entity":"acme/vm","lacking":"acme"}` + "\n"
	if d := cmp.Diff(exceeds, rec.Body.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}

	rec = httptest.NewRecorder()
	apierr.WriteProblem(rec, httptest.NewRequest(http.MethodGet, "/", nil), errors.New("disk /var/x is on fire"))
	if rec.Code != 500 || strings.Contains(rec.Body.String(), "fire") {
		t.Errorf("an internal error shows as %d %s", rec.Code, rec.Body)
	}
	if rec.Header().Get("Retry-After") != "" {
		t.Error("Retry-After without advice")
	}
}

func TestIsAndAs(t *testing.T) {
	e := apierr.Unknown("id", "us", io.ErrUnexpectedEOF)
	w := fmt.Errorf("relay: %w", e)
	if !errors.Is(w, apierr.OutcomeUnknown) || errors.Is(w, apierr.OutOfTokens) || !errors.Is(w, io.ErrUnexpectedEOF) {
		t.Errorf("%v matches the wrong things", w)
	}
	if got, ok := errors.AsType[*apierr.Error](w); !ok || got != e {
		t.Errorf("not found in %v", w)
	}
	for _, part := range []string{"OUTCOME_UNKNOWN", `"id"`, `"us"`, "unexpected EOF"} {
		if !strings.Contains(e.Error(), part) {
			t.Errorf("%q does not say %s", e, part)
		}
	}
	if !errors.Is(apierr.FromGRPC(e.GRPCStatus().Err()), apierr.OutcomeUnknown) {
		t.Error("the reason does not survive gRPC")
	}
}

func TestFrom(t *testing.T) {
	plain := func(c codes.Code) error { return status.Error(c, "plain") }
	for _, c := range []struct {
		err  error
		want apierr.Reason
	}{
		{fmt.Errorf("x: %w", apierr.Overloaded), apierr.Overloaded},
		{fmt.Errorf("x: %w", apierr.NotFound("a")), apierr.EntityNotFound},
		{context.Canceled, apierr.Canceled},
		{fmt.Errorf("x: %w", context.DeadlineExceeded), apierr.OutcomeUnknown},
		{errors.New("x"), apierr.Internal},
		{plain(codes.Unavailable), apierr.OutcomeUnknown},
		{plain(codes.DeadlineExceeded), apierr.OutcomeUnknown},
		{plain(codes.Unknown), apierr.OutcomeUnknown},
		{plain(codes.Aborted), apierr.OutcomeUnknown},
		{plain(codes.Canceled), apierr.Canceled},
		{plain(codes.ResourceExhausted), apierr.BodyTooLarge},
		{plain(codes.Unimplemented), apierr.RouteNotFound},
		{plain(codes.InvalidArgument), apierr.InvalidField},
		{plain(codes.NotFound), apierr.EntityNotFound},
		{plain(codes.AlreadyExists), apierr.EntityExists},
		{plain(codes.FailedPrecondition), apierr.VersionMismatch},
		{plain(codes.OutOfRange), apierr.OutOfRange},
		{plain(codes.Internal), apierr.Internal},
		{plain(codes.PermissionDenied), apierr.Internal},
		{name.Entity("name", "a//b"), apierr.InvalidField},
	} {
		got := apierr.From(c.err)
		if got.Reason != c.want {
			t.Errorf("From(%v) = %s, want %s", c.err, got.Reason, c.want)
		}
		if got := apierr.ReasonOf(c.err); got != c.want {
			t.Errorf("ReasonOf(%v) = %s", c.err, got)
		}
		if c.want != apierr.InvalidField && !errors.Is(got, c.err) && !errors.Is(c.err, got.Reason) {
			t.Errorf("From(%v) lost its cause", c.err)
		}
	}
	if apierr.From(nil) != nil || apierr.FromGRPC(nil) != nil || apierr.ReasonOf(nil) != "" {
		t.Error("nil is an error")
	}
	if got := apierr.FromGRPC(io.EOF); got.Reason != apierr.Internal {
		t.Errorf("FromGRPC(EOF) = %v", got)
	}
}

func TestFromName(t *testing.T) {
	got := apierr.From(fmt.Errorf("create: %w", name.Entity("name", "a//b")))
	if len(got.Violations) != 1 || got.Violations[0].Field != "name" || got.Violations[0].Problem == "" {
		t.Errorf("violations %+v", got.Violations)
	}
	both := errors.Join(name.Entity("name", ""), nil, name.Tokens("tokens", 0))
	if got := apierr.From(both).Violations; len(got) != 2 || got[0].Field != "name" || got[1].Field != "tokens" {
		t.Errorf("joined violations %+v", got)
	}
	if !errors.Is(apierr.FromName(name.Entity("name", "")), apierr.InvalidField) || apierr.FromName(nil) != nil {
		t.Error("FromName")
	}
}

// TestTextIsClipped: text from a client comes back bounded and as valid UTF-8. A status
// with invalid UTF-8 could not be sent at all.
func TestTextIsClipped(t *testing.T) {
	long := strings.Repeat("é", 5000)
	e := &apierr.Error{Reason: apierr.InvalidField, Message: long, Entity: "bad\xff", Violations: make([]apierr.Violation, 1000)}
	for i := range e.Violations {
		e.Violations[i] = apierr.Violation{Field: "f\xff", Problem: long}
	}
	got := apierr.FromGRPC(e.GRPCStatus().Err())
	if got.Reason != apierr.InvalidField || len(got.Violations) != 32 || got.Entity != "bad\uFFFD" {
		t.Fatalf("got %s, %d violations, entity %q", got.Reason, len(got.Violations), got.Entity)
	}
	p := e.Problem(long)
	for _, s := range []string{got.Message, got.Violations[0].Problem, p.Detail, p.Instance, p.Errors[0].Problem} {
		if len(s) > 1024 || !utf8.ValidString(s) || !strings.HasSuffix(s, "…") {
			t.Errorf("%d bytes, valid %t: …%s", len(s), utf8.ValidString(s), s[len(s)-6:])
		}
	}
}

func FuzzProblem(tf *testing.F) {
	f := testfuzz.On(tf)
	f.Add("m", "e", "f", int64(3), int64(1))
	f.Add("\xff", "\x00", "…", int64(-1), int64(-5))
	f.Fuzz(func(t *testing.T, msg, entity, field string, left, retry int64) {
		e := &apierr.Error{
			Reason: apierr.OutOfTokens, Message: msg, Entity: entity, Left: &left, RetryAfter: time.Duration(retry),
			Violations: []apierr.Violation{{Field: field, Problem: msg}},
		}
		if got := apierr.FromGRPC(e.GRPCStatus().Err()); got.Reason != e.Reason || *got.Left != left {
			t.Fatalf("sent %v, received %v", e, got)
		}
		b, err := json.Marshal(e.Problem(entity))
		if err != nil || !json.Valid(b) {
			t.Fatalf("%v: %s", err, b)
		}
	})
}
