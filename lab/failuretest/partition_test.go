package failuretest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site"
	"github.com/samya-db/samya/site/sitetest"
)

// TestPartition cuts two sites off from three, by the transport's fault hook. The two
// decide nothing, both sides grant the tokens they hold, and the three redistribute their
// tokens among themselves. After the cut heals, all tokens are to be had again.
func TestPartition(t *testing.T) {
	beside(t)
	pairs := pick([][]string{{"us", "sa"}}, [][]string{{"us", "sa"}, {"as", "eu"}, {"au", "us"}, {"eu", "sa"}, {"as", "au"}})
	for _, two := range pairs {
		t.Run(two[0]+"-"+two[1], func(t *testing.T) {
			p := newParted(t, two)
			p.grantApart()
			p.decideNothing()
			p.heal()
		})
	}
}

// The limit, and the share of each of the five sites at the start.
const (
	partedLimit = 500
	partedShare = partedLimit / 5
)

// parted is a cluster cut into two sites and three.
type parted struct {
	t          *testing.T
	c          *sitetest.Cluster
	two, three []string
	grants     *grants
}

// newParted starts a cluster in which every site has its share, and cuts it.
func newParted(t *testing.T, two []string) *parted {
	t.Helper()
	c := sitetest.Start(t, regions, func(cfg *site.Config) { cfg.Strategy = "instance" })
	p := &parted{t: t, c: c, two: two, grants: &grants{t: t, cluster: c}}
	for _, name := range regions {
		if !slices.Contains(two, name) {
			p.three = append(p.three, name)
		}
	}
	c.Create(entity, partedLimit)
	sitetest.Eventually(t, "everybody has its share", func() error {
		for _, name := range regions {
			if s := shareAt(t, c, name); s.GetLeft() != partedShare {
				return fmt.Errorf("%v", s)
			}
		}
		return nil
	})
	c.Partition(p.two, p.three)
	return p
}

// grantApart makes each of the two grant from its own tokens, and the three grant more at
// a site than the site held.
func (p *parted) grantApart() {
	p.t.Helper()
	p.grants.acquire(p.two[0], 30, 10*time.Second)
	p.grants.acquire(p.two[1], 30, 10*time.Second)
	p.grants.acquire(p.three[0], 250, 30*time.Second)
	p.grants.wait()
	if n := p.grants.count(); n != 310 {
		p.t.Errorf("%d granted, want 310", n)
	}
	if shareAt(p.t, p.c, p.three[0]).GetRedistributions() == 0 {
		p.t.Errorf("the three granted 250 tokens at a site of %d and redistributed nothing", partedShare)
	}
}

// decideNothing asks more of the two than they can do without the others: 100 tokens
// where 70 are left, and changes. Acquires wait for tokens that their site lacks,
// although its companion holds tokens. The companion and the three go on granting.
func (p *parted) decideNothing() {
	t, c := p.t, p.c
	t.Helper()
	p.grants.acquire(p.two[0], 100, time.Minute)
	short := func() error {
		if s := shareAt(t, c, p.two[0]); s.GetWaiting() != 30 || s.GetNet() != partedShare {
			return fmt.Errorf("%v; want 30 waiting, %d granted", s, partedShare)
		}
		return nil
	}
	sitetest.Eventually(t, "acquires wait", short)
	refusedChanges(t, c, p.two[0])
	// Long enough for several attempts. None of them finds a majority.
	pause(t, pick(2*time.Second, 6*time.Second))
	for _, name := range p.two {
		s := shareAt(t, c, name)
		if s.GetRedistributions() != 0 {
			t.Errorf("%s has applied %d redistributions without a majority", name, s.GetRedistributions())
		}
		t.Logf("%s, cut off: %v", name, s)
	}
	if err := short(); err != nil {
		t.Error(err)
	}
	for _, name := range []string{p.two[1], p.three[1]} {
		_, err := c.Tokens(name).Acquire(t.Context(), &samyav1.AcquireRequest{Entity: entity, Tokens: 1, Wait: durationpb.New(0)})
		if err != nil {
			t.Errorf("acquire at %s, which holds tokens: %v", name, err)
		}
	}
}

// heal joins the sites again. Of 500 tokens 382 are out, and 30 are waited for.
func (p *parted) heal() {
	t := p.t
	t.Helper()
	if n := p.grants.count(); n != 380 {
		t.Errorf("%d and 2 granted during the partition, want 380 and 2", n)
	}
	p.c.Heal()
	p.grants.wait()
	if n := p.grants.count(); n != 410 {
		t.Errorf("%d granted in all, want 410: who waited must be served once healed", n)
	}
	sitetest.Eventually(t, "books", func() error {
		u := p.c.Books(entity)
		if u.GetInTransit() != 0 || u.GetAcquired() != 412 || u.GetAvailable() != partedLimit-412 {
			return fmt.Errorf("%v", u)
		}
		return nil
	})
	changesSucceed(t, p.c, p.two[0])
}

// grants counts the tokens granted to many clients.
type grants struct {
	t       *testing.T
	cluster *sitetest.Cluster
	all     sync.WaitGroup
	mu      sync.Mutex
	granted int
}

// acquire starts an acquire of 1 token for each of the clients at a site, all at once.
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
	newLimit  = partedLimit + 1
)

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
	if resp, err := c.Entities(site).GetEntity(t.Context(), &samyav1.GetEntityRequest{Name: entity}); err != nil || resp.GetEntity().GetLimit() != partedLimit {
		t.Errorf("limit changed without a majority: %v, %v", resp, err)
	}
}

// changesSucceed repeats the changes of refusedChanges under their ids, now that there is
// a majority. Each change is carried out once, whatever became of its first attempt.
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
