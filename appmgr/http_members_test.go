package appmgr

import (
	"strings"
	"testing"
	"time"

	"github.com/samya-db/samya/appmgr/fake"
	"github.com/samya-db/samya/appmgr/route"
	"github.com/samya-db/samya/internal/seats"
)

// TestHTTPWatchOfMembers: a list is a line and so is a sign of life. The error that ends
// the watch is the last line.
func TestHTTPWatchOfMembers(t *testing.T) {
	inBubble(t, []string{"us"}, nil, func(r *rig) {
		t := r.t
		time.AfterFunc(seats.Alive+time.Second, r.limiter.Close)
		rec := r.ask(t, "GET", "/v1/members:watch", "")
		lines := strings.Split(rec.Body.String(), "\n")
		if rec.Code != 200 || rec.Header().Get("Content-Type") != "application/x-ndjson" || len(lines) != 4 ||
			!strings.HasPrefix(lines[0], `{"version":2,"behind":12,"waits_for":"12 entities to adopt the new voters","answered_by":"am","members":[{"name":"us"`) ||
			lines[1] != "{}" || !strings.Contains(lines[2], `"reason":"SHUTTING_DOWN"`) {
			t.Errorf("%d %q", rec.Code, lines)
		}
	})
}

// TestHTTPNodesOfSites: lists tell the node that runs a site, and its term.
func TestHTTPNodesOfSites(t *testing.T) {
	inBubble(t, []string{"us"}, nil, func(r *rig) {
		r.directory.Set(route.SiteInfo{Name: "us", Region: "us", Address: "us", Node: "b", Term: 9})
		fake.Pass(time.Second)
		for _, path := range []string{"/v1/sites", "/v1/members"} {
			if rec := r.ask(r.t, "GET", path, ""); rec.Code != 200 || !strings.Contains(rec.Body.String(), `"node":"b","term":9`) {
				r.t.Errorf("%s: %d %s", path, rec.Code, rec.Body)
			}
		}
	})
}

// TestRecoverCluster: no survivor goes on unless all can. A survivor that does not answer
// is named.
func TestRecoverCluster(t *testing.T) {
	inBubble(t, []string{"eu", "us"}, nil, func(r *rig) {
		t := r.t
		for body, want := range map[string]string{
			`{"survivors":["eu","us"],"lost":["picky"],"machines_destroyed":true}`: "a majority of the members",
			`{"survivors":["eu","us"],"lost":["as"]}`:                              "machines_destroyed: must be set",
			`{"survivors":["eu","off"],"lost":["as"],"machines_destroyed":true}`:   "off",
			`{"survivors":["eu","us"],"lost":["us"],"machines_destroyed":true}`:    "lost: ",
		} {
			if rec := r.ask(t, "POST", "/v1/members:recover", body); rec.Code < 400 || !strings.Contains(rec.Body.String(), want) {
				t.Errorf("%s: %d %s", body, rec.Code, rec.Body)
			}
		}
		check := `{"survivors":["us","eu"],"lost":["as"],"machines_destroyed":true,"check":true}`
		if rec := r.ask(t, "POST", "/v1/members:recover", check); rec.Code != 200 || strings.TrimSpace(rec.Body.String()) != `{"sites":["eu","us"]}` {
			t.Errorf("%d %s", rec.Code, rec.Body)
		}
		if r.sites["eu"].Recovered() || r.sites["us"].Recovered() {
			t.Error("a survivor goes on")
		}
		if rec := r.ask(t, "POST", "/v1/members:recover", strings.Replace(check, "true}", "false}", 1)); rec.Code != 200 {
			t.Errorf("%d %s", rec.Code, rec.Body)
		}
		if !r.sites["eu"].Recovered() || !r.sites["us"].Recovered() {
			t.Error("a survivor does not go on")
		}
	})
}
