package site_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/sitetest"
)

// TestAMajorityIsLost destroys two sites of three. The third is started anew: nobody vouches
// for it. It serves again once an operator says that the others are destroyed, decides
// alone, writes them off, and takes in another site.
func TestAMajorityIsLost(t *testing.T) {
	c := sitetest.Start(t, []string{"as", "eu", "us"}, nil)
	ctx := t.Context()
	c.Create("vm", 300)
	if _, err := c.Tokens("as").Acquire(ctx, &samyav1.AcquireRequest{Entity: "vm", Tokens: 40, RequestId: "one"}); err != nil {
		t.Fatal(err)
	}
	recovers := func(survivors, lost []string) error {
		_, err := c.Admin("as").RecoverCluster(ctx, &samyav1.RecoverClusterRequest{Survivors: survivors, Lost: lost, MachinesDestroyed: true})
		return err
	}
	as, gone := []string{"as"}, []string{"eu", "us"}
	for name, r := range map[string]struct {
		survivors, lost []string
		want            apierr.Reason
	}{
		"a majority is left":   {[]string{"eu", "as"}, []string{"us"}, apierr.MemberState},
		"a site is left out":   {as, []string{"us"}, apierr.InvalidField},
		"the site is not told": {[]string{"eu"}, []string{"us", "as"}, apierr.InvalidField},
		"nobody is lost":       {as, nil, apierr.InvalidField},
	} {
		if err := recovers(r.survivors, r.lost); err == nil || !errors.Is(apierr.FromGRPC(err), r.want) {
			t.Errorf("%s: %v, want %s", name, err, r.want)
		}
	}
	for _, name := range []string{"as", "eu", "us"} {
		c.Stop(name)
	}
	for _, name := range gone {
		if err := os.RemoveAll(c.DataDir(name)); err != nil {
			t.Fatal(err)
		}
	}
	c.Boot("as")
	if _, err := c.Tokens("as").Acquire(ctx, &samyav1.AcquireRequest{Entity: "vm", Tokens: 1, RequestId: "early"}); !errors.Is(apierr.FromGRPC(err), apierr.SiteUnavailable) {
		t.Errorf("nobody vouches for it: %v", err)
	}
	for range 2 {
		if err := recovers(as, gone); err != nil {
			t.Fatal(err)
		}
	}
	c.Serves("as")
	if _, err := c.Tokens("as").Acquire(ctx, &samyav1.AcquireRequest{Entity: "vm", Tokens: 1, RequestId: "two"}); err != nil {
		t.Error(err)
	}
	for _, name := range gone {
		sitetest.Eventually(t, name+" is written off", func() error {
			_, err := c.Admin("as").RemoveMember(ctx, &samyav1.RemoveMemberRequest{Name: name, Lost: true})
			return err
		})
	}
	sitetest.Eventually(t, "the books", func() error {
		e, err := c.Entities("as").GetEntity(ctx, &samyav1.GetEntityRequest{Name: "vm"})
		if u := e.GetUsage(); err != nil || u.GetWrittenOff() != 200 || u.GetAvailable() != 59 || u.GetAcquired() != 41 {
			return fmt.Errorf("%v, %w", u, err)
		}
		return nil
	})
	if _, err := c.Entities("as").UpdateEntity(ctx, &samyav1.UpdateEntityRequest{Name: "vm", Limit: 400}); err != nil {
		t.Error(err)
	}
	addMember(t, c, "as", "west")
	c.Join("west")
	c.Serves("west")
}
