package reads

import (
	"errors"
	"slices"
	"testing"

	"github.com/samya-db/samya/appmgr/fake"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/health"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

func TestPublicHealth(t *testing.T) {
	for want, h := range map[samyav1.SiteHealth]health.Health{
		samyav1.SiteHealth_SITE_HEALTH_UNSPECIFIED: {},
		samyav1.SiteHealth_SITE_HEALTH_SERVING:     {Reach: health.Up, OverloadedUntil: now},
		samyav1.SiteHealth_SITE_HEALTH_OVERLOADED:  {Reach: health.Up, OverloadedUntil: now.Add(1)},
		samyav1.SiteHealth_SITE_HEALTH_UNREACHABLE: {Reach: health.Down, OverloadedUntil: now.Add(1)},
	} {
		if got := publicHealth(h, now); got != want {
			t.Errorf("%+v is told as %v, want %v", h, got, want)
		}
	}
}

// TestListLeasesOfAllSites: pages of any size hold each lease once, in the order
// of the sites.
func TestListLeasesOfAllSites(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		var want []string
		for _, size := range []int32{0, 1, 2, 3, 5, 7, 15, 1000} {
			var got []string
			for token, pages := "", 0; ; pages++ {
				if pages > 20 {
					t.Fatalf("size %d: no end", size)
				}
				out, err := r.service.ListLeases(t.Context(), &samyav1.ListLeasesRequest{PageSize: size, PageToken: token})
				if err != nil || len(out.GetMissing()) > 0 {
					t.Fatalf("size %d: %v, %v", size, out.GetMissing(), err)
				}
				if size > 0 && len(out.GetLeases()) > int(size) {
					t.Errorf("a page of %d has %d", size, len(out.GetLeases()))
				}
				for _, l := range out.GetLeases() {
					got = append(got, l.GetName())
				}
				if token = out.GetNextPageToken(); token == "" {
					break
				}
			}
			if want == nil {
				want = got
			}
			if len(got) != 3*fake.LeasesEach || got[0] != "au/1" || !slices.Equal(got, want) {
				t.Errorf("size %d: %q", size, got)
			}
		}
	})
}

// TestListLeasesWithoutASite: a list of leases names the silent sites, and fails without
// any site.
func TestListLeasesWithoutASite(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		r.sites["eu"].Kill()
		fake.Pass(0)
		out, err := r.service.ListLeases(t.Context(), &samyav1.ListLeasesRequest{})
		if err != nil || len(out.GetLeases()) != 2*fake.LeasesEach || !slices.Equal(out.GetMissing(), []string{"eu"}) {
			t.Errorf("%v, %v", out, err)
		}
		for _, f := range r.sites {
			f.Kill()
		}
		fake.Pass(0)
		if _, err := r.service.ListLeases(t.Context(), &samyav1.ListLeasesRequest{}); !errors.Is(err, apierr.SiteUnavailable) {
			t.Errorf("no site: %v", err)
		}
	})
}
