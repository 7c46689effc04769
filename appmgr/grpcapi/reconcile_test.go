package grpcapi

import (
	"errors"
	"testing"

	"github.com/samya-db/samya/appmgr/fake"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/cutid"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestGRPCReconcile: no site gets an invalid reconciliation.
func TestGRPCReconcile(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		arrived := false
		for _, site := range r.sites {
			site.Arrived = func(req any) {
				_, is := req.(*samyav1.ReconcileEntityRequest)
				arrived = arrived || is
			}
		}
		cut := cutid.Cut{Entity: "a", Generation: 1, Version: 4, Counted: 12, Leased: 6}
		_, err := r.service.ReconcileEntity(t.Context(), &samyav1.ReconcileEntityRequest{Name: "a//b", InUse: -1, Cut: cut.String(), RequestId: " "})
		e, ok := errors.AsType[*apierr.Error](err)
		if !ok || len(e.Violations) != 4 {
			t.Errorf("error %v", err)
		}
		if _, err = r.service.ReconcileEntity(t.Context(), &samyav1.ReconcileEntityRequest{Name: "a", InUse: 5, Cut: cut.String()}); apierr.ReasonOf(err) != apierr.InvalidField || arrived {
			t.Errorf("fewer than leases hold: %v, %v", err, arrived)
		}
		out, err := r.service.ReconcileEntity(t.Context(), &samyav1.ReconcileEntityRequest{Name: "a", InUse: 7, Cut: cut.String()})
		if err != nil || out.GetReturned() != 5 || out.GetEntity().GetVersion() != 5 {
			t.Errorf("%v, %v", out, err)
		}
	})
}
