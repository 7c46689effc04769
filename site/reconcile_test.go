package site_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/sitetest"
)

// TestReconcileThroughAnAppManager: a cut of real sites, a count of it, and what repeats
// and later cuts are told.
func TestReconcileThroughAnAppManager(t *testing.T) {
	names := []string{"as", "eu", "us"}
	c := sitetest.Start(t, names, nil)
	entities := front(t, c, names...)
	ctx := t.Context()
	c.Create("vm", 90)
	for i, at := range names {
		if _, err := c.Tokens(at).Acquire(ctx, &samyav1.AcquireRequest{Entity: "vm", Tokens: int64(i + 5), RequestId: "a" + at}); err != nil {
			t.Fatal(err)
		}
	}
	var cut *samyav1.CutEntityResponse
	sitetest.Eventually(t, "a cut", func() (err error) {
		cut, err = entities.CutEntity(ctx, &samyav1.CutEntityRequest{Name: "vm"})
		return err
	})
	if cut.GetInUse() != 18 || cut.GetUsage().GetAcquired() != 18 || !cut.GetUsage().GetConsistent() || cut.GetEndedMs() < cut.GetBegunMs() {
		t.Fatalf("%v", cut)
	}
	if _, err := c.Tokens("eu").Acquire(ctx, &samyav1.AcquireRequest{Entity: "vm", Tokens: 2, RequestId: "later"}); err != nil {
		t.Fatal(err)
	}
	r := &samyav1.ReconcileEntityRequest{Name: "vm", InUse: 11, Cut: cut.GetCut(), RequestId: "r"}
	first, err := entities.ReconcileEntity(ctx, r)
	if err != nil || first.GetReturned() != 7 || first.GetEntity().GetVersion() != 2 || first.GetEntity().GetLimit() != 90 || first.GetMayExceedBy() != 0 {
		t.Fatalf("%v, %v", first, err)
	}
	for _, at := range names {
		again, err := c.Entities(at).ReconcileEntity(ctx, r)
		if err != nil || again.GetReturned() != 7 || again.GetEntity().String() != first.GetEntity().String() {
			t.Errorf("again at %s: %v, %v", at, again, err)
		}
	}
	sitetest.Eventually(t, "an exact read", func() error {
		got, err := entities.GetEntity(ctx, &samyav1.GetEntityRequest{Name: "vm"})
		if u := got.GetUsage(); err != nil || !u.GetConsistent() || u.GetAcquired() != 13 || u.GetAvailable() != 77 || u.GetWrittenOff() != 0 {
			return fmt.Errorf("%v, %w", u, err)
		}
		return nil
	})
	for what, change := range map[string]func(r *samyav1.ReconcileEntityRequest){
		"another count":   func(r *samyav1.ReconcileEntityRequest) { r.InUse = 12 },
		"a typing error":  func(r *samyav1.ReconcileEntityRequest) { r.Cut += "0" },
		"another request": func(r *samyav1.ReconcileEntityRequest) { r.RequestId = "s" },
	} {
		other := &samyav1.ReconcileEntityRequest{Name: "vm", InUse: 11, Cut: cut.GetCut(), RequestId: "r"}
		change(other)
		want := map[string]apierr.Reason{"another count": apierr.RequestIDReused, "a typing error": apierr.InvalidField, "another request": apierr.VersionMismatch}[what]
		for _, by := range []samyav1.EntityServiceClient{entities, c.Entities("eu")} {
			if _, err := by.ReconcileEntity(ctx, other); apierr.ReasonOf(apierr.FromGRPC(err)) != want ||
				want == apierr.VersionMismatch && !strings.Contains(err.Error(), "another cut") {
				t.Errorf("%s: %v, want %s", what, err, want)
			}
		}
	}
	c.Stop("as")
	if _, err := entities.CutEntity(ctx, &samyav1.CutEntityRequest{Name: "vm"}); apierr.ReasonOf(apierr.FromGRPC(err)) != apierr.SiteUnavailable {
		t.Errorf("a cut without a site: %v", err)
	}
}
