package appmgr

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/samya-db/samya/appmgr/fake"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestDryRunsReachNoSite: an app manager works dry runs out from reads. No site is asked for
// the change: a site of an earlier build would make it.
func TestDryRunsReachNoSite(t *testing.T) {
	inBubble(t, []string{"us"}, nil, func(r *rig) {
		t := r.t
		us := r.sites["us"]
		us.Kill()
		var changes []string
		us.Arrived = func(req any) {
			switch req.(type) {
			case *samyav1.CreateEntityRequest, *samyav1.UpdateEntityRequest, *samyav1.DrainMemberRequest:
				changes = append(changes, fmt.Sprintf("%T", req))
			}
		}
		us.Up()
		fake.Pass(10 * time.Second)
		for _, c := range []struct {
			verb, path, body string
			status           int
			says             string
		}{
			{"POST", "/v1/entities", `{"name":"new","limit":5,"dry_run":true}`, http.StatusOK, `"effects":["new is created with a limit of 5 tokens."`},
			{"POST", "/v1/entities", `{"name":"new","limit":-5,"dry_run":true}`, http.StatusBadRequest, "limit"},
			{"PATCH", "/v1/entities/vm", `{"limit":4,"dry_run":true}`, http.StatusOK, `"tokens_short":1,"releases_needed":1`},
			{"PATCH", "/v1/entities/vm", `{"limit":4,"expected_version":9,"dry_run":true}`, http.StatusConflict, "VERSION_MISMATCH"},
			{"PATCH", "/v1/entities/none", `{"limit":4,"dry_run":true}`, http.StatusNotFound, "ENTITY_NOT_FOUND"},
			{"POST", "/v1/members/none:drain", `{"dry_run":true}`, http.StatusNotFound, "MEMBER_NOT_FOUND"},
			{"POST", "/v1/members/us:drain", `{"cancel":true,"dry_run":true}`, http.StatusOK, "Nothing changes"},
		} {
			rec := r.ask(t, c.verb, c.path, c.body)
			if rec.Code != c.status || !strings.Contains(rec.Body.String(), c.says) {
				t.Errorf("%s %s %s: %d %s", c.verb, c.path, c.body, rec.Code, rec.Body)
			}
		}
		if len(changes) > 0 {
			t.Errorf("the site was asked for %q", changes)
		}
		// A search of a site that does not know the filter has no others.
		if rec := r.ask(t, "GET", "/v1/entities?contains=b", ""); rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), `"entities":[]`) {
			t.Errorf("%d %s", rec.Code, rec.Body)
		}
	})
}
