package appmgr

import (
	"strings"
	"testing"
	"time"

	"github.com/samya-db/samya/appmgr/fake"
)

// TestReset: all sites are asked, and sites that do not answer are told. If none has reset its
// part, the answer is an error.
func TestReset(t *testing.T) {
	inBubble(t, []string{"us", "eu"}, nil, func(r *rig) {
		fake.Pass(10 * time.Second)
		for _, c := range []struct {
			what, name, want string
			status           int
		}{
			{"all", "acme/vm", `{"returned":14,"missing_sites":[]}`, 200},
			{"no such entity", "none", "ENTITY_NOT_FOUND", 404},
			{"a site is down", "acme/vm", `{"returned":7,"missing_sites":["eu"]}`, 200},
			{"no site", "acme/vm", "SITE_UNAVAILABLE", 503},
		} {
			switch c.what {
			case "a site is down":
				r.sites["eu"].Kill()
			case "no site":
				r.sites["us"].Kill()
			}
			fake.Pass(10 * time.Second)
			rec := r.ask(r.t, "POST", "/v1/entities/"+c.name+":reset", "{}")
			if rec.Code != c.status || !strings.Contains(rec.Body.String(), c.want) {
				r.t.Errorf("%s: %d %s", c.what, rec.Code, rec.Body)
			}
		}
	})
}
