package grpcapi

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/samya-db/samya/appmgr/fake"
	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestSitesWhoseClockDiffers: requests succeed even if the clocks of some or all sites
// differ from the app manager's. Sites with the right clock are preferred.
func TestSitesWhoseClockDiffers(t *testing.T) {
	const minute = time.Minute
	for _, c := range []struct {
		us, eu, au time.Duration
		want       string
	}{
		{75 * time.Second, 0, 0, "eu"},
		{-75 * time.Second, 0, 0, "eu"},
		{-10 * minute, 10 * minute, 0, "au"},
		{10 * minute, -10 * minute, time.Second, "au"},
		// The app manager's own clock is off.
		{75 * time.Second, 75 * time.Second, 75 * time.Second, "us"},
		{-75 * time.Second, -75 * time.Second, -75 * time.Second, "us"},
		{time.Second, 75 * time.Second, 100 * time.Second, "us"},
	} {
		inBubble(t, fake.ThreeSites, nil, func(r *rig) {
			t := r.t
			for site, ahead := range map[string]time.Duration{"us": c.us, "eu": c.eu, "au": c.au} {
				r.sites[site].SetAhead(ahead)
				r.sites[site].KeepsTime()
			}
			// Before any probe has seen the clocks, if a clock is right, and after.
			right := c.us == 0 || c.eu == 0 || c.au == 0
			if site, err := r.acquire(t, fake.Take); right && err != nil {
				t.Errorf("%+v, at once: %s answered, %v", c, site, err)
			}
			fake.Pass(2 * r.cfg.ProbeInterval)
			if site, err := r.acquire(t, fake.Take); err != nil || site != c.want {
				t.Errorf("%+v: %s answered, %v, want %s", c, site, err, c.want)
			}
		})
	}
}

// TestExpiredInTruthIsNotTriedElsewhere: the first site refuses a request that has also
// expired by the app manager's own clock, and no other site is asked.
func TestExpiredInTruthIsNotTriedElsewhere(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		for _, f := range r.sites {
			f.KeepsTime()
		}
		tries := note(r.sites)
		in := &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 3, RequestId: "id-1", NotAfter: timestamppb.New(time.Now().Add(-time.Second))}
		if _, err := r.acquire(t, in); apierr.ReasonOf(err) != apierr.RequestExpired || len(*tries) != 1 {
			t.Errorf("%d tries, %v", len(*tries), err)
		}
	})
}
