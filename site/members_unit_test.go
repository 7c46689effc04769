package site

import (
	"testing"

	"github.com/samya-db/samya/internal/node"
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

// TestHeirs: a site takes over from the sites whose heir it is, at whatever remove, and
// takes the name of any site that ever had a seat.
func TestHeirs(t *testing.T) {
	s := &Site{cfg: Config{Config: node.Config{Name: "us"}}}
	s.sites.Store(&memberSet{version: 4, sites: []core.SiteID{"us", "eu", "au"}, heirs: map[core.SiteID]core.SiteID{
		"us": "", "eu": "us", "au": "", "as": "eu", "na": "au", "sa": "", "x": "y", "y": "x",
	}})
	for home, want := range map[string]bool{"us": true, "eu": true, "as": true, "au": false, "na": false, "sa": false, "x": false, "zz": false} {
		if id, err := s.ownLease(home + "/id"); (err == nil) != want || want && id != "id" {
			t.Errorf("a lease of %s: %q, %v", home, id, err)
		}
		if ref, err := s.leaseRef(home + "/id"); (err == nil) != (home != "zz") || err == nil && ref.Home != core.SiteID(home) {
			t.Errorf("a reference to a lease of %s: %v, %v", home, ref, err)
		}
	}
}
