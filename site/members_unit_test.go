package site

import (
	"testing"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
)

// TestMembersThatLeave: a site that drains is told with its heir and its health, and a site
// that has left with its heir alone.
func TestMembersThatLeave(t *testing.T) {
	look := func(core.SiteID) *samyav1.Site {
		return &samyav1.Site{Health: samyav1.SiteHealth_SITE_HEALTH_SERVING}
	}
	for state, healthy := range map[string]bool{"joining": false, "member": true, "draining": true, "gone": false, "lost": false} {
		m := memberOf(&answer.Members{}, &answer.Member{Site: "au", State: state, Heir: "eu", Knows: true}, look)
		if m.GetHeir() != "eu" || m.GetState() == samyav1.MemberState_MEMBER_STATE_UNSPECIFIED {
			t.Errorf("%s: %v", state, m)
		}
		if got := m.GetHealth() == samyav1.SiteHealth_SITE_HEALTH_SERVING; got != healthy {
			t.Errorf("%s: health %v", state, m.GetHealth())
		}
	}
}
