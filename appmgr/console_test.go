package appmgr

import (
	"net/http"
	"strings"
	"testing"

	"github.com/samya-db/samya/appmgr/console"
)

// TestConsole: an app manager serves the console beside its API, and not if it is switched
// off. The API tells a caller who it is.
func TestConsole(t *testing.T) {
	for _, on := range []bool{true, false} {
		inBubble(t, []string{"us"}, func(c *Config) { c.Console = on }, func(r *rig) {
			t := r.t
			want := http.StatusNotFound
			if on {
				want = http.StatusOK
			}
			rec := r.ask(t, "GET", console.Path, "")
			if rec.Code != want || on && !strings.HasPrefix(rec.Header().Get("Content-Security-Policy"), "default-src 'none'; script-src 'self'") {
				t.Errorf("console %t: %d %s %v", on, rec.Code, rec.Body, rec.Header())
			}
			rec = r.ask(t, "GET", "/v1/caller", "")
			if got := strings.TrimSpace(rec.Body.String()); rec.Code != 200 ||
				got != `{"name":"","role":"admin","prefixes":[],"open":true,"app_manager":"am","cluster":"test"}` {
				t.Errorf("%d %s", rec.Code, got)
			}
			if rec := r.ask(t, "GET", "/v1/caller?x=1", ""); rec.Code != 400 {
				t.Errorf("%d %s", rec.Code, rec.Body)
			}
		})
	}
}
