// Package sitetest runs whole clusters of real sites within a single test process, over
// loopback, with a hook that cuts sites off from each other. It is for tests only.
package sitetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/internal/node"
	"github.com/samya-db/samya/internal/wan"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site"
)

// Cluster is a cluster of sites in this process.
type Cluster struct {
	t     testing.TB
	dir   string
	seed  string
	tweak func(*site.Config)
	// founders are the sites of the new cluster.
	founders []string

	mu  sync.Mutex
	cut map[[2]string]bool
	// names are the founders, and the sites that joined after them.
	names []string
	sites map[string]*running
	// conns are the connections to the sites; that to a stopped site is closed.
	conns map[string]*grpc.ClientConn
}

type running struct {
	*site.Site
	stop context.CancelFunc
	done chan error
	conn *grpc.ClientConn
}

// Start starts sites of the given names, each in a region of its own name, and waits
// until all have links to each other. It stops them with the test. The tweak, if any,
// may change each site's configuration.
func Start(tb testing.TB, names []string, tweak func(*site.Config)) *Cluster {
	tb.Helper()
	c := &Cluster{
		t: tb, dir: tb.TempDir(), founders: names, names: slices.Clone(names), seed: FreePort(tb), tweak: tweak,
		cut: make(map[[2]string]bool), sites: make(map[string]*running), conns: make(map[string]*grpc.ClientConn),
	}
	for _, n := range names {
		c.Boot(n)
	}
	tb.Cleanup(func() {
		for _, n := range c.names {
			c.Stop(n)
		}
	})
	c.AwaitLinks()
	return c
}

// AwaitLinks waits until all running sites have links to all others running.
func (c *Cluster) AwaitLinks() {
	c.t.Helper()
	for _, n := range c.names {
		if c.at(n) == nil {
			continue
		}
		Eventually(c.t, "links of "+n, func() error {
			resp, err := c.Admin(n).ListSites(c.t.Context(), &samyav1.ListSitesRequest{})
			if err != nil {
				return err
			}
			for _, s := range resp.GetSites() {
				if c.at(s.GetName()) != nil && s.GetHealth() != samyav1.SiteHealth_SITE_HEALTH_SERVING {
					return fmt.Errorf("%s to %s: %v", n, s.GetName(), s.GetHealth())
				}
			}
			return nil
		})
	}
}

// Join starts a site that was not among the founders. It waits for a seat in the cluster,
// unless it has one.
func (c *Cluster) Join(name string) {
	c.t.Helper()
	c.mu.Lock()
	c.names = append(c.names, name)
	c.mu.Unlock()
	c.Boot(name)
}

// Serves waits until a site serves.
func (c *Cluster) Serves(name string) {
	c.t.Helper()
	Eventually(c.t, name, func() error {
		resp, err := healthv1.NewHealthClient(c.Conn(name)).Check(c.t.Context(), &healthv1.HealthCheckRequest{})
		if err == nil && resp.GetStatus() != healthv1.HealthCheckResponse_SERVING {
			err = fmt.Errorf("%v", resp.GetStatus())
		}
		return err
	})
}

// Boot starts a site, again on its old data if it ran before.
func (c *Cluster) Boot(name string) {
	c.t.Helper()
	cfg := site.Config{
		Config: node.Config{
			Cluster: "test", Name: name, Region: name, GRPC: "127.0.0.1:0", HTTP: "127.0.0.1:0",
			Gossip: node.Gossip{Bind: "127.0.0.1:0", Join: []string{c.seed}}, Preset: "local",
		},
		DataDir: c.DataDir(name),
		Fault: func(to string) bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.cut[[2]string{name, to}]
		},
	}
	if slices.Contains(c.founders, name) {
		cfg.Members = c.founders
	}
	if name == c.founders[0] {
		cfg.Gossip.Bind = c.seed
	}
	if c.tweak != nil {
		c.tweak(&cfg)
	}
	s, err := site.New(cfg)
	if err != nil {
		c.t.Fatalf("starting site %s: %v", name, err)
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &running{Site: s, stop: stop, done: make(chan error, 1)}
	go func() { r.done <- s.Run(ctx) }()
	r.conn, err = grpc.NewClient("passthrough:///"+s.GRPCAddr(),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		c.t.Fatalf("dialling site %s: %v", name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sites[name], c.conns[name] = r, r.conn
}

// Forget stops a site, and removes its data.
func (c *Cluster) Forget(name string) {
	c.t.Helper()
	c.Stop(name)
	if err := os.RemoveAll(filepath.Join(c.dir, name)); err != nil {
		c.t.Fatalf("removing the data of site %s: %v", name, err)
	}
}

// Fails starts a site that ends by itself, and returns its error.
func (c *Cluster) Fails(name string) error {
	c.t.Helper()
	c.Boot(name)
	r := c.at(name)
	c.mu.Lock()
	delete(c.sites, name)
	c.mu.Unlock()
	defer r.stop()
	select {
	case err := <-r.done:
		return errors.Join(err, r.conn.Close())
	case <-time.After(30 * time.Second):
		c.t.Fatalf("site %s does not end", name)
		return nil
	}
}

// Stop stops a site in good order. Stopping it twice is allowed.
func (c *Cluster) Stop(name string) {
	c.t.Helper()
	r := c.at(name)
	if r == nil {
		return
	}
	c.mu.Lock()
	delete(c.sites, name)
	c.mu.Unlock()
	err := r.conn.Close()
	r.stop()
	select {
	case runErr := <-r.done:
		if err := errors.Join(err, runErr); err != nil {
			c.t.Errorf("stopping site %s: %v", name, err)
		}
	case <-time.After(30 * time.Second):
		c.t.Errorf("site %s does not stop", name)
	}
}

// Ended waits until a running site ends by itself, and returns its error.
func (c *Cluster) Ended(name string) error {
	c.t.Helper()
	r := c.sites[name]
	delete(c.sites, name)
	defer r.stop()
	defer func() { _ = r.conn.Close() }()
	select {
	case err := <-r.done:
		return err
	case <-time.After(30 * time.Second):
		c.t.Fatalf("site %s does not end", name)
		return nil
	}
}

// Partition cuts the links between sites of different groups, in both
// directions. Sites in no group are cut off from all.
func (c *Cluster) Partition(groups ...[]string) {
	groupOf := func(n string) int {
		return slices.IndexFunc(groups, func(g []string) bool { return slices.Contains(g, n) })
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.names {
		for _, b := range c.names {
			c.cut[[2]string{a, b}] = groupOf(a) != groupOf(b) || groupOf(a) < 0
		}
	}
}

// Heal undoes Partition.
func (c *Cluster) Heal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.cut)
}

// at returns a running site; nil for none.
func (c *Cluster) at(name string) *running {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sites[name]
}

// Site returns a running site.
func (c *Cluster) Site(name string) *site.Site { return c.at(name).Site }

// Conn returns a connection to a site's gRPC listener. That to a stopped site is closed.
func (c *Cluster) Conn(name string) *grpc.ClientConn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conns[name]
}

// Tokens returns a client of a site's token service.
func (c *Cluster) Tokens(name string) samyav1.TokenServiceClient {
	return samyav1.NewTokenServiceClient(c.Conn(name))
}

// Entities returns a client of a site's entity service.
func (c *Cluster) Entities(name string) samyav1.EntityServiceClient {
	return samyav1.NewEntityServiceClient(c.Conn(name))
}

// Admin returns a client of a site's cluster service.
func (c *Cluster) Admin(name string) samyav1.ClusterServiceClient {
	return samyav1.NewClusterServiceClient(c.Conn(name))
}

// DataDir returns the directory of a site's data.
func (c *Cluster) DataDir(name string) string { return filepath.Join(c.dir, name) }

// Create creates an entity and waits until all running sites have it.
func (c *Cluster) Create(entity string, limit int64) {
	c.t.Helper()
	Eventually(c.t, "creation of "+entity, func() error {
		_, err := c.Entities(c.names[0]).CreateEntity(c.t.Context(), &samyav1.CreateEntityRequest{
			Name: entity, Limit: limit, RequestId: "create-" + entity,
		})
		return err
	})
	for _, n := range c.names {
		if c.at(n) == nil {
			continue
		}
		Eventually(c.t, entity+" at "+n, func() error {
			_, err := c.Entities(n).GetEntity(c.t.Context(), &samyav1.GetEntityRequest{Name: entity})
			return err
		})
	}
}

// Books adds up the shares of an entity at all running sites.
func (c *Cluster) Books(entity string) *samyav1.Usage {
	c.t.Helper()
	sum := &samyav1.Usage{}
	for _, n := range c.names {
		if c.at(n) == nil {
			continue
		}
		resp, err := c.Entities(n).GetEntity(c.t.Context(), &samyav1.GetEntityRequest{Name: entity})
		if err != nil {
			c.t.Fatalf("reading %s at %s: %v", entity, n, err)
		}
		sum.Available += resp.GetUsage().GetAvailable()
		sum.Acquired += resp.GetUsage().GetAcquired()
		sum.InTransit += resp.GetUsage().GetInTransit()
		sum.Shares = append(sum.Shares, resp.GetUsage().GetShares()...)
	}
	return sum
}

// Eventually polls until check returns nil, for at most 30 seconds.
func Eventually(tb testing.TB, what string, check func() error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 30*time.Second)
	defer cancel()
	for {
		err := check()
		if err == nil {
			return
		}
		if wan.Wait(ctx, 20*time.Millisecond) != nil {
			tb.Fatalf("%s: still %v", what, err)
		}
	}
}

// FreePort returns a loopback address with a port that was free just now, and which no
// other test process gets.
func FreePort(tb testing.TB) string {
	tb.Helper()
	addrs, err := proc.FreePorts(tb.Context(), 1)
	if err != nil {
		tb.Fatalf("looking for a free port: %v", err)
	}
	return addrs[0]
}
