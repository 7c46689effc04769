package site_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/appmgr"
	"github.com/samya-db/samya/appmgr/route"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/node"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/sitetest"
)

// directory knows the sites of a cluster.
type directory []route.SiteInfo

func (d directory) Sites() []route.SiteInfo { return d }
func (directory) Changed() <-chan struct{}  { return nil }

// front runs an app manager before a cluster and returns a client of it.
func front(t *testing.T, c *sitetest.Cluster, names ...string) samyav1.EntityServiceClient {
	t.Helper()
	var sites directory
	for _, n := range names {
		sites = append(sites, route.SiteInfo{Name: n, Region: n, Address: c.Site(n).GRPCAddr()})
	}
	return frontOf(t, names[0], sites)
}

// growing is a directory of the sites that were added.
type growing struct {
	mu      sync.Mutex
	sites   []route.SiteInfo
	changed chan struct{}
}

// add adds a site, or tells its new address.
func (g *growing) add(c *sitetest.Cluster, name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sites = slices.DeleteFunc(slices.Clone(g.sites), func(s route.SiteInfo) bool { return s.Name == name })
	g.sites = append(g.sites, route.SiteInfo{Name: name, Region: name, Address: c.Site(name).GRPCAddr()})
	close(g.changed)
	g.changed = make(chan struct{})
}

func (g *growing) Sites() []route.SiteInfo {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.sites
}

func (g *growing) Changed() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.changed
}

// frontOf runs an app manager before the sites of a directory and returns a client of it.
func frontOf(t *testing.T, region string, sites route.Directory) samyav1.EntityServiceClient {
	t.Helper()
	m, err := appmgr.New(appmgr.Config{
		Config:    node.Config{Name: "front", Region: region, Cluster: "test", HTTP: "127.0.0.1:0", GRPC: "127.0.0.1:0"},
		Directory: sites,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	<-m.Listening()
	conn, err := grpc.NewClient("passthrough:///"+m.GRPCAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		stop()
		if err := <-done; err != nil {
			t.Errorf("the app manager: %v", err)
		}
	})
	client := samyav1.NewEntityServiceClient(conn)
	sitetest.Eventually(t, "the app manager", func() error {
		_, err := client.ListEntities(t.Context(), &samyav1.ListEntitiesRequest{})
		return err
	})
	return client
}

// TestExactReadsUnderLoad: clients at three sites take all tokens and give them back, so
// that tokens go from site to site all the time. Each exact read that is called
// consistent accounts for the whole limit. After the load an exact read tells how many
// tokens the clients hold.
func TestExactReadsUnderLoad(t *testing.T) {
	const limit, rounds = 90, 40
	names := []string{"as", "eu", "us"}
	c := sitetest.Start(t, names, nil)
	c.Create("vm", limit)
	entities := front(t, c, names...)
	var held atomic.Int64
	var load sync.WaitGroup
	for i, n := range names {
		for range 4 {
			load.Go(func() {
				tokens := c.Tokens(n)
				for range rounds {
					_, err := tokens.Acquire(t.Context(), &samyav1.AcquireRequest{Entity: "vm", Tokens: int64(5 + 5*i)})
					if err != nil && errors.Is(apierr.FromGRPC(err), apierr.OutOfTokens) {
						continue
					}
					if err == nil {
						held.Add(int64(5 + 5*i))
						_, err = tokens.Release(t.Context(), &samyav1.ReleaseRequest{Entity: "vm", Tokens: int64(4 + 5*i)})
						held.Add(-int64(4 + 5*i))
					}
					if err != nil {
						t.Errorf("at %s: %v", n, err)
						return
					}
				}
			})
		}
	}
	ended := make(chan struct{})
	go func() { load.Wait(); close(ended) }()
	read := func() *samyav1.Usage {
		resp, err := entities.GetEntity(t.Context(), &samyav1.GetEntityRequest{Name: "vm"})
		if err != nil {
			t.Fatal(err)
		}
		u := resp.GetUsage()
		if !u.GetComplete() || u.GetConsistent() && (u.GetAvailable()+u.GetAcquired()+u.GetInTransit() != limit ||
			u.GetAcquired() < 0 || u.GetAcquired() > limit || u.GetInTransit() < 0) {
			t.Errorf("%v", u)
		}
		return u
	}
	reads, consistent := 0, 0
	for under := true; under; reads++ {
		if read().GetConsistent() {
			consistent++
		}
		select {
		case <-ended:
			under = false
		default:
		}
	}
	t.Logf("%d of %d exact reads under load were consistent", consistent, reads)
	sitetest.Eventually(t, "an exact read at rest", func() error {
		if u := read(); !u.GetConsistent() || u.GetAcquired() != held.Load() || u.GetInTransit() != 0 {
			return fmt.Errorf("%d are held: %v", held.Load(), u)
		}
		return nil
	})
}

// TestReadsThroughAnAppManager: bounded reads, watches that go on at another site, and
// lists page by page.
func TestReadsThroughAnAppManager(t *testing.T) {
	names := []string{"us", "eu", "as"}
	c := sitetest.Start(t, names, nil)
	c.Create("vm", 90)
	for i := range 25 {
		c.Create(fmt.Sprintf("many/%02d", i), 1)
	}
	entities := front(t, c, names...)
	var listed []string
	for page := ""; ; {
		resp, err := entities.ListEntities(t.Context(), &samyav1.ListEntitiesRequest{Prefix: "many/", PageSize: 10, PageToken: page})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range resp.GetEntities() {
			listed = append(listed, e.GetName())
		}
		if page = resp.GetNextPageToken(); page == "" {
			break
		}
	}
	if len(listed) != 25 || !slices.IsSorted(listed) || listed[0] != "many/00" {
		t.Errorf("listed %q", listed)
	}
	bounded, err := entities.GetEntity(t.Context(), &samyav1.GetEntityRequest{
		Name: "vm", Consistency: samyav1.Consistency_CONSISTENCY_BOUNDED, MaxAge: durationpb.New(0),
	})
	if u := bounded.GetUsage(); err != nil || !u.GetComplete() || u.GetAvailable() != 90 || len(u.GetShares()) != 3 {
		t.Errorf("bounded: %v, %v", u, err)
	}
	stream, err := entities.WatchEntity(t.Context(), &samyav1.WatchEntityRequest{Name: "vm"})
	if err != nil {
		t.Fatal(err)
	}
	w := watching{t, stream}
	if first := w.next(); first.GetEntity().GetLimit() != 90 {
		t.Errorf("the present state: %v", first)
	}
	if _, err := entities.UpdateEntity(t.Context(), &samyav1.UpdateEntityRequest{Name: "vm", Limit: 60}); err != nil {
		t.Fatal(err)
	}
	for state := w.next(); state.GetEntity().GetVersion() != 2; state = w.next() {
		t.Logf("told %v", state)
	}
	// The watched site stops, whichever it is.
	c.Stop("us")
	if _, err := entities.UpdateEntity(t.Context(), &samyav1.UpdateEntityRequest{Name: "vm", Limit: 70}); err != nil {
		t.Fatal(err)
	}
	for state := w.next(); state.GetEntity().GetVersion() != 3; state = w.next() {
		if state.GetEntity().GetVersion() < 2 {
			t.Errorf("goes back: %v", state)
		}
	}
	if _, err := entities.DeleteEntity(t.Context(), &samyav1.DeleteEntityRequest{Name: "vm"}); err != nil {
		t.Fatal(err)
	}
	for state := w.next(); !state.GetDeleted(); state = w.next() {
		t.Logf("told %v", state)
	}
	w.ends("")
}
