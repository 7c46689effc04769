package failuretest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/sitetest"
	"github.com/samya-db/samya/internal/wan"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestPartition cuts two sites off from three, by the transport's fault hook.
// The two decide nothing, both sides grant what they hold, and the three share
// out what they hold among themselves. Healed, all tokens are to be had again.
func TestPartition(t *testing.T) {
	pairs := pick([][]string{{"us", "sa"}}, [][]string{{"us", "sa"}, {"as", "eu"}, {"au", "us"}, {"eu", "sa"}, {"as", "au"}})
	for _, two := range pairs {
		t.Run(two[0]+"-"+two[1], func(t *testing.T) { partition(t, two) })
	}
}

// partition has a limit of 500, 100 tokens for each of five sites.
func partition(t *testing.T, two []string) {
	const limit, share = 500, 100
	var three []string
	for _, name := range regions {
		if name != two[0] && name != two[1] {
			three = append(three, name)
		}
	}
	c := sitetest.Start(t, regions, nil)
	c.Create(entity, limit)
	sitetest.Eventually(t, "everybody has its share", func() error {
		for _, name := range regions {
			if s := shareAt(t, c, name); s.GetLeft() != share {
				return fmt.Errorf("%v", s)
			}
		}
		return nil
	})
	c.Partition(two, three)

	// Each of the two grants from what it holds; the three grant more at one
	// site than that site held.
	g := &grants{t: t, cluster: c}
	g.acquire(two[0], 30, 10*time.Second)
	g.acquire(two[1], 30, 10*time.Second)
	g.acquire(three[0], 250, 30*time.Second)
	g.wait()
	if n := g.count(); n != 310 {
		t.Errorf("%d granted, want 310", n)
	}
	if shareAt(t, c, three[0]).GetRedistributions() == 0 {
		t.Error("the three granted 250 tokens at a site of 100 and redistributed nothing")
	}

	// More than one of the two holds: what it cannot get waits.
	before := g.count()
	g.acquire(two[0], 100, time.Minute)
	sitetest.Eventually(t, "acquires wait", func() error {
		if s := shareAt(t, c, two[0]); s.GetWaiting() < 30 {
			return fmt.Errorf("%v", s)
		}
		return nil
	})
	refusedChanges(t, c, two[0])
	// Long enough for several attempts, each of which fails to find a majority.
	if err := wan.Wait(t.Context(), pick(2*time.Second, 6*time.Second)); err != nil {
		t.Fatal(err)
	}
	for _, name := range two {
		s := shareAt(t, c, name)
		if s.GetRedistributions() != 0 {
			t.Errorf("%s has applied %d redistributions without a majority", name, s.GetRedistributions())
		}
		t.Logf("%s, cut off: %v", name, s)
	}
	if s := shareAt(t, c, two[0]); s.GetWaiting() < 30 {
		t.Errorf("nothing can have come, and yet only %d wait at %s", s.GetWaiting(), two[0])
	}
	// The other of the two, and the three, still grant what they hold.
	c1 := shareAt(t, c, two[1]).GetLeft()
	if c1 < 1 {
		t.Errorf("%s holds nothing it could grant: %v", two[1], shareAt(t, c, two[1]))
	}
	acquireNow(t, c, two[1])
	acquireNow(t, c, three[1])
	if n := g.count() + 2; n > limit {
		t.Errorf("%d granted of %d", n, limit)
	}
	t.Logf("during the partition %d granted at the two and %d in all; %d wait", g.count()-before+60, g.count()+2, shareAt(t, c, two[0]).GetWaiting())

	c.Heal()
	g.wait()
	// 190 were left, and 100 wanted.
	if n := g.count(); n != 410 {
		t.Errorf("%d granted in all, want 410: who waited must be served once healed", n)
	}
	sitetest.Eventually(t, "books", func() error {
		u := c.Books(entity)
		if u.GetInTransit() != 0 || u.GetAcquired() != 412 || u.GetAvailable() != limit-412 {
			return fmt.Errorf("%v", u)
		}
		return nil
	})
	changesSucceed(t, c, two[0])
}

// grants counts what many clients are granted.
type grants struct {
	t       *testing.T
	cluster *sitetest.Cluster
	all     sync.WaitGroup
	mu      sync.Mutex
	granted int
}

// acquire begins acquires of one token each at a site, at once.
func (g *grants) acquire(site string, clients int, wait time.Duration) {
	for range clients {
		g.all.Go(func() {
			_, err := g.cluster.Tokens(site).Acquire(g.t.Context(), &samyav1.AcquireRequest{
				Entity: entity, Tokens: 1, Wait: durationpb.New(wait),
			})
			if err != nil {
				g.t.Errorf("acquire at %s: %v", site, err)
				return
			}
			g.mu.Lock()
			defer g.mu.Unlock()
			g.granted++
		})
	}
}

func (g *grants) wait() { g.all.Wait() }

func (g *grants) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.granted
}

// acquireNow acquires one token without waiting for any to arrive.
func acquireNow(t *testing.T, c *sitetest.Cluster, site string) {
	t.Helper()
	if _, err := c.Tokens(site).Acquire(t.Context(), &samyav1.AcquireRequest{Entity: entity, Tokens: 1, Wait: durationpb.New(0)}); err != nil {
		t.Errorf("acquire at %s: %v", site, err)
	}
}

// shareAt reads a site's own share.
func shareAt(t *testing.T, c *sitetest.Cluster, site string) *samyav1.Share {
	t.Helper()
	resp, err := c.Entities(site).GetEntity(t.Context(), &samyav1.GetEntityRequest{Name: entity})
	if err != nil {
		t.Fatalf("reading %s at %s: %v", entity, site, err)
	}
	return resp.GetUsage().GetShares()[0]
}

// The changes that a site asks for while it is cut off.
const (
	newEntity = "acme/disk"
	newLimit  = limitOfNew + 1
)

const limitOfNew = 500

func createNew(ctx context.Context, c *sitetest.Cluster, site string) error {
	_, err := c.Entities(site).CreateEntity(ctx, &samyav1.CreateEntityRequest{Name: newEntity, Limit: 7, RequestId: "create-new"})
	return err
}

func raiseLimit(ctx context.Context, c *sitetest.Cluster, site string) error {
	_, err := c.Entities(site).UpdateEntity(ctx, &samyav1.UpdateEntityRequest{Name: entity, Limit: newLimit, RequestId: "raise"})
	return err
}

// refusedChanges asks for changes that need a majority where there is none.
func refusedChanges(t *testing.T, c *sitetest.Cluster, site string) {
	t.Helper()
	for what, change := range map[string]func(context.Context, *sitetest.Cluster, string) error{
		"creating an entity": createNew, "changing a limit": raiseLimit,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		err := change(ctx, c, site)
		cancel()
		e := apierr.FromGRPC(err)
		if err == nil || !errors.Is(e, apierr.NoQuorum) && !errors.Is(e, apierr.OutcomeUnknown) {
			t.Errorf("%s without a majority: %v, want %s or %s", what, err, apierr.NoQuorum, apierr.OutcomeUnknown)
		}
		t.Logf("%s without a majority: %v", what, e)
	}
	if resp, err := c.Entities(site).GetEntity(t.Context(), &samyav1.GetEntityRequest{Name: newEntity}); err == nil {
		t.Errorf("created without a majority: %v", resp)
	}
	if resp, err := c.Entities(site).GetEntity(t.Context(), &samyav1.GetEntityRequest{Name: entity}); err != nil || resp.GetEntity().GetLimit() != limitOfNew {
		t.Errorf("limit changed without a majority: %v, %v", resp, err)
	}
}

// changesSucceed repeats those changes under their ids, now that there is a
// majority: whatever became of the first attempts, each is carried out once.
func changesSucceed(t *testing.T, c *sitetest.Cluster, site string) {
	t.Helper()
	for _, change := range []func(context.Context, *sitetest.Cluster, string) error{createNew, raiseLimit} {
		sitetest.Eventually(t, "the repeat of a change", func() error { return change(t.Context(), c, site) })
	}
	sitetest.Eventually(t, "the new limit", func() error {
		for _, name := range regions {
			resp, err := c.Entities(name).GetEntity(t.Context(), &samyav1.GetEntityRequest{Name: entity})
			if err != nil || resp.GetEntity().GetLimit() != newLimit || resp.GetEntity().GetVersion() != 2 {
				return fmt.Errorf("%s: %v, %w", name, resp, err)
			}
		}
		return nil
	})
}
