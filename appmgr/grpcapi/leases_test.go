package grpcapi

import (
	"errors"
	"testing"

	"github.com/samya-db/samya/appmgr/fake"
	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestLeaseOperationsAtTheirHome: lease operations go to no other site.
func TestLeaseOperationsAtTheirHome(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		out, err := r.service.CommitLease(t.Context(), &samyav1.CommitLeaseRequest{Lease: "au/x", Tokens: 2})
		if err != nil || out.GetSite() != "au" || len(out.GetRequestId()) != 26 {
			t.Errorf("%v, %v", out, err)
		}
		r.sites["au"].Kill()
		fake.Pass(0)
		_, err = r.service.CommitLease(t.Context(), &samyav1.CommitLeaseRequest{Lease: "au/x", RequestId: "r"})
		if e := apierr.From(err); e == nil || e.Reason != apierr.SiteUnavailable || e.Site != "au" || e.RequestID != "r" {
			t.Errorf("home down: %+v", e)
		}
		if _, err := r.service.RenewLease(t.Context(), &samyav1.RenewLeaseRequest{Lease: "au/x"}); !errors.Is(err, apierr.SiteUnavailable) {
			t.Errorf("home down: %v", err)
		}
	})
}
