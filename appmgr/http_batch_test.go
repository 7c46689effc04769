package appmgr

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/samya-db/samya/appmgr/fake"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/apierr/refuse"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

func TestHTTPBatch(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		for _, f := range r.sites {
			fake.Slowly(f)
		}
		rec := r.ask(t, "POST", "/v1/batch", `{"operations":[`+
			`{"acquire":{"entity":"acme/vm","tokens":3,"request_id":"a"}},`+
			`{"release":{"entity":"acme/vm","tokens":1,"request_id":"r"}},`+
			`{"acquire":{"entity":"none","tokens":1,"request_id":"n"}},`+
			`{"acquire":{"entity":"acme/vm","tokens":0}},`+
			`{"acquire":{"entity":"acme/vm","tokens":1,"color":"red"}},`+
			`{"release":{"entity":"acme/vm"}},`+
			`{"acquire":{"entity":"acme/vm","tokens":1,"lease":{}}},`+
			`{"acquire":{"tokens":1}},`+
			`{},{"acquire":{},"release":{}},{"steal":{}}]}`)
		var got struct {
			Results []map[string]json.RawMessage `json:"results"`
		}
		if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil || rec.Code != 200 {
			t.Fatalf("%d %s: %v", rec.Code, rec.Body, err)
		}
		want := []string{
			`acquire {"entity":"acme/vm","tokens":3,"request_id":"a","site":"us","left":7}`,
			`release {"entity":"acme/vm","tokens":1,"request_id":"r","site":"us","left":9}`,
			`ENTITY_NOT_FOUND 404`,
			`INVALID_FIELD 400 operations[3].acquire.tokens: must be at least 1`,
			`INVALID_FIELD 400 operations[4].acquire.color: unknown field`,
			`INVALID_FIELD 400 operations[5].release.tokens: missing`,
			`INVALID_FIELD 400 operations[6].acquire.lease.ttl: missing`,
			`INVALID_FIELD 400 operations[7].acquire.entity: empty, at least 1 character`,
			`INVALID_FIELD 400 operations[8].operation: missing: an acquire or a release`,
			`INVALID_FIELD 400 operations[9].operation: has an acquire and a release, must have one of them`,
			`INVALID_FIELD 400 operations[10].steal: unknown field`,
		}
		for i, result := range got.Results {
			if text := inShort(t, result); text != want[i] {
				t.Errorf("result %d: %s\nwant %s", i, text, want[i])
			}
		}
		if len(got.Results) != len(want) {
			t.Errorf("%d results, want %d", len(got.Results), len(want))
		}
	})
}

// inShort returns the short form of a result over HTTP.
func inShort(t *testing.T, result map[string]json.RawMessage) string {
	t.Helper()
	if len(result) != 1 {
		t.Errorf("a result of %d kinds", len(result))
	}
	for kind, raw := range result {
		if kind != "error" {
			return kind + " " + string(raw)
		}
		var p apierr.Problem
		if err := json.Unmarshal(raw, &p); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("%s %d", p.Reason, p.Status)
		for _, v := range p.Errors {
			text += " " + v.Field + ": " + v.Problem
		}
		return text
	}
	return "nothing"
}

// TestHTTPBatchRefused: an invalid body is refused as a whole, and nothing is begun.
func TestHTTPBatchRefused(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		op := `{"acquire":{"entity":"a","tokens":1}}`
		for _, c := range []struct {
			body, problem string
			status        int
		}{
			{`{}`, "operations: missing", 400},
			{`{"operations":[]}`, "operations: 0, at least 1", 400},
			{`{"operations":[` + strings.Repeat(op+",", 1000) + op + `]}`, "operations: 1001, at most 1000", 400},
			{`{"operations":{}}`, "operations: must be an array, not an object", 400},
			{`{"operations":[` + op + `],"more":1}`, "more: unknown field", 400},
			{`{"operations":[` + op + `],"operations":[]}`, "operations: given twice", 400},
			{`{"operations":[` + op + `}`, "", 400},
			{`{"operations":[` + op + strings.Repeat(" ", 16*defaultMaxBody) + `]}`, "", 413},
		} {
			rec := r.ask(t, "POST", "/v1/batch", c.body)
			var p apierr.Problem
			if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil {
				t.Fatal(err)
			}
			if rec.Code != c.status || c.problem != "" && p.Detail != c.problem {
				t.Errorf("%.80s: %d %s", c.body, rec.Code, rec.Body)
			}
		}
		for name, f := range r.sites {
			if n := f.Calls.Load(); n != 0 {
				t.Errorf("site %s had %d calls", name, n)
			}
		}
		// A batch may be longer than other bodies.
		rec := r.ask(t, "POST", "/v1/batch", `{"operations":[`+strings.Repeat(op+",", 999)+op+strings.Repeat(" ", defaultMaxBody)+`]}`)
		if rec.Code != 200 || strings.Count(rec.Body.String(), `"acquire"`) != 1000 {
			t.Errorf("%d %.200s", rec.Code, rec.Body)
		}
	})
}

// TestHTTPAtomic: an atomic batch over HTTP is granted or fails as a whole.
func TestHTTPAtomic(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		var got *samyav1.BatchRequest
		us := r.sites["us"]
		us.OnBatch = func(_ context.Context, in *samyav1.BatchRequest) (*samyav1.BatchResponse, error) {
			got = in
			if in.GetOperations()[0].GetAcquire().GetTokens() > 100 {
				return nil, refuse.NoTokens("", "us", 5, 1, 0).LackedBy("acme", 5)
			}
			return us.Granted(in), nil
		}
		const until = "2026-01-02T15:04:05.678Z"
		two := `{"acquire":{"entity":"acme/vm","tokens":%d}},{"acquire":{"entity":"acme/seats","tokens":2}}`
		for _, c := range []struct {
			body   string
			status int
			want   string
		}{
			{
				`{"operations":[` + fmt.Sprintf(two, 3) + `],"atomic":true,"request_id":"lot","wait":"2s","attempt":2,"tried":["eu"],"not_after":"` + until + `"}`, 200,
				`{"results":[{"acquire":{"entity":"acme/vm","tokens":3}},{"acquire":{"entity":"acme/seats","tokens":2}}],"request_id":"lot","site":"us"}`,
			},
			{`{"operations":[` + fmt.Sprintf(two, 101) + `],"atomic":true}`, 429, `"lacking":"acme"`},
			{
				`{"operations":[` + fmt.Sprintf(two, 0) + `,{"release":{"entity":"a","tokens":1}},{"steal":{}}],"atomic":true}`, 400,
				`"errors":[{"field":"operations[0].acquire.tokens","problem":"must be at least 1"},{"field":"operations[3].steal","problem":"unknown field"}]`,
			},
			{`{"operations":[` + fmt.Sprintf(two, 3) + `,{"release":{"entity":"a","tokens":1}}],"atomic":true}`, 400, `"field":"operations[2].release.operation"`},
			{`{"operations":[{"acquire":{"entity":"a","tokens":1,"lease":{"ttl":"5s"}}}],"atomic":true}`, 400, `"field":"operations[0].acquire.lease"`},
			{`{"operations":[` + fmt.Sprintf(two, 3) + `],"atomic":"yes"}`, 400, `"field":"atomic"`},
			{`{"operations":[` + fmt.Sprintf(two, 3) + `],"request_id":"lot"}`, 400, `"field":"request_id"`},
		} {
			got = nil
			rec := r.ask(t, http.MethodPost, "/v1/batch", c.body)
			if text := rec.Body.String(); rec.Code != c.status || !strings.Contains(text, c.want) || c.status == 200 && text != c.want+"\n" {
				t.Errorf("%s: %d %s\nwant %d %s", c.body, rec.Code, text, c.status, c.want)
			}
			switch {
			case c.status == 400 && got != nil:
				t.Errorf("%s reached a site", c.body)
			case c.status == 200 && (got.GetWait().AsDuration() != 2*time.Second || got.GetAttempt() != 2 || !slices.Equal(got.GetTried(), []string{"eu"}) ||
				got.GetNotAfter().AsTime().Format(time.RFC3339Nano) != until):
				t.Errorf("came as %v", got)
			}
		}
	})
}
