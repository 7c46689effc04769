package httpapi

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/testfuzz"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

func FuzzParsePath(tf *testing.F) {
	f := testfuzz.On(tf)
	for _, s := range []string{
		"/v1/entities/a:watch", "/v1/openapi.json", "/v1/leases", "/v1/leases:renew", "/v1/leases:commit", "/v1/leases:void", "/v1/leases/us/x", "/v1/leases%3Avoid",
		"/v1/entities/acme/vm:acquire", "/v1/entities/a%2Fb%3Arelease", "/v1/entities", "/v1/sites", "/v1/sites:inspect", "/v1/sites%3Ainspect", "/v1/members", "/v1/members/eu", "/v1/members/eu:drain", "/v1/entities/%", "/v1/entities/a:b:c", "",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		res, entity, err := parsePath(path)
		if err != nil {
			switch r := apierr.ReasonOf(err); r {
			case apierr.InvalidField, apierr.RouteNotFound:
			default:
				t.Fatalf("%q: %s", path, r)
			}
			return
		}
		if len(resources[res]) == 0 {
			t.Fatalf("%q names resource %s, which has no operation", path, res)
		}
		if strings.HasPrefix(res, entityPath) {
			if err := name.Entity("name", entity); err != nil {
				t.Fatalf("%q: %v", path, err)
			}
			plain, err := url.PathUnescape(path)
			if err != nil || !strings.HasPrefix(plain, entitiesPath+"/"+entity) {
				t.Fatalf("%q became entity %q", path, entity)
			}
		} else if strings.HasPrefix(res, membersPath+"/") {
			if err := name.Site("name", entity); err != nil {
				t.Fatalf("%q: %v", path, err)
			}
		} else if entity != "" {
			t.Fatalf("%q: resource %s of entity %q", path, res, entity)
		}
	})
}

// FuzzDecodeJSON: encoding/json takes every body that the strict decoder takes, and reads
// it alike. Each refusal of the strict decoder is the caller's fault.
func FuzzDecodeJSON(tf *testing.F) {
	f := testfuzz.On(tf)
	for _, s := range []string{
		`{"tokens":3,"request_id":"x","wait":"2s","site":"us"}`, `{"tokens":1e3}`, `{"tokens":1,"tokens":2}`, `{"a":{"b":[1]}}`,
		`{"tokens":3}x`, `[]`, ``, "{\"request_id\":\"\\ud800\"}", `{"tokens":9223372036854775808}`, `{"tokens":-0}`,
		`{"lease":{"ttl":"2s","holder":"x"},"tried":["us","eu"],"dry_run":true,"not_after":"2026-01-02T15:04:05.678Z"}`,
		`{"lease":{"ttl":"2s","ttl":"3s"}}`, `{"lease":[]}`, `{"tried":[1]}`, `{"tried":{}}`, `{"dry_run":1}`, `{"not_after":"now"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		in := &samyav1.AcquireRequest{Entity: "e"}
		err := decodeJSON(body, fieldsOf(in))
		if err != nil {
			switch e := apierr.From(err); {
			case e.Reason == apierr.MalformedJSON:
			case e.Reason == apierr.InvalidField && len(e.Violations) > 0:
			default:
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		var want struct {
			Tokens    int64    `json:"tokens"`
			RequestID string   `json:"request_id"`
			Wait      *string  `json:"wait"`
			DryRun    bool     `json:"dry_run"`
			Tried     []string `json:"tried"`
			NotAfter  *string  `json:"not_after"`
			Lease     *struct {
				TTL    *string `json:"ttl"`
				Holder string  `json:"holder"`
			} `json:"lease"`
		}
		if err := json.Unmarshal(body, &want); err != nil {
			t.Fatalf("%q was taken: %v", body, err)
		}
		if want.Tokens != in.GetTokens() || want.RequestID != in.GetRequestId() || (want.Wait == nil) != (in.GetWait() == nil) ||
			want.DryRun != in.GetDryRun() || !slices.Equal(want.Tried, in.GetTried()) || (want.NotAfter == nil) != (in.GetNotAfter() == nil) ||
			(want.Lease == nil) != (in.GetLease() == nil) {
			t.Fatalf("%q read as %v", body, in)
		}
		if l := want.Lease; l != nil && (l.Holder != in.GetLease().GetHolder() || (l.TTL == nil) != (in.GetLease().GetTtl() == nil)) {
			t.Fatalf("%q: lease read as %v", body, in.GetLease())
		}
	})
}
