package appmgr

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
)

func FuzzParsePath(f *testing.F) {
	for _, s := range []string{
		"/v1/entities/acme/vm:acquire", "/v1/entities/a%2Fb%3Arelease", "/v1/entities", "/v1/sites", "/v1/entities/%", "/v1/entities/a:b:c", "",
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
		if len(operations[res]) == 0 {
			t.Fatalf("%q names resource %d, which has no operation", path, res)
		}
		switch res {
		case resEntity, resAcquire, resRelease:
			if err := name.Entity("name", entity); err != nil {
				t.Fatalf("%q: %v", path, err)
			}
			plain, err := url.PathUnescape(path)
			if err != nil || !strings.HasPrefix(plain, entitiesPath+"/"+entity) {
				t.Fatalf("%q became entity %q", path, entity)
			}
		default:
			if entity != "" {
				t.Fatalf("%q: resource %d of entity %q", path, res, entity)
			}
		}
	})
}

// FuzzDecodeJSON: what the strict decoder takes, encoding/json takes too and
// reads alike; what it refuses it refuses for a reason of the caller's.
func FuzzDecodeJSON(f *testing.F) {
	for _, s := range []string{
		`{"tokens":3,"request_id":"x","wait":"2s","site":"us"}`, `{"tokens":1e3}`, `{"tokens":1,"tokens":2}`, `{"a":{"b":[1]}}`,
		`{"tokens":3}x`, `[]`, ``, "{\"request_id\":\"\\ud800\"}", `{"tokens":9223372036854775808}`, `{"tokens":-0}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var tokens int64
		var id string
		var wait *time.Duration
		err := decodeJSON(body, fields{
			"tokens": whole("tokens", 1, name.MaxTokens, &tokens), "request_id": text("request_id", &id), "wait": period("wait", &wait),
		})
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
			Tokens    int64   `json:"tokens"`
			RequestID string  `json:"request_id"`
			Wait      *string `json:"wait"`
		}
		if err := json.Unmarshal(body, &want); err != nil {
			t.Fatalf("%q was taken: %v", body, err)
		}
		if want.Tokens != tokens || want.RequestID != id || (want.Wait == nil) != (wait == nil) {
			t.Fatalf("%q read as %d %q %v", body, tokens, id, wait)
		}
	})
}
