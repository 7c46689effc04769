package client_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samya-db/samya/client"
	"github.com/samya-db/samya/internal/access"
	"github.com/samya-db/samya/internal/credtest"
	"github.com/samya-db/samya/internal/node"
	"github.com/samya-db/samya/internal/tlsconf"
	"github.com/samya-db/samya/site"
	"github.com/samya-db/samya/site/sitetest"
)

// tlsOps is the number of operations of a turn.
const tlsOps = 20_000

// BenchmarkTLS compares durable acquires through a Client's stream at two sites: a site
// in clear, and a site with TLS and an access file. The caller at the second site has a
// single prefix. In each iteration both sites have a turn, in changing order, so that
// other work of the machine meets both. The loss is the median over the pairs. The
// processor time is the median of both ends, for each acquire.
func BenchmarkTLS(b *testing.B) {
	set := credtest.New(b)
	as := func(name string) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { return credtest.Token(name), nil }
	}
	security, err := client.TLSFiles{CA: set.Believing().CA}.Credentials(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	inClear := aloneSite(b, nil)
	guarded := aloneSite(b, func(c *site.Config) {
		c.TLS = set.Open(set.Issue(tlsconf.Site, "us", time.Hour))
		g, err := access.Open(access.Config{File: set.AccessFile(), TLS: c.TLS, Relays: true})
		if err != nil {
			b.Fatal(err)
		}
		c.Access, c.Restricted = g, true
	})
	plainTarget, tlsTarget := []client.Target{{Address: inClear.GRPCAddr()}}, []client.Target{{Address: guarded.GRPCAddr()}}
	plain := newClient(b, client.Config{Targets: plainTarget})
	encrypted := newClient(b, client.Config{Targets: tlsTarget, Security: security, Token: as("client")})
	for _, c := range []*client.Client{plain, newClient(b, client.Config{Targets: tlsTarget, Security: security, Token: as("admin")})} {
		sitetest.Eventually(b, "creation", func() error { return c.CreateEntity(b.Context(), "acme/vm", 1<<50) })
	}
	for _, callers := range []int{64, 1024} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			var losses, inClear, withTLS []float64
			var busy [2][]float64
			for i := range b.N {
				var took [2]time.Duration
				for turn := range 2 {
					which := (i + turn) % 2
					before := cpu(b)
					took[which] = acquires(b, []*client.Client{plain, encrypted}[which], callers)
					busy[which] = append(busy[which], float64(cpu(b)-before)/tlsOps)
				}
				inClear = append(inClear, tlsOps/took[0].Seconds())
				withTLS = append(withTLS, tlsOps/took[1].Seconds())
				losses = append(losses, 100*(1-took[0].Seconds()/took[1].Seconds()))
			}
			b.ReportMetric(median(inClear), "clear-ops/s")
			b.ReportMetric(median(withTLS), "tls-ops/s")
			b.ReportMetric(median(losses), "%loss")
			b.ReportMetric(median(busy[0]), "clear-cpu-ns")
			b.ReportMetric(median(busy[1]), "tls-cpu-ns")
		})
	}
}

// aloneSite runs a site that is a cluster by itself.
func aloneSite(b *testing.B, tweak func(*site.Config)) *site.Site {
	b.Helper()
	cfg := site.Config{
		Config: node.Config{
			Cluster: "test", Name: "us", Region: "us", GRPC: "127.0.0.1:0", HTTP: "127.0.0.1:0",
			Gossip: node.Gossip{Bind: "127.0.0.1:0"}, Preset: "local",
		},
		DataDir: filepath.Join(b.TempDir(), "us"), Members: []string{"us"},
	}
	if tweak != nil {
		tweak(&cfg)
	}
	s, err := site.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	b.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
	return s
}

// acquires makes tlsOps acquires by callers at once, and returns how long they took.
func acquires(b *testing.B, c *client.Client, callers int) time.Duration {
	b.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for range callers {
		wg.Go(func() {
			for next.Add(1) <= tlsOps {
				if _, err := c.Acquire(b.Context(), "acme/vm", 1); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return time.Since(began)
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
