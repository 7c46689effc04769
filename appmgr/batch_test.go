package appmgr

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/testfuzz"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

func acquireOf(r *samyav1.AcquireRequest) *samyav1.Operation {
	return &samyav1.Operation{Operation: &samyav1.Operation_Acquire{Acquire: r}}
}

func releaseOf(r *samyav1.ReleaseRequest) *samyav1.Operation {
	return &samyav1.Operation{Operation: &samyav1.Operation_Release{Release: r}}
}

// ofResult returns the short form of a result.
func ofResult(r *samyav1.Result) string {
	switch r := r.GetResult().(type) {
	case *samyav1.Result_Acquire:
		return fmt.Sprintf("acquired %d as %s", r.Acquire.GetTokens(), r.Acquire.GetRequestId())
	case *samyav1.Result_Release:
		return fmt.Sprintf("released %d as %s", r.Release.GetTokens(), r.Release.GetRequestId())
	case *samyav1.Result_Failure:
		e := apierr.FromFailure(r.Failure)
		for _, v := range e.Violations {
			return fmt.Sprintf("%s of %s", e.Reason, v.Field)
		}
		return string(e.Reason)
	}
	return "nothing"
}

// slowly makes acquires of the entity "slow" last for their full wait.
func slowly(f *fakeSite) {
	f.acquire = func(ctx context.Context, r *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
		switch r.GetEntity() {
		case "none":
			return nil, apierr.NotFound("none")
		case "slow":
			select {
			case <-time.After(r.GetWait().AsDuration()):
			case <-ctx.Done():
			}
			return nil, apierr.NoTokens("slow", f.name, r.GetTokens(), 0, time.Second)
		}
		return &samyav1.AcquireResponse{Tokens: r.GetTokens(), RequestId: r.GetRequestId(), Site: f.name, Left: 7}, nil
	}
}

func TestBatch(t *testing.T) {
	inBubble(t, threeSites, nil, func(r *rig) {
		t := r.t
		for _, f := range r.sites {
			slowly(f)
		}
		began := time.Now()
		wait := durationpb.New(3 * time.Second)
		resp, err := r.service.Batch(t.Context(), &samyav1.BatchRequest{Operations: []*samyav1.Operation{
			acquireOf(&samyav1.AcquireRequest{Entity: "slow", Tokens: 1, RequestId: "s1", Wait: wait}),
			acquireOf(&samyav1.AcquireRequest{Entity: "a", Tokens: 2, RequestId: "r2"}),
			releaseOf(&samyav1.ReleaseRequest{Entity: "a", Tokens: 3, RequestId: "r3"}),
			acquireOf(&samyav1.AcquireRequest{Entity: "none", Tokens: 1, RequestId: "r4"}),
			acquireOf(&samyav1.AcquireRequest{Entity: "a/", Tokens: 1}),
			releaseOf(&samyav1.ReleaseRequest{Entity: "a", Tokens: 0}),
			{},
			acquireOf(&samyav1.AcquireRequest{Entity: "slow", Tokens: 1, RequestId: "s2", Wait: wait}),
		}})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range resp.GetResults() {
			got = append(got, ofResult(r))
		}
		want := []string{
			"OUT_OF_TOKENS", "acquired 2 as r2", "released 3 as r3", "ENTITY_NOT_FOUND",
			"INVALID_FIELD of operations[4].acquire.entity", "INVALID_FIELD of operations[5].release.tokens",
			"INVALID_FIELD of operations[6].operation", "OUT_OF_TOKENS",
		}
		if !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("two operations that wait for 3s took %v", took)
		}
		for n, problem := range map[int]string{0: "0, at least 1", 1001: "1001, at most 1000"} {
			_, err := r.service.Batch(t.Context(), &samyav1.BatchRequest{Operations: make([]*samyav1.Operation, n)})
			if e := apierr.From(err); e == nil || len(e.Violations) != 1 || e.Violations[0] != (apierr.Violation{Field: "operations", Problem: problem}) {
				t.Errorf("%d operations: %v", n, err)
			}
		}
	})
}

// TestBatchOverload: each operation counts as a request under way. Each operation beyond
// the bound is refused by itself.
func TestBatchOverload(t *testing.T) {
	inBubble(t, threeSites, func(c *Config) { c.MaxConcurrent = 3 }, func(r *rig) {
		t := r.t
		for _, f := range r.sites {
			slowly(f)
		}
		in := &samyav1.BatchRequest{}
		for range 5 {
			in.Operations = append(in.Operations, acquireOf(&samyav1.AcquireRequest{Entity: "slow", Tokens: 1, Wait: durationpb.New(time.Second)}))
		}
		resp, err := r.service.Batch(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		count := map[string]int{}
		for _, r := range resp.GetResults() {
			count[ofResult(r)]++
		}
		if count["OUT_OF_TOKENS"] != 3 || count["OVERLOADED"] != 2 {
			t.Error(count)
		}
		if n := len(r.guard.slots); n != 0 {
			t.Errorf("%d slots lost", n)
		}
	})
}

func TestHTTPBatch(t *testing.T) {
	inBubble(t, threeSites, nil, func(r *rig) {
		t := r.t
		for _, f := range r.sites {
			slowly(f)
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
	inBubble(t, threeSites, nil, func(r *rig) {
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
			{`{"operations":[` + op + strings.Repeat(" ", 16*DefaultMaxBody) + `]}`, "", 413},
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
			if n := f.calls.Load(); n != 0 {
				t.Errorf("site %s had %d calls", name, n)
			}
		}
		// A batch may be longer than other bodies.
		rec := r.ask(t, "POST", "/v1/batch", `{"operations":[`+strings.Repeat(op+",", 999)+op+strings.Repeat(" ", DefaultMaxBody)+`]}`)
		if rec.Code != 200 || strings.Count(rec.Body.String(), `"acquire"`) != 1000 {
			t.Errorf("%d %.200s", rec.Code, rec.Body)
		}
	})
}

// FuzzDecodeBatch: an accepted batch has 1 to 1000 operations. Each operation is an
// acquire or a release, or has failed, and each violation names its index.
func FuzzDecodeBatch(tf *testing.F) {
	f := testfuzz.On(tf)
	for _, s := range []string{
		`{"operations":[{"acquire":{"entity":"a","tokens":1,"wait":"1s","lease":{"ttl":"5s"}}},{"release":{"lease":"us/x","entity":"a"}}]}`,
		`{"operations":[{},3,null,[],"x",{"acquire":3},{"acquire":{},"release":{}},{"acquire":{"tokens":1,"tokens":2}}]}`,
		`{"operations":[{"acquire":{"entity":"a","tokens":1}}],"atomic":true,"request_id":"x","wait":"1s","attempt":2,"tried":["us"],"not_after":"2026-01-02T15:04:05Z"}`,
		`{"operations":[]}`, `{"operations":null}`, `[]`, ``, `{"operations":[{"release":{"tried":["us"],"not_after":"x"}}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		in, made, err := decodeBatch(body)
		if err != nil {
			if e := apierr.From(err); e.Reason != apierr.MalformedJSON && (e.Reason != apierr.InvalidField || len(e.Violations) == 0) {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		operations := in.GetOperations()
		var want struct {
			Operations []json.RawMessage `json:"operations"`
		}
		if err := json.Unmarshal(body, &want); err != nil || len(want.Operations) != len(operations) || len(operations) != len(made) ||
			len(made) < 1 || len(made) > 1000 {
			t.Fatalf("%q read as %d operations: %v", body, len(operations), err)
		}
		for i, o := range made {
			if o.err == nil {
				if op := operations[i]; (op.GetAcquire() == nil) == (op.GetRelease() == nil) {
					t.Fatalf("%q: operation %d is %v", body, i, op)
				}
				continue
			}
			e := apierr.From(o.err)
			for _, v := range e.Violations {
				if !strings.HasPrefix(v.Field, fmt.Sprintf("operations[%d].", i)) {
					t.Fatalf("%q: operation %d: %v", body, i, e)
				}
			}
			if e.Reason != apierr.InvalidField && e.Reason != apierr.MalformedJSON {
				t.Fatalf("%q: operation %d: %v", body, i, e)
			}
		}
	})
}
