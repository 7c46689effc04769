package appmgr

import (
	"context"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// keepsTime makes a site judge not_after by its own clock, as sites do.
func (f *fakeSite) keepsTime() {
	f.acquire = func(_ context.Context, in *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
		switch left := in.GetNotAfter().AsTime().Sub(time.Now().Add(f.ahead)); {
		case left < 0:
			return nil, apierr.New(apierr.RequestExpired, "too late by this site's clock")
		case left > 290*time.Second:
			return nil, apierr.Invalid("not_after", "at most 4m50s ahead by this site's clock")
		}
		return &samyav1.AcquireResponse{Tokens: in.GetTokens(), RequestId: in.GetRequestId(), Site: f.name}, nil
	}
}

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
		inBubble(t, threeSites, nil, func(r *rig) {
			t := r.t
			for site, ahead := range map[string]time.Duration{"us": c.us, "eu": c.eu, "au": c.au} {
				r.sites[site].ahead = ahead
				r.sites[site].keepsTime()
			}
			// Before any probe has seen the clocks, if a clock is right, and after.
			right := c.us == 0 || c.eu == 0 || c.au == 0
			if site, err := r.acquire(t, take); right && err != nil {
				t.Errorf("%+v, at once: %s answered, %v", c, site, err)
			}
			pass(2 * r.cfg.ProbeInterval)
			if site, err := r.acquire(t, take); err != nil || site != c.want {
				t.Errorf("%+v: %s answered, %v, want %s", c, site, err, c.want)
			}
		})
	}
}

// TestExpiredInTruthIsNotTriedElsewhere: the first site refuses a request that has also
// expired by the app manager's own clock, and no other site is asked.
func TestExpiredInTruthIsNotTriedElsewhere(t *testing.T) {
	inBubble(t, threeSites, nil, func(r *rig) {
		t := r.t
		for _, f := range r.sites {
			f.keepsTime()
		}
		tries := r.note()
		in := &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 3, RequestId: "id-1", NotAfter: timestamppb.New(time.Now().Add(-time.Second))}
		if _, err := r.acquire(t, in); apierr.ReasonOf(err) != apierr.RequestExpired || len(*tries) != 1 {
			t.Errorf("%d tries, %v", len(*tries), err)
		}
	})
}
