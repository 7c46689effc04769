package appmgr

import (
	"strings"
	"testing"
	"time"

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
