package appmgr

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samya-db/samya/appmgr/fake"
	"github.com/samya-db/samya/appmgr/httpapi"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/apierr/refuse"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// ask makes an HTTP request; head holds pairs of header names and values.
func (r *rig) ask(t *testing.T, method, target, body string, head ...string) *httptest.ResponseRecorder {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	for i := 0; i+1 < len(head); i += 2 {
		req.Header.Set(head[i], head[i+1])
	}
	rec := httptest.NewRecorder()
	httpapi.NewServer(t.Context(), r.httpAPI(), r.log).Handler.ServeHTTP(rec, req)
	hold(t, req, body, rec)
	return rec
}

// The answers of the fake sites to an inspection.
const (
	inspectedUS = `{"site":"us","known":true,"up_ms":1500,"partitions":[{"entities":3,"operations":9,"queued":1},{"entities":2,"operations":3,"queued":0}],"served":10,"cross":2,"passed":1,"imbalance":1.5,` +
		`"repartitioning":{"on":true,"computed":3,"applied":2,"skipped":1,"failed":4,"moved":5,"tracking":0.25,"last_cut":0,"last_cut_ms":1.25,"pause":{"count":2,"p50_us":40,"p99_us":41,"max_us":41.5}},` +
		`"split":[{"name":"acme","left":[5,-1],"operations":6}]}`
	nothingInspected = `"up_ms":0,"partitions":[],"served":0,"cross":0,"passed":0,"imbalance":0,` +
		`"repartitioning":{"on":false,"computed":0,"applied":0,"skipped":0,"failed":0,"moved":0,"tracking":0,"last_cut":0,"last_cut_ms":0,"pause":{"count":0,"p50_us":0,"p99_us":0,"max_us":0}},"split":[]}`
)

func TestHTTPAnswers(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		for _, c := range []struct {
			method, target, body string
			status               int
			want                 string
		}{
			{"POST", "/v1/entities", `{"name":"acme/vm","limit":5000}`, 201, `{"name":"acme/vm","limit":5000,"generation":1,"version":1}`},
			{"POST", "/v1/entities", `{"name":"a","limit":0,"request_id":"x"}`, 201, `{"name":"a","limit":0,"generation":1,"version":1}`},
			{"PATCH", "/v1/entities/acme/vm", `{"limit":6000,"expected_version":3,"request_id":"x"}`, 200, `{"name":"acme/vm","limit":6000,"generation":1,"version":4,"may_exceed_by":0,"missing_sites":[]}`},
			{
				"PATCH", "/v1/entities/acme/vm", `{"limit":0,"wait_applied":true}`, 200,
				`{"name":"acme/vm","limit":0,"generation":1,"version":4,"may_exceed_by":60,"missing_sites":["au","eu"]}`,
			},
			{"DELETE", "/v1/entities/acme/vm?expected_generation=1&request_id=x", "", 204, ``},
			{"POST", "/v1/entities/acme/vm:acquire", `{"tokens":3,"request_id":"r","wait":"2s","site":"us"}`, 200, `{"entity":"acme/vm","tokens":3,"request_id":"r","site":"us","left":7}`},
			{"POST", "/v1/entities/acme%2Fvm%3Aacquire", `{"tokens":3,"request_id":"r"}`, 200, `{"entity":"acme/vm","tokens":3,"request_id":"r","site":"us","left":7}`},
			{"POST", "/v1/entities/a:release", ` {"tokens" : 9007199254740991, "request_id":"r"} `, 200, `{"entity":"a","tokens":9007199254740991,"request_id":"r","site":"us","left":9}`},
			{
				"POST", "/v1/entities/a:acquire",
				`{"tokens":3,"min_tokens":2,"dry_run":false,"request_id":"r","lease":{"ttl":"30s","holder":"h"},"attempt":2,"tried":["eu"],"not_after":"2026-01-02T15:04:05.678Z"}`,
				200, `{"entity":"a","tokens":3,"request_id":"r","site":"us","left":7,"lease":{"name":"us/r","entity":"a","tokens":3,"remaining_ms":30000,"holder":"h"}}`,
			},
			{"POST", "/v1/entities/a:release", `{"lease":"eu/x","request_id":"r"}`, 200, `{"entity":"a","tokens":0,"request_id":"r","site":"eu","left":9}`},
			{"POST", "/v1/entities/a:release", `{"tokens":2,"lease":"eu/x","site":"us","request_id":"r"}`, 200, `{"entity":"a","tokens":2,"request_id":"r","site":"us","left":9,"parked":true}`},
			{"POST", "/v1/leases:renew", `{"lease":"eu/x","ttl":"1h"}`, 200, `{"name":"eu/x","entity":"acme/vm","tokens":3,"remaining_ms":3600000,"holder":"h"}`},
			{"POST", "/v1/leases:commit", `{"lease":"eu/x","tokens":2,"request_id":"r"}`, 200, `{"lease":"eu/x","tokens":2,"returned":1,"request_id":"r","site":"eu"}`},
			{"POST", "/v1/leases:void", `{"lease":"eu/x","entity":"a","request_id":"r"}`, 200, `{"entity":"a","tokens":0,"request_id":"r","site":"eu","left":9}`},
			{
				"GET", "/v1/leases?holder=h&entity=acme/vm&page_size=1&page_token=eu:4", "", 200,
				`{"leases":[{"name":"eu/5","entity":"acme/vm","tokens":2,"remaining_ms":1000,"holder":"h"}],"next_page_token":"us:","missing":[]}`,
			},
			{"GET", "/v1/entities?prefix=ac&page_size=5&page_token=t", "", 200, `{"entities":[{"name":"aca","limit":1,"generation":1,"version":1}],"next_page_token":"next"}`},
			{
				"GET", "/v1/entities/acme/vm", "", 200,
				`{"name":"acme/vm","limit":100,"generation":1,"version":1,"available":60,"acquired":15,"in_transit":25,"complete":true,"consistent":false,"debt":0,"may_exceed_by":0,"surplus":0,"written_off":0,"shares":[` +
					`{"site":"us","left":20,"offered":0,"net":5,"waiting":0,"redistributions":0,"transfers":0,"age_ms":0,"known":true},` +
					`{"site":"eu","left":20,"offered":0,"net":5,"waiting":0,"redistributions":0,"transfers":0,"age_ms":0,"known":true},` +
					`{"site":"au","left":20,"offered":0,"net":5,"waiting":0,"redistributions":0,"transfers":0,"age_ms":0,"known":true}]}`,
			},
			{
				"GET", "/v1/sites", "", 200,
				`{"cluster":"test","answered_by":"am","sites":[` +
					`{"name":"us","region":"us","address":"us","health":"serving","round_trip_ms":0.000001,"oldest_version":1,"newest_version":2,"http_address":"us:7101"},` +
					`{"name":"eu","region":"eu","address":"eu","health":"serving","round_trip_ms":132,"oldest_version":1,"newest_version":2,"http_address":"eu:7101"},` +
					`{"name":"au","region":"au","address":"au","health":"serving","round_trip_ms":160,"oldest_version":3,"newest_version":4,` +
					`"refusal":"the build of site au is too new","http_address":"au:7101"}]}`,
			},
			{
				"GET", "/v1/members", "", 200,
				`{"version":2,"behind":12,"waits_for":"12 entities to adopt the new voters","answered_by":"site/us","members":[` +
					`{"name":"us","state":"member","knows":true,"region":"us","address":"us","health":"serving","waits_for":""},` +
					`{"name":"eu","state":"member","knows":true,"region":"eu","address":"eu","health":"serving","waits_for":""},` +
					`{"name":"au","state":"member","knows":true,"region":"au","address":"au","health":"serving","waits_for":""},` +
					`{"name":"west","state":"joining","knows":false,"region":"us","address":"us:7","health":"unknown","waits_for":"the site to learn the catalogue"}]}`,
			},
			{
				"POST", "/v1/members", `{"name":"west","request_id":"r"}`, 200,
				`{"member":{"name":"west","state":"joining","knows":false,"region":"us","address":"us:7","health":"unknown","waits_for":"the site to learn the catalogue"},"version":2}`,
			},
			{
				"POST", "/v1/members/eu:drain", `{"heir":"au"}`, 200,
				`{"member":{"name":"eu","state":"draining","knows":true,"region":"eu","address":"eu:7","health":"unknown","waits_for":"","heir":"au"},"version":3}`,
			},
			{
				"DELETE", "/v1/members/west", "", 200,
				`{"member":{"name":"west","state":"gone","knows":false,"region":"","address":"","health":"unknown","waits_for":""},"version":3}`,
			},
			{
				"DELETE", "/v1/members/eu?lost=true", "", 200,
				`{"member":{"name":"eu","state":"lost","knows":false,"region":"","address":"","health":"unknown","waits_for":""},"version":3}`,
			},
			{
				"GET", "/v1/version", "", 200,
				`{"version":2,"complete":true,"sites":[` +
					`{"site":"us","version":2,"oldest":1,"newest":2,"build":"samya v1","known":true},` +
					`{"site":"eu","version":1,"oldest":1,"newest":2,"build":"samya v1","known":true},` +
					`{"site":"au","version":1,"oldest":1,"newest":1,"build":"","known":true}]}`,
			},
			{"PUT", "/v1/version", `{"version":3}`, 200, `{"version":3}`},
			{
				"GET", "/v1/mode", "", 200,
				`{"protocol":"star","version":2,"complete":true,"sites":[` +
					`{"site":"us","protocol":"star","version":2,"configured":"majority","known":true},` +
					`{"site":"eu","protocol":"auto","version":1,"configured":"majority","known":true},` +
					`{"site":"au","protocol":"majority","version":0,"configured":"majority","known":true}]}`,
			},
			{"PUT", "/v1/mode", `{"protocol":"auto"}`, 200, `{"protocol":"auto","version":4}`},
			{"PUT", "/v1/mode", `{"protocol":"star","expected_version":3,"request_id":"x"}`, 200, `{"protocol":"star","version":4}`},
			{
				"GET", "/v1/forecast", "", 200,
				`{"complete":true,"sites":[` +
					`{"site":"us","model":"auto","configured":"auto","known":true},` +
					`{"site":"eu","model":"auto","configured":"auto","known":true},` +
					`{"site":"au","model":"auto","configured":"auto","known":true}]}`,
			},
			{
				"PUT", "/v1/forecast", `{"model":"none"}`, 200,
				`{"complete":true,"sites":[` +
					`{"site":"us","model":"none","configured":"auto","known":true},` +
					`{"site":"eu","model":"none","configured":"auto","known":true},` +
					`{"site":"au","model":"none","configured":"auto","known":true}]}`,
			},
			{
				"PUT", "/v1/forecast", `{"model":"lstm"}`, 200,
				`{"complete":false,"sites":[` +
					`{"site":"us","model":"","configured":"","known":false,"problem":"site us is not ready"},` +
					`{"site":"eu","model":"lstm","configured":"auto","known":true},` +
					`{"site":"au","model":"","configured":"","known":false,"problem":"site au is not ready"}]}`,
			},
			{
				"GET", "/v1/sites:inspect", "", 200,
				`{"complete":false,"sites":[` + inspectedUS + `,{"site":"eu","known":true,` + nothingInspected +
					`,{"site":"au","known":false,"problem":"site au is not ready",` + nothingInspected + `]}`,
			},
			{"GET", "/v1/sites:inspect?site=us", "", 200, `{"complete":true,"sites":[` + inspectedUS + `]}`},
			{"HEAD", "/v1/sites:inspect", "", 200, "*"},
			{"GET", "/v1/openapi.yaml", "", 200, "*"},
			{"GET", "/v1/openapi.json", "", 200, "*"},
			{"GET", "/livez", "", 200, "ok"},
			{"GET", "/readyz", "", 200, "ok"},
			{"HEAD", "/v1/sites", "", 200, "*"},
			{"GET", "/metrics", "", 200, "*"},
		} {
			rec := r.ask(t, c.method, c.target, c.body)
			got := strings.TrimSuffix(rec.Body.String(), "\n")
			if rec.Code != c.status || (c.want != "*" && got != c.want) {
				t.Errorf("%s %s: %d %s\nwant %d %s", c.method, c.target, rec.Code, got, c.status, c.want)
			}
			if strings.HasPrefix(got, "{") && rec.Header().Get("Content-Type") != "application/json" {
				t.Errorf("%s %s: content type %q", c.method, c.target, rec.Header().Get("Content-Type"))
			}
		}
		if loc := r.ask(t, "POST", "/v1/entities", `{"name":"acme/vm","limit":1}`).Header().Get("Location"); loc != "/v1/entities/acme/vm" {
			t.Errorf("Location %q", loc)
		}
		var m struct {
			RequestID string `json:"request_id"`
		}
		if err := json.Unmarshal(r.ask(t, "POST", "/v1/entities/a:acquire", `{"tokens":1}`).Body.Bytes(), &m); err != nil || len(m.RequestID) != 26 {
			t.Errorf("the request id made up is %q, %v", m.RequestID, err)
		}
		page := r.ask(t, "GET", "/metrics", "").Body.String()
		for _, want := range []string{
			`samya_appmgr_requests_total{api="http",method="Acquire",reason="OK"} 4`,
			`samya_appmgr_site_up{site="eu"} 1`, `samya_appmgr_site_round_trip_seconds{site="eu"} 0.132`,
			`samya_appmgr_outstanding_requests 0`, `samya_appmgr_site_calls_total{fate="answered",site="au"}`,
		} {
			if !strings.Contains(page, want) {
				t.Errorf("/metrics has no %s", want)
			}
		}
	})
}

// TestHTTPRefusals has every answer to a request that cannot be done.
func TestHTTPRefusals(t *testing.T) {
	const acq = "/v1/entities/acme/vm:acquire"
	const tokens = "at least 1"
	type refusal struct {
		what, method, target, body string
		head                       []string
		reason                     apierr.Reason
		field, problem             string // of the only violation; problem is a part
	}
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		r.sites["us"].OnAcquire = func(_ context.Context, in *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
			switch in.GetEntity() {
			case "empty":
				return nil, refuse.NoTokens("empty", "us", in.GetTokens(), 2, 300*time.Millisecond)
			case "small":
				return nil, refuse.Exceeds("small", "us", in.GetTokens(), 2).LackedBy("parent", in.GetTokens())
			case "none":
				return nil, apierr.NotFound("none")
			case "reused":
				return nil, refuse.Reused(in.GetRequestId(), "us")
			}
			return nil, apierr.Internal
		}
		for _, c := range []refusal{
			{what: "out of tokens", method: "POST", target: "/v1/entities/empty:acquire", body: `{"tokens":3}`, reason: apierr.OutOfTokens},
			{what: "more than the limit", method: "POST", target: "/v1/entities/small:acquire", body: `{"tokens":3}`, reason: apierr.ExceedsLimit},
			{what: "unknown entity", method: "POST", target: "/v1/entities/none:acquire", body: `{"tokens":3}`, reason: apierr.EntityNotFound},
			{what: "unknown entity read", method: "GET", target: "/v1/entities/none", reason: apierr.EntityNotFound},
			{what: "unknown entity deleted", method: "DELETE", target: "/v1/entities/none", reason: apierr.EntityNotFound},
			{what: "duplicate entity", method: "POST", target: "/v1/entities", body: `{"name":"taken","limit":3}`, reason: apierr.EntityExists},
			{what: "id reused", method: "POST", target: "/v1/entities/reused:acquire", body: `{"tokens":3,"request_id":"x"}`, reason: apierr.RequestIDReused},
			{what: "version", method: "PATCH", target: "/v1/entities/a", body: `{"limit":3,"expected_version":2}`, reason: apierr.VersionMismatch},

			{what: "zero tokens", method: "POST", target: acq, body: `{"tokens":0}`, reason: apierr.InvalidField, field: "tokens", problem: tokens},
			{what: "negative tokens", method: "POST", target: acq, body: `{"tokens":-3}`, reason: apierr.InvalidField, field: "tokens", problem: tokens},
			{what: "2^53 tokens", method: "POST", target: acq, body: `{"tokens":9007199254740992}`, reason: apierr.InvalidField, field: "tokens", problem: "at most 9007199254740991"},
			{what: "2^63 tokens", method: "POST", target: acq, body: `{"tokens":9223372036854775808}`, reason: apierr.InvalidField, field: "tokens", problem: "at most 9007199254740991"},
			{what: "-2^64 tokens", method: "POST", target: acq, body: `{"tokens":-18446744073709551616}`, reason: apierr.InvalidField, field: "tokens", problem: tokens},
			{what: "tokens with a fraction", method: "POST", target: acq, body: `{"tokens":1.5}`, reason: apierr.InvalidField, field: "tokens", problem: "whole number"},
			{what: "tokens with an exponent", method: "POST", target: acq, body: `{"tokens":1e3}`, reason: apierr.InvalidField, field: "tokens", problem: "at most 9007199254740991"},
			{what: "tokens in a string", method: "POST", target: acq, body: `{"tokens":"3"}`, reason: apierr.InvalidField, field: "tokens", problem: "not a string"},
			{what: "tokens null", method: "POST", target: acq, body: `{"tokens":null}`, reason: apierr.InvalidField, field: "tokens", problem: "not null"},
			{what: "tokens an array", method: "POST", target: acq, body: `{"tokens":[1]}`, reason: apierr.InvalidField, field: "tokens", problem: "not an array"},
			{what: "tokens an object", method: "POST", target: acq, body: `{"tokens":{}}`, reason: apierr.InvalidField, field: "tokens", problem: "not an object"},
			{what: "tokens a boolean", method: "POST", target: acq, body: `{"tokens":true}`, reason: apierr.InvalidField, field: "tokens", problem: "not a boolean"},
			{what: "tokens missing", method: "POST", target: acq, body: `{}`, reason: apierr.InvalidField, field: "tokens", problem: "missing"},
			{what: "tokens twice", method: "POST", target: acq, body: `{"tokens":1,"tokens":2}`, reason: apierr.InvalidField, field: "tokens", problem: "twice"},
			{what: "unknown field", method: "POST", target: acq, body: `{"tokens":1,"token":2}`, reason: apierr.InvalidField, field: "token", problem: "unknown"},
			{what: "field in other case", method: "POST", target: acq, body: `{"Tokens":1}`, reason: apierr.InvalidField, field: "Tokens", problem: "unknown"},
			{what: "long unknown field", method: "POST", target: acq, body: `{"` + strings.Repeat("x", 999) + `":2}`, reason: apierr.InvalidField, field: strings.Repeat("x", 64) + "…", problem: "unknown"},
			{what: "wait on a release", method: "POST", target: "/v1/entities/a:release", body: `{"tokens":1,"wait":"1s"}`, reason: apierr.InvalidField, field: "wait", problem: "unknown"},
			{what: "wait a number", method: "POST", target: acq, body: `{"tokens":1,"wait":2}`, reason: apierr.InvalidField, field: "wait", problem: "in a string"},
			{what: "wait nonsense", method: "POST", target: acq, body: `{"tokens":1,"wait":"soon"}`, reason: apierr.InvalidField, field: "wait", problem: "duration"},
			{what: "wait beyond int64", method: "POST", target: acq, body: `{"tokens":1,"wait":"9999999999h"}`, reason: apierr.InvalidField, field: "wait", problem: "duration"},
			{what: "wait too long", method: "POST", target: acq, body: `{"tokens":1,"wait":"61s"}`, reason: apierr.InvalidField, field: "wait", problem: "at most 60s"},
			{what: "wait negative", method: "POST", target: acq, body: `{"tokens":1,"wait":"-1s"}`, reason: apierr.InvalidField, field: "wait", problem: "at least 0s"},
			{what: "id with a space", method: "POST", target: acq, body: `{"tokens":1,"request_id":"a b"}`, reason: apierr.InvalidField, field: "request_id", problem: "printable ASCII"},
			{what: "id too long", method: "POST", target: acq, body: `{"tokens":1,"request_id":"` + strings.Repeat("i", 129) + `"}`, reason: apierr.InvalidField, field: "request_id", problem: "at most 128"},
			{what: "id a number", method: "POST", target: acq, body: `{"tokens":1,"request_id":7}`, reason: apierr.InvalidField, field: "request_id", problem: "must be a string"},
			{what: "bad site", method: "POST", target: acq, body: `{"tokens":1,"site":"US"}`, reason: apierr.InvalidField, field: "site", problem: "lower-case"},
			{what: "no such site", method: "POST", target: acq, body: `{"tokens":1,"site":"mars"}`, reason: apierr.InvalidField, field: "site", problem: "no such site"},
			{what: "lease of no length", method: "POST", target: acq, body: `{"tokens":1,"lease":{}}`, reason: apierr.InvalidField, field: "lease.ttl", problem: "missing"},
			{what: "lease of a bad length", method: "POST", target: acq, body: `{"tokens":1,"lease":{"ttl":"1ms"}}`, reason: apierr.InvalidField, field: "lease.ttl", problem: "at least 1s"},
			{what: "unknown field of a lease", method: "POST", target: acq, body: `{"tokens":1,"lease":{"ttl":"1s","x":1}}`, reason: apierr.InvalidField, field: "lease.x", problem: "unknown"},
			{what: "lease no object", method: "POST", target: acq, body: `{"tokens":1,"lease":"1s"}`, reason: apierr.InvalidField, field: "lease", problem: "not a string"},
			{what: "dry run no boolean", method: "POST", target: acq, body: `{"tokens":1,"dry_run":"yes"}`, reason: apierr.InvalidField, field: "dry_run", problem: "true or false"},
			{what: "tried no array", method: "POST", target: acq, body: `{"tokens":1,"tried":"us"}`, reason: apierr.InvalidField, field: "tried", problem: "not a string"},
			{what: "tried of numbers", method: "POST", target: acq, body: `{"tokens":1,"tried":[1]}`, reason: apierr.InvalidField, field: "tried", problem: "strings alone"},
			{what: "attempt zero", method: "POST", target: acq, body: `{"tokens":1,"attempt":0}`, reason: apierr.InvalidField, field: "attempt", problem: "at least 1"},
			{what: "a later attempt without its time", method: "POST", target: acq, body: `{"tokens":1,"attempt":2,"request_id":"x"}`, reason: apierr.InvalidField, field: "not_after", problem: "missing"},
			{what: "not_after nonsense", method: "POST", target: acq, body: `{"tokens":1,"not_after":"soon"}`, reason: apierr.InvalidField, field: "not_after", problem: "RFC 3339"},
			{what: "min_tokens beyond tokens", method: "POST", target: acq, body: `{"tokens":1,"min_tokens":2}`, reason: apierr.InvalidField, field: "min_tokens", problem: "at most 1"},
			{what: "release of nothing", method: "POST", target: "/v1/entities/a:release", body: `{}`, reason: apierr.InvalidField, field: "tokens", problem: "missing"},
			{what: "release of a bad lease", method: "POST", target: "/v1/entities/a:release", body: `{"lease":"x"}`, reason: apierr.InvalidField, field: "lease", problem: "a slash"},
			{what: "lease ended", method: "POST", target: "/v1/leases:renew", body: `{"lease":"us/none"}`, reason: apierr.LeaseNotFound},
			{what: "lease ended, committed", method: "POST", target: "/v1/leases:commit", body: `{"lease":"us/none"}`, reason: apierr.LeaseNotFound},
			{what: "lease of no site", method: "POST", target: "/v1/leases:renew", body: `{"lease":"mars/x"}`, reason: apierr.InvalidField, field: "lease", problem: "no such site"},
			{what: "lease unnamed", method: "POST", target: "/v1/leases:renew", body: `{}`, reason: apierr.InvalidField, field: "lease", problem: "a slash"},
			{what: "lease unnamed, committed", method: "POST", target: "/v1/leases:commit", body: `{}`, reason: apierr.InvalidField, field: "lease", problem: "a slash"},
			{what: "lease unnamed, voided", method: "POST", target: "/v1/leases:void", body: `{"entity":"a"}`, reason: apierr.InvalidField, field: "lease", problem: "missing"},
			{what: "lease page token", method: "GET", target: "/v1/leases?page_token=x", reason: apierr.InvalidField, field: "page_token", problem: "earlier page"},
			{what: "watch of nothing", method: "GET", target: "/v1/entities/none:watch", reason: apierr.EntityNotFound},
			{what: "head of a watch", method: "HEAD", target: "/v1/entities/a:watch", reason: apierr.MethodNotAllowed, problem: "GET"},
			{what: "resume token too long", method: "GET", target: "/v1/entities/a:watch?resume_token=" + strings.Repeat("t", 257), reason: apierr.InvalidField, field: "resume_token", problem: "none that a watch gave"},
			{what: "get of a lease verb", method: "GET", target: "/v1/leases:void", reason: apierr.MethodNotAllowed, problem: "POST"},
			{what: "unknown consistency", method: "GET", target: "/v1/entities/a?consistency=strong", reason: apierr.InvalidField, field: "consistency", problem: "local, bounded, exact"},
			{what: "age nonsense", method: "GET", target: "/v1/entities/a?max_age=old", reason: apierr.InvalidField, field: "max_age", problem: "duration"},
			{what: "age too great", method: "GET", target: "/v1/entities/a?max_age=2h", reason: apierr.InvalidField, field: "max_age", problem: "at most 1h"},
			{what: "query on a post", method: "POST", target: acq + "?x=1", body: `{"tokens":1}`, reason: apierr.InvalidField, field: "x", problem: "unknown parameter"},

			{what: "name empty", method: "POST", target: "/v1/entities", body: `{"limit":1}`, reason: apierr.InvalidField, field: "name", problem: "at least 1 character"},
			{what: "name too long", method: "POST", target: "/v1/entities", body: `{"name":"` + strings.Repeat("n", 257) + `","limit":1}`, reason: apierr.InvalidField, field: "name", problem: "at most 256"},
			{what: "name with bad characters", method: "POST", target: "/v1/entities", body: `{"name":"a b","limit":1}`, reason: apierr.InvalidField, field: "name", problem: "' '"},
			{what: "name with a dot segment", method: "POST", target: "/v1/entities", body: `{"name":"a/../b","limit":1}`, reason: apierr.InvalidField, field: "name", problem: `".."`},
			{what: "limit missing", method: "POST", target: "/v1/entities", body: `{"name":"a"}`, reason: apierr.InvalidField, field: "limit", problem: "missing"},
			{what: "limit negative", method: "POST", target: "/v1/entities", body: `{"name":"a","limit":-1}`, reason: apierr.InvalidField, field: "limit", problem: "at least 0"},
			{what: "limit too large", method: "PATCH", target: "/v1/entities/a", body: `{"limit":9007199254740992}`, reason: apierr.InvalidField, field: "limit", problem: "at most 9007199254740991"},
			{what: "no change", method: "PATCH", target: "/v1/entities/a", body: `{}`, reason: apierr.InvalidField, field: "limit", problem: "missing"},
			{what: "wait of another type", method: "PATCH", target: "/v1/entities/a", body: `{"limit":1,"wait_applied":1}`, reason: apierr.InvalidField, field: "wait_applied", problem: "true or false"},
			{what: "version negative", method: "PATCH", target: "/v1/entities/a", body: `{"limit":1,"expected_version":-1}`, reason: apierr.InvalidField, field: "expected_version", problem: "at least 0"},
			{what: "generation nonsense", method: "DELETE", target: "/v1/entities/a?expected_generation=x", reason: apierr.InvalidField, field: "expected_generation", problem: "whole number"},
			{what: "path: bad characters", method: "GET", target: "/v1/entities/a%20b", reason: apierr.InvalidField, field: "name", problem: "' '"},
			{what: "path: double slash", method: "GET", target: "/v1/entities/a//b", reason: apierr.InvalidField, field: "name", problem: "segment"},
			{what: "path: dots", method: "GET", target: "/v1/entities/a/../b", reason: apierr.InvalidField, field: "name", problem: `".."`},
			{what: "path: no name", method: "GET", target: "/v1/entities/", reason: apierr.InvalidField, field: "name", problem: "empty"},
			{what: "path: no name before the verb", method: "POST", target: "/v1/entities/:acquire", body: `{"tokens":1}`, reason: apierr.InvalidField, field: "name", problem: "empty"},

			{what: "page size too large", method: "GET", target: "/v1/entities?page_size=1001", reason: apierr.InvalidField, field: "page_size", problem: "at most 1000"},
			{what: "page size negative", method: "GET", target: "/v1/entities?page_size=-1", reason: apierr.InvalidField, field: "page_size", problem: "at least 0"},
			{what: "page size nonsense", method: "GET", target: "/v1/entities?page_size=many", reason: apierr.InvalidField, field: "page_size", problem: "whole number"},
			{what: "page size twice", method: "GET", target: "/v1/entities?page_size=1&page_size=2", reason: apierr.InvalidField, field: "page_size", problem: "twice"},
			{what: "page token too long", method: "GET", target: "/v1/entities?page_token=" + strings.Repeat("t", 1025), reason: apierr.InvalidField, field: "page_token", problem: "earlier page"},
			{what: "bad prefix", method: "GET", target: "/v1/entities?prefix=/a", reason: apierr.InvalidField, field: "prefix", problem: "segment"},
			{what: "unknown parameter", method: "GET", target: "/v1/entities?limit=1", reason: apierr.InvalidField, field: "limit", problem: "unknown parameter"},
			{what: "malformed query", method: "GET", target: "/v1/entities?a;b", reason: apierr.InvalidField, field: "query", problem: "malformed"},

			{what: "empty body", method: "POST", target: acq, reason: apierr.MalformedJSON},
			{what: "blank body", method: "POST", target: acq, body: " \n", reason: apierr.MalformedJSON},
			{what: "not JSON", method: "POST", target: acq, body: `tokens=3`, reason: apierr.MalformedJSON},
			{what: "cut short", method: "POST", target: acq, body: `{"tokens":3`, reason: apierr.MalformedJSON},
			{what: "trailing garbage", method: "POST", target: acq, body: `{"tokens":3}{}`, reason: apierr.MalformedJSON},
			{what: "an array", method: "POST", target: acq, body: `[{"tokens":3}]`, reason: apierr.MalformedJSON},
			{what: "null", method: "POST", target: acq, body: `null`, reason: apierr.MalformedJSON},
			{what: "not UTF-8", method: "POST", target: acq, body: "{\"request_id\":\"\xff\"}", reason: apierr.MalformedJSON},
			{what: "too deep", method: "POST", target: acq, body: strings.Repeat("[", 20000), reason: apierr.MalformedJSON},
			{what: "too large", method: "POST", target: acq, body: `{"tokens":3}` + strings.Repeat(" ", defaultMaxBody), reason: apierr.BodyTooLarge},
			{what: "not declared JSON", method: "POST", target: acq, body: `{"tokens":3}`, head: []string{"Content-Type", "text/plain"}, reason: apierr.UnsupportedMediaType},
			{what: "a form", method: "POST", target: "/v1/entities", body: `name=acme&limit=3`, head: []string{"Content-Type", "application/x-www-form-urlencoded"}, reason: apierr.MalformedJSON},
			{what: "compressed", method: "POST", target: acq, body: `{}`, head: []string{"Content-Encoding", "gzip"}, reason: apierr.UnsupportedMediaType},

			{what: "unknown route", method: "GET", target: "/v2/entities", reason: apierr.RouteNotFound},
			{what: "root", method: "GET", target: "/", reason: apierr.RouteNotFound},
			{what: "trailing slash", method: "GET", target: "/v1/sites/", reason: apierr.RouteNotFound},
			{what: "unknown verb", method: "POST", target: "/v1/entities/a:borrow", body: `{}`, reason: apierr.RouteNotFound},
			{what: "post to an entity", method: "POST", target: "/v1/entities/a", body: `{}`, reason: apierr.MethodNotAllowed, problem: "DELETE, GET, HEAD, PATCH"},
			{what: "get of a verb", method: "GET", target: acq, reason: apierr.MethodNotAllowed, problem: "POST"},
			{what: "put of a collection", method: "PUT", target: "/v1/entities", body: `{}`, reason: apierr.MethodNotAllowed, problem: "GET, HEAD, POST"},
			{what: "delete of sites", method: "DELETE", target: "/v1/sites", reason: apierr.MethodNotAllowed, problem: "GET, HEAD"},
			{what: "post to the mode", method: "POST", target: "/v1/mode", body: `{}`, reason: apierr.MethodNotAllowed, problem: "GET, HEAD, PUT"},
			{what: "no version", method: "PUT", target: "/v1/version", body: `{}`, reason: apierr.InvalidField, field: "version"},
			{what: "too high a version", method: "PUT", target: "/v1/version", body: `{"version":65536}`, reason: apierr.InvalidField, field: "version", problem: "65535"},
			{what: "a version that not all speak", method: "PUT", target: "/v1/version", body: `{"version":4}`, reason: apierr.VersionMismatch},
			{what: "no mode", method: "PUT", target: "/v1/mode", body: `{}`, reason: apierr.InvalidField, field: "protocol", problem: "missing"},
			{what: "unknown mode", method: "PUT", target: "/v1/mode", body: `{"protocol":"paxos"}`, reason: apierr.InvalidField, field: "protocol", problem: "auto, majority, star"},
			{what: "another version", method: "PUT", target: "/v1/mode", body: `{"protocol":"auto","expected_version":2}`, reason: apierr.VersionMismatch},
			{what: "put of the members", method: "PUT", target: "/v1/members", body: `{}`, reason: apierr.MethodNotAllowed, problem: "GET, HEAD, POST"},
			{what: "no member", method: "POST", target: "/v1/members", body: `{}`, reason: apierr.InvalidField, field: "name", problem: "empty"},
			{what: "no site's name", method: "POST", target: "/v1/members", body: `{"name":"US/West"}`, reason: apierr.InvalidField, field: "name"},
			{what: "reused id of a member", method: "POST", target: "/v1/members", body: `{"name":"west","request_id":"reused"}`, reason: apierr.RequestIDReused},
			{what: "get of a member", method: "GET", target: "/v1/members/eu", reason: apierr.MethodNotAllowed, problem: "DELETE"},
			{what: "unknown verb of a member", method: "POST", target: "/v1/members/eu:keep", body: `{}`, reason: apierr.RouteNotFound},
			{what: "drain of no site's name", method: "POST", target: "/v1/members/US:drain", body: `{}`, reason: apierr.InvalidField, field: "name"},
			{what: "drain to no site's name", method: "POST", target: "/v1/members/eu:drain", body: `{"heir":"US"}`, reason: apierr.InvalidField, field: "heir"},
			{what: "end of a drain with an heir", method: "POST", target: "/v1/members/eu:drain", body: `{"heir":"us","cancel":true}`, reason: apierr.InvalidField, field: "heir"},
			{what: "drain of another name", method: "POST", target: "/v1/members/eu:drain", body: `{"name":"us"}`, reason: apierr.InvalidField, field: "name"},
			{what: "drain of an unknown site", method: "POST", target: "/v1/members/none:drain", body: `{}`, reason: apierr.MemberNotFound},
			{what: "drain during another change", method: "POST", target: "/v1/members/eu:drain", body: `{"request_id":"early"}`, reason: apierr.MembersChanging},
			{what: "removal of a member", method: "DELETE", target: "/v1/members/eu", reason: apierr.MemberState},
			{what: "removal of another name", method: "DELETE", target: "/v1/members/eu?name=us", reason: apierr.InvalidField, field: "name"},
			{what: "neither lost nor not", method: "DELETE", target: "/v1/members/eu?lost=1", reason: apierr.InvalidField, field: "lost"},
			{what: "post to the forecast", method: "POST", target: "/v1/forecast", body: `{}`, reason: apierr.MethodNotAllowed, problem: "GET, HEAD, PUT"},
			{what: "no model", method: "PUT", target: "/v1/forecast", body: `{}`, reason: apierr.InvalidField, field: "model", problem: "missing"},
			{what: "unknown model", method: "PUT", target: "/v1/forecast", body: `{"model":"oracle"}`, reason: apierr.InvalidField, field: "model", problem: "ar, ar-lad, arima, auto"},
			{what: "inspect another site's", method: "GET", target: "/v1/sites:inspect?site=mars", reason: apierr.SiteUnavailable},
			{what: "inspect a site that is not ready", method: "GET", target: "/v1/sites:inspect?site=au", reason: apierr.SiteUnavailable},
			{what: "inspect no site", method: "GET", target: "/v1/sites:inspect?site=M", reason: apierr.InvalidField, field: "site"},
			{what: "inspect with more", method: "GET", target: "/v1/sites:inspect?partition=1", reason: apierr.InvalidField, field: "partition", problem: "unknown parameter"},
			{what: "post an inspection", method: "POST", target: "/v1/sites:inspect", body: `{}`, reason: apierr.MethodNotAllowed, problem: "GET, HEAD"},
			{what: "no site takes the model", method: "PUT", target: "/v1/forecast", body: `{"model":"arima"}`, reason: apierr.SiteUnavailable},
			{what: "reused id", method: "PUT", target: "/v1/mode", body: `{"protocol":"auto","request_id":"reused"}`, reason: apierr.RequestIDReused},
			{what: "post to health", method: "POST", target: "/livez", reason: apierr.MethodNotAllowed, problem: "GET, HEAD"},
		} {
			rec := r.ask(t, c.method, c.target, c.body, c.head...)
			var p apierr.Problem
			if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil || rec.Header().Get("Content-Type") != apierr.ProblemType {
				t.Errorf("%s: no problem document: %d %s", c.what, rec.Code, rec.Body)
				continue
			}
			if p.Reason != c.reason || rec.Code != c.reason.HTTPStatus() || p.Status != rec.Code {
				t.Errorf("%s: %d %s (%s), want %s", c.what, rec.Code, p.Reason, p.Detail, c.reason)
				continue
			}
			switch {
			case c.field != "":
				if len(p.Errors) != 1 || p.Errors[0].Field != c.field || !strings.Contains(p.Errors[0].Problem, c.problem) {
					t.Errorf("%s: %+v, want field %s, problem …%s…", c.what, p.Errors, c.field, c.problem)
				}
			case c.reason == apierr.MethodNotAllowed:
				if got := rec.Header().Get("Allow"); got != c.problem {
					t.Errorf("%s: Allow %q, want %q", c.what, got, c.problem)
				}
			case c.reason == apierr.ExceedsLimit:
				if rec.Code != 400 || rec.Header().Get("Retry-After") != "" || p.RetryAfterMS != 0 || p.TokensLeft != nil || p.Limit == nil || *p.Limit != 2 ||
					p.Lacking != "parent" || p.Site != "us" || p.Entity != "small" || p.RequestID == "" {
					t.Errorf("%s: Retry-After %q, %+v", c.what, rec.Header().Get("Retry-After"), p)
				}
			case c.reason == apierr.OutOfTokens:
				if rec.Header().Get("Retry-After") != "1" || p.RetryAfterMS != 300 || p.TokensLeft == nil || *p.TokensLeft != 2 ||
					p.Site != "us" || p.Entity != "empty" || p.RequestID == "" {
					t.Errorf("%s: Retry-After %q, %+v", c.what, rec.Header().Get("Retry-After"), p)
				}
			}
		}
	})
}

// TestHTTPNamesEveryField: an answer names every field in error.
func TestHTTPNamesEveryField(t *testing.T) {
	inBubble(t, []string{"us"}, nil, func(r *rig) {
		t := r.t
		for body, want := range map[string][]apierr.Violation{
			`{"tokens":0,"wait":"1h"}`: {
				{Field: "tokens", Problem: "must be at least 1"}, {Field: "wait", Problem: "1h0m0s, at most 60s"},
			},
			`{"tokens":1,"request_id":" ","site":"-"}`: {
				{Field: "request_id", Problem: "' ' at position 1, allowed are printable ASCII without space"},
				{Field: "site", Problem: "begins or ends with '-'"},
			},
		} {
			var p apierr.Problem
			if err := json.Unmarshal(r.ask(t, "POST", "/v1/entities/a:acquire", body).Body.Bytes(), &p); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, p.Errors); d != "" {
				t.Errorf("%s (-want +got):\n%s", body, d)
			}
		}
	})
}

func TestHTTPUnknownOutcome(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		us := r.sites["us"]
		us.OnAcquire = func(ctx context.Context, _ *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
			us.Kill()
			<-ctx.Done()
			return nil, ctx.Err()
		}
		rec := r.ask(t, "POST", "/v1/entities/a:acquire", `{"tokens":1}`)
		var p apierr.Problem
		if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		if rec.Code != 504 || p.Reason != apierr.OutcomeUnknown || p.Site != "us" || len(p.RequestID) != 26 || p.Entity != "a" {
			t.Errorf("%d %+v", rec.Code, p)
		}
	})
}

func TestHTTPReadiness(t *testing.T) {
	inBubble(t, []string{"us"}, nil, func(r *rig) {
		t := r.t
		r.sites["us"].Kill()
		fake.Pass(3 * time.Second)
		if rec := r.ask(t, "GET", "/readyz", ""); rec.Code != 503 || !strings.Contains(rec.Body.String(), "SITE_UNAVAILABLE") {
			t.Errorf("without a site: %d %s", rec.Code, rec.Body)
		}
		rec := r.ask(t, "POST", "/v1/entities/a:acquire", `{"tokens":1}`)
		if rec.Code != 503 || rec.Header().Get("Retry-After") != "1" {
			t.Errorf("without a site: %d, Retry-After %q", rec.Code, rec.Header().Get("Retry-After"))
		}
		if rec := r.ask(t, "GET", "/livez", ""); rec.Code != 200 {
			t.Errorf("livez without a site: %d", rec.Code)
		}
		r.limiter.Close()
		if rec := r.ask(t, "GET", "/readyz", ""); rec.Code != 503 || !strings.Contains(rec.Body.String(), "SHUTTING_DOWN") {
			t.Errorf("shutting down: %d %s", rec.Code, rec.Body)
		}
		if rec := r.ask(t, "GET", "/v1/sites", ""); rec.Code != 503 {
			t.Errorf("a request while shutting down: %d", rec.Code)
		}
	})
}

func TestTooManyRequestsAtOnce(t *testing.T) {
	inBubble(t, []string{"us"}, func(c *Config) { c.MaxConcurrent = 1 }, func(r *rig) {
		t := r.t
		hold := make(chan struct{})
		r.sites["us"].OnAcquire = func(context.Context, *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
			<-hold
			return &samyav1.AcquireResponse{Site: "us"}, nil
		}
		done := make(chan int)
		go func() { done <- r.ask(t, "POST", "/v1/entities/a:acquire", `{"tokens":1}`).Code }()
		fake.Pass(time.Second)
		rec := r.ask(t, "GET", "/v1/sites", "")
		if rec.Code != 503 || rec.Header().Get("Retry-After") != "1" || !strings.Contains(rec.Body.String(), "OVERLOADED") {
			t.Errorf("%d %s", rec.Code, rec.Body)
		}
		if rec := r.ask(t, "GET", "/livez", ""); rec.Code != 200 {
			t.Errorf("livez of a full process: %d", rec.Code)
		}
		close(hold)
		if code := <-done; code != 200 {
			t.Errorf("the first request: %d", code)
		}
		if rec := r.ask(t, "GET", "/v1/sites", ""); rec.Code != 200 {
			t.Errorf("after it: %d", rec.Code)
		}
	})
}

func TestPanicIsAnswered(t *testing.T) {
	inBubble(t, []string{"us"}, nil, func(r *rig) {
		t := r.t
		r.service.Reads = nil
		rec := r.ask(t, "GET", "/v1/entities/a", "")
		if rec.Code != 500 || strings.Contains(rec.Body.String(), "memory") {
			t.Errorf("%d %s", rec.Code, rec.Body)
		}
		if n := r.limiter.UnderWay(); n != 0 {
			t.Errorf("%d slots lost", n)
		}
	})
}

// TestHTTPWatch: each state is a line. An error that ends the watch before a deletion is
// the last line.
func TestHTTPWatch(t *testing.T) {
	inBubble(t, []string{"us"}, nil, func(r *rig) {
		t := r.t
		r.sites["us"].OnWatch = func(in *samyav1.WatchEntityRequest, stream samyav1.EntityService_WatchEntityServer) error {
			if err := stream.Send(fake.State("us", 3)); err != nil {
				return err
			}
			if in.GetName() == "broken" {
				return apierr.NotFound("broken")
			}
			gone := fake.State("us", 4)
			gone.Deleted, gone.Usage = true, nil
			return stream.Send(gone)
		}
		const first = `"limit":100,"generation":1,"version":3,"available":0,"acquired":0,"in_transit":null,"complete":false,"consistent":false,"debt":0,"may_exceed_by":0,"surplus":0,"written_off":0,"shares":[{"site":"us",`
		rec := r.ask(t, "GET", "/v1/entities/e:watch?resume_token=t", "")
		lines := strings.Split(rec.Body.String(), "\n")
		if rec.Code != 200 || rec.Header().Get("Content-Type") != "application/x-ndjson" || len(lines) != 3 || !strings.Contains(lines[0], first) ||
			!strings.HasSuffix(lines[0], `"deleted":false,"resume_token":"us"}`) || !strings.Contains(lines[1], `"deleted":true`) {
			t.Errorf("%d %q", rec.Code, lines)
		}
		rec = r.ask(t, "GET", "/v1/entities/broken:watch", "")
		lines = strings.Split(rec.Body.String(), "\n")
		if len(lines) != 3 || !strings.HasPrefix(lines[1], `{"problem":{"type":"tag:`) || !strings.Contains(lines[1], `"reason":"ENTITY_NOT_FOUND"`) {
			t.Errorf("%d %q", rec.Code, lines)
		}
	})
}
