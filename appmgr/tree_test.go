package appmgr

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/samya-db/samya/appmgr/fake"
	"github.com/samya-db/samya/internal/apierr/refuse"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestHTTPTree: parents are given, changed and told. A deletion takes along the entities
// below only on request.
func TestHTTPTree(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		r.sites["us"].OnAcquire = func(_ context.Context, in *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
			return nil, refuse.NoTokens(in.GetEntity(), "us", in.GetTokens(), 2, 300*time.Millisecond).LackedBy("acme", in.GetTokens())
		}
		for _, c := range []struct {
			method, target, body string
			status               int
			want                 string
		}{
			{"POST", "/v1/entities", `{"name":"acme/vm","limit":5,"parent":"acme"}`, 201, `{"name":"acme/vm","limit":5,"generation":1,"version":1,"parent":"acme"}`},
			{"POST", "/v1/entities", `{"name":"acme/vm","limit":5,"parent":""}`, 201, `{"name":"acme/vm","limit":5,"generation":1,"version":1}`},
			{"POST", "/v1/entities", `{"name":"acme/vm","limit":5,"parent":"acme/"}`, 400, `"field":"parent"`},
			{"POST", "/v1/entities/acme/vm:move", `{"parent":"acme","expected_generation":7,"request_id":"x"}`, 200, `{"name":"acme/vm","limit":9,"generation":7,"version":1,"parent":"acme","children":2}`},
			{"POST", "/v1/entities/acme/vm:move", `{"parent":""}`, 200, `{"name":"acme/vm","limit":9,"generation":1,"version":1,"children":2}`},
			{"POST", "/v1/entities/acme/vm:move", `{}`, 400, `"field":"parent","problem":"missing; empty for none"`},
			{"POST", "/v1/entities/acme/vm:move", `{"parent":3}`, 400, `"field":"parent","problem":"must be a string, not a number"`},
			{"POST", "/v1/entities/acme/vm:move", `{"parent":"a//b"}`, 400, `"field":"parent"`},
			{"POST", "/v1/entities/acme/vm:move", `{"parent":"below"}`, 400, `"field":"parent","problem":"stands below it"`},
			{"POST", "/v1/entities/acme/vm:move", `{"parent":"none"}`, 404, `"reason":"PARENT_NOT_FOUND"`},
			{"GET", "/v1/entities/acme/vm:move", ``, 405, `"reason":"METHOD_NOT_ALLOWED"`},
			{"DELETE", "/v1/entities/parent", ``, 409, `"reason":"HAS_CHILDREN"`},
			{"DELETE", "/v1/entities/parent?subtree=false", ``, 409, `"reason":"HAS_CHILDREN"`},
			{"DELETE", "/v1/entities/parent?subtree=true", ``, 204, ``},
			{"DELETE", "/v1/entities/parent?subtree=1", ``, 400, `"field":"subtree","problem":"must be true or false"`},
			{"POST", "/v1/entities/acme/vm:acquire", `{"tokens":5,"request_id":"r"}`, 429, `"tokens_left":2,"retry_after_ms":300,"request_id":"r","site":"us","entity":"acme/vm","lacking":"acme"`},
		} {
			rec := r.ask(t, c.method, c.target, c.body)
			if got := rec.Body.String(); rec.Code != c.status || !strings.Contains(got, c.want) || c.status == 200 && got != c.want+"\n" {
				t.Errorf("%s %s %s: %d %s\nwant %d %s", c.method, c.target, c.body, rec.Code, got, c.status, c.want)
			}
		}
	})
}
