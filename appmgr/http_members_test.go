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
