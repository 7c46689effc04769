package appmgr

import (
	"errors"
	"slices"
	"testing"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestListLeasesOfAllSites: pages of any size hold each lease once, in the order
// of the sites.
func TestListLeasesOfAllSites(t *testing.T) {
	inBubble(t, threeSites, nil, func(r *rig) {
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
			if len(got) != 3*leasesEach || got[0] != "au/1" || !slices.Equal(got, want) {
				t.Errorf("size %d: %q", size, got)
			}
		}
	})
}

// TestListLeasesWithoutASite: a list of leases names the silent sites, and fails without
// any site.
func TestListLeasesWithoutASite(t *testing.T) {
	inBubble(t, threeSites, nil, func(r *rig) {
		t := r.t
		r.sites["eu"].kill()
		pass(0)
		out, err := r.service.ListLeases(t.Context(), &samyav1.ListLeasesRequest{})
		if err != nil || len(out.GetLeases()) != 2*leasesEach || !slices.Equal(out.GetMissing(), []string{"eu"}) {
			t.Errorf("%v, %v", out, err)
		}
		for _, f := range r.sites {
			f.kill()
		}
		pass(0)
		if _, err := r.service.ListLeases(t.Context(), &samyav1.ListLeasesRequest{}); !errors.Is(err, apierr.SiteUnavailable) {
			t.Errorf("no site: %v", err)
		}
	})
}

// TestLeaseOperationsAtTheirHome: lease operations go to no other site.
func TestLeaseOperationsAtTheirHome(t *testing.T) {
	inBubble(t, threeSites, nil, func(r *rig) {
		t := r.t
		out, err := r.service.CommitLease(t.Context(), &samyav1.CommitLeaseRequest{Lease: "au/x", Tokens: 2})
		if err != nil || out.GetSite() != "au" || len(out.GetRequestId()) != 26 {
			t.Errorf("%v, %v", out, err)
		}
		r.sites["au"].kill()
		pass(0)
		_, err = r.service.CommitLease(t.Context(), &samyav1.CommitLeaseRequest{Lease: "au/x", RequestId: "r"})
		if e := apierr.From(err); e == nil || e.Reason != apierr.SiteUnavailable || e.Site != "au" || e.RequestID != "r" {
			t.Errorf("home down: %+v", e)
		}
		if _, err := r.service.RenewLease(t.Context(), &samyav1.RenewLeaseRequest{Lease: "au/x"}); !errors.Is(err, apierr.SiteUnavailable) {
			t.Errorf("home down: %v", err)
		}
	})
}
