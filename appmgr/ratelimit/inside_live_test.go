package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	quotav3 "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/samya-db/samya/appmgr"
	"github.com/samya-db/samya/appmgr/ratelimit"
	"github.com/samya-db/samya/site"
	"github.com/samya-db/samya/site/sitetest"
)

// insideRules are liveRules, and a limit with a home.
const insideRules = liveRules + `
  - key: session
    rate_limit: {unit: minute, requests_per_unit: 5}
`

// inside are sites that answer proxies themselves.
type inside struct {
	*sitetest.Cluster
	t   testing.TB
	dir string
}

func startInside(tb testing.TB, settings ratelimit.Settings, names ...string) *inside {
	tb.Helper()
	s := &inside{t: tb, dir: tb.TempDir()}
	settings.Dir = s.dir
	s.write(insideRules)
	s.Cluster = sitetest.Start(tb, names, func(c *site.Config) { c.Front = frontOf(c, settings) })
	for _, n := range names {
		sitetest.Eventually(tb, "site "+n, func() error {
			_, err := s.ask(n, "user=setup")
			return err
		})
	}
	return s
}

// frontOf makes the services for Envoy of a site.
func frontOf(c *site.Config, settings ratelimit.Settings) func(*site.Inside) (site.Front, error) {
	shared := c.Config
	return func(in *site.Inside) (site.Front, error) {
		return appmgr.NewInside(appmgr.Config{Config: shared, RateLimits: settings, Registry: in.Registry()}, in)
	}
}

func (s *inside) write(rules string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, "edge.yaml"), []byte(rules), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// ask asks a site about descriptors of one entry each.
func (s *inside) ask(at string, entries ...string) (*ratelimitv3.RateLimitResponse, error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Second)
	defer cancel()
	return ratelimitv3.NewRateLimitServiceClient(s.Conn(at)).ShouldRateLimit(ctx, requestOf(entries...))
}

// passes asks a site about descriptors, and reports whether the request passes.
func (s *inside) passes(at string, entries ...string) bool {
	s.t.Helper()
	out, err := s.ask(at, entries...)
	if err != nil {
		s.t.Errorf("%v at %s: %v", entries, at, err)
	}
	return out.GetOverallCode() == ratelimitv3.RateLimitResponse_OK
}

// fill asks sites in turn until so many requests have passed: tokens may be on their way
// between sites.
func (s *inside) fill(want int, at []string, entries ...string) {
	s.t.Helper()
	passed := 0
	sitetest.Eventually(s.t, fmt.Sprintf("%d requests that pass", want), func() error {
		for passed < want {
			if !s.passes(at[passed%len(at)], entries...) {
				return fmt.Errorf("%d have passed", passed)
			}
			passed++
		}
		return nil
	})
}

// TestInside asks three sites, without an app manager: all together grant the limit exactly,
// and a denied request takes nothing.
func TestInside(t *testing.T) {
	if time.Until(time.Now().UTC().Truncate(24*time.Hour).Add(24*time.Hour)) < 2*time.Minute {
		t.Skip("the day ends in a moment, and its windows")
	}
	all := []string{"us", "eu", "as"}
	s := startInside(t, ratelimit.Settings{Wait: time.Second}, all...)
	t.Run("exact", func(t *testing.T) {
		var passed, asked atomic.Int64
		var callers sync.WaitGroup
		for i := range 9 {
			callers.Go(func() {
				for passed.Load() < 50 && asked.Add(1) < 2000 {
					if s.passes(all[i%3], "user=alice") {
						passed.Add(1)
					}
				}
			})
		}
		callers.Wait()
		for _, at := range all {
			if passed.Load() != 50 || s.passes(at, "user=alice") {
				t.Errorf("%d of %d passed; then %s was asked", passed.Load(), asked.Load(), at)
			}
		}
	})
	t.Run("all or none", func(t *testing.T) {
		for _, at := range all {
			if s.passes(at, "user=bob", "banned=x") {
				t.Error("a banned request passes")
			}
		}
		s.fill(30, all, "user=bob", "path=/api/1")
		for _, at := range all {
			if s.passes(at, "user=bob", "path=/api/2") {
				t.Error("the paths have no limit together")
			}
		}
		s.fill(20, all, "user=bob")
		for _, at := range all {
			if s.passes(at, "user=bob") {
				t.Error("more than 50 requests of bob pass")
			}
		}
	})
	t.Run("a key at its home", func(t *testing.T) {
		// Two of the sites have none of the five tokens, and ask the third.
		for _, at := range all {
			s.fill(1, []string{at}, "session=a")
		}
		passed := 0
		for began := time.Now(); time.Since(began) < 20*time.Second; {
			window := time.Now().Truncate(time.Minute)
			session := fmt.Sprintf("session=%d", window.Unix())
			passed = 0
			for i := range 12 {
				if s.passes(all[i%3], session) {
					passed++
				}
			}
			if time.Now().Truncate(time.Minute).Equal(window) {
				break // else two windows have given tokens
			}
		}
		if passed != 5 {
			t.Errorf("%d requests pass", passed)
		}
	})
	t.Run("quotas", func(t *testing.T) {
		stream, err := quotav3.NewRateLimitQuotaServiceClient(s.Conn("us")).StreamRateLimitQuotas(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		proxy := &quotaStream{t, stream}
		got := proxy.report("edge", map[string]string{"user": "dave"}).GetRateLimitStrategy().GetTokenBucket()
		if got.GetMaxTokens() == 0 {
			t.Errorf("%v", got)
		}
		if got := proxy.report("edge", map[string]string{"banned": "x"}).GetRateLimitStrategy().GetBlanketRule(); got != typev3.RateLimitStrategy_DENY_ALL {
			t.Errorf("%v", got)
		}
	})
	t.Run("reload", func(t *testing.T) {
		s.write(strings.Replace(insideRules, "50", "52", 1))
		s.fill(2, all, "user=alice")
		for _, at := range all {
			if s.passes(at, "user=alice") {
				t.Error("more than 52 requests of alice pass")
			}
		}
	})
	t.Run("a fault of the request", func(t *testing.T) {
		_, err := s.ask("us")
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "descriptors: missing") {
			t.Error(err)
		}
	})
}

// TestInsideAlone: a site that is cut off decides by the tokens it has, and a site that
// stops says so.
func TestInsideAlone(t *testing.T) {
	s := startInside(t, ratelimit.Settings{Wait: 50 * time.Millisecond}, "us", "eu", "as")
	s.fill(1, []string{"us"}, "user=carol")
	s.Stop("eu")
	s.Stop("as")
	passed := 0
	for range 60 {
		// The first requests may wait for the lost sites, and have no answer in time.
		out, err := s.ask("us", "user=carol")
		if err == nil && out.GetOverallCode() == ratelimitv3.RateLimitResponse_OK {
			passed++
		}
	}
	if passed < 10 || passed >= 49 {
		t.Errorf("%d requests pass at a site with a third of 50", passed)
	}
	us := s.Conn("us")
	s.Stop("us")
	if _, err := ratelimitv3.NewRateLimitServiceClient(us).ShouldRateLimit(context.Background(), requestOf("user=carol")); err == nil {
		t.Error("a stopped site decides")
	}
}

// TestInsideFaults: a site whose rules have a fault does not start.
func TestInsideFaults(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte("domain: edge\ndescriptors: 7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		settings ratelimit.Settings
		want     string
	}{
		{ratelimit.Settings{Dir: dir}, "a.yaml:2"},
		{ratelimit.Settings{Dir: dir, Wait: -1}, "ratelimit-wait"},
	} {
		cfg := site.Config{DataDir: t.TempDir(), Members: []string{"us"}}
		cfg.Cluster, cfg.Name, cfg.Region, cfg.GRPC, cfg.HTTP, cfg.Gossip.Bind = "test", "us", "us", "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
		cfg.Front = frontOf(&cfg, c.settings)
		s, err := site.New(cfg)
		if err == nil {
			err = errors.Join(errors.New("it starts"), s.Close())
		}
		if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// BenchmarkInside measures a decision in the process of a site, without gRPC.
func BenchmarkInside(b *testing.B) {
	var front *appmgr.Inside
	settings := ratelimit.Settings{Dir: b.TempDir(), Wait: ratelimit.DefaultWait}
	if err := os.WriteFile(filepath.Join(settings.Dir, "edge.yaml"), []byte("domain: edge\ndescriptors:\n  - key: hot\n    rate_limit: {unit: minute, requests_per_unit: 4000000000}\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	sitetest.Start(b, []string{"us"}, func(c *site.Config) {
		shared := c.Config
		c.Front = func(in *site.Inside) (site.Front, error) {
			var err error
			front, err = appmgr.NewInside(appmgr.Config{Config: shared, RateLimits: settings, Registry: in.Registry()}, in)
			return front, err
		}
	})
	in := requestOf("hot=key")
	sitetest.Eventually(b, "a decision", func() error {
		_, err := front.RateLimits().ShouldRateLimit(b.Context(), in)
		return err
	})
	b.ReportAllocs()
	b.SetParallelism(32)
	b.ResetTimer()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if _, err := front.RateLimits().ShouldRateLimit(context.Background(), in); err != nil {
				b.Error(err)
			}
		}
	})
}
