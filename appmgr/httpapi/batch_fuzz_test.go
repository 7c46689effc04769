package httpapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/testfuzz"
)

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
			if o.Err == nil {
				if op := operations[i]; (op.GetAcquire() == nil) == (op.GetRelease() == nil) {
					t.Fatalf("%q: operation %d is %v", body, i, op)
				}
				continue
			}
			e := apierr.From(o.Err)
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
