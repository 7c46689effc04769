package client_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/samya-db/samya/client"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site"
	"github.com/samya-db/samya/site/sitetest"
)

// TestASiteLeavesItsClients: a client that knows one site at first loses no call while that
// site drains and is gone, and goes on with the site's leases at the heir.
func TestASiteLeavesItsClients(t *testing.T) {
	const limit = 900
	cluster := sitetest.Start(t, []string{"as", "eu", "us"}, func(c *site.Config) {
		c.RequestRetention, c.ClockSkew = 12*time.Second, time.Second
	})
	cluster.Create("acme/vm", limit)
	c := newClient(t, client.Config{
		Region: "eu", Targets: sites(cluster, "eu"), Timeout: 3 * time.Second, RepeatTime: 2 * time.Second, ProbeInterval: 200 * time.Millisecond,
	})
	ctx := t.Context()
	leased, err := c.AcquireLease(ctx, "acme/vm", 7, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	var callers sync.WaitGroup
	held := make([]int64, 4)
	for i := range held {
		callers.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				moved, _, err := moveOne(ctx, c, held[i], nil)
				if err != nil {
					t.Errorf("with %d held: %v", held[i], err)
					return
				}
				held[i] += moved
			}
		})
	}
	sitetest.Eventually(t, "a drain", func() error {
		_, err := cluster.Admin("us").DrainMember(ctx, &samyav1.DrainMemberRequest{Name: "eu", Heir: "us", RequestId: "drain"})
		return err
	})
	sitetest.Eventually(t, "the site to leave", func() error {
		list, err := cluster.Admin("us").ListMembers(ctx, &samyav1.ListMembersRequest{})
		if err != nil {
			return err
		}
		if leased, err = leased.Renew(ctx, time.Minute); err != nil {
			t.Fatalf("a renewal: %v", err)
		}
		if m := list.GetMembers()[1]; m.GetState() != samyav1.MemberState_MEMBER_STATE_GONE {
			return fmt.Errorf("%v", m)
		}
		return nil
	})
	if err := cluster.Ended("eu"); err == nil {
		t.Error("a site that has left goes on")
	}
	kept, _, err := leased.Commit(ctx, 0)
	if err != nil || kept != 7 {
		t.Errorf("committing the lease at the heir: %d, %v", kept, err)
	}
	close(over)
	callers.Wait()
	all := kept
	for _, n := range held {
		all += n
	}
	sitetest.Eventually(t, "the books", func() error {
		var net int64
		for _, at := range []string{"as", "us"} {
			resp, err := cluster.Entities(at).GetEntity(ctx, &samyav1.GetEntityRequest{Name: "acme/vm", Consistency: samyav1.Consistency_CONSISTENCY_LOCAL})
			if err != nil {
				return err
			}
			net += resp.GetUsage().GetShares()[0].GetNet()
		}
		if net != all {
			return fmt.Errorf("%d are out by the books, clients hold %d", net, all)
		}
		return nil
	})
}

// TestALostSiteAndItsClients: a client that knows one site at first loses no call while that
// site goes away for good and is written off. The site's leases have then ended.
func TestALostSiteAndItsClients(t *testing.T) {
	cluster := sitetest.Start(t, []string{"as", "eu", "us"}, nil)
	cluster.Create("acme/vm", 900)
	c := newClient(t, client.Config{Region: "eu", Targets: sites(cluster, "eu"), ProbeInterval: 200 * time.Millisecond})
	ctx := t.Context()
	leased, err := c.AcquireLease(ctx, "acme/vm", 7, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	sitetest.Eventually(t, "another target", func() error {
		g, err := c.Acquire(ctx, "acme/vm", 1)
		if err == nil && g.Site == "eu" {
			return nil
		}
		return fmt.Errorf("%+v, %w", g, err)
	})
	// The client learns the others within a sign of life, as it has identified the site.
	sitetest.Eventually(t, "the other sites to be targets", func() error {
		if n := c.Targets(); n != 3 {
			return fmt.Errorf("%d targets", n)
		}
		return nil
	})
	cluster.Stop("eu")
	for range 20 {
		if g, err := c.Acquire(ctx, "acme/vm", 1); err != nil || g.Site == "eu" {
			t.Fatalf("with the site away: %+v, %v", g, err)
		}
	}
	sitetest.Eventually(t, "the write-off", func() error {
		_, err := cluster.Admin("us").RemoveMember(ctx, &samyav1.RemoveMemberRequest{Name: "eu", Lost: true, RequestId: "lost"})
		return err
	})
	sitetest.Eventually(t, "the end of the lease", func() error {
		short, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		if _, err := leased.Renew(short, time.Hour); !errors.Is(err, client.ErrLeaseNotFound) {
			return fmt.Errorf("a renewal: %w", err)
		}
		return nil
	})
	if r, err := leased.Return(ctx, 7); err != nil || r.Site == "eu" {
		t.Errorf("giving the lease back: %+v, %v", r, err)
	}
	for range 20 {
		if g, err := c.Acquire(ctx, "acme/vm", 1); err != nil || g.Site == "eu" {
			t.Fatalf("after the write-off: %+v, %v", g, err)
		}
	}
}
