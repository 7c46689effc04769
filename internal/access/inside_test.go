package access_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/samya-db/samya/appmgr/ratelimit"
	"github.com/samya-db/samya/internal/access"
	"github.com/samya-db/samya/internal/credtest"
	"github.com/samya-db/samya/internal/node"
	"github.com/samya-db/samya/internal/tlsconf"
	"github.com/samya-db/samya/site"
	"github.com/samya-db/samya/site/sitetest"
)

// TestSitesAskSites: a site that serves proxies asks another site for the tokens of a limit
// with a home there, by its own certificate. The creation of the limit's template is in the audit log,
// in the name of the proxy.
func TestSitesAskSites(t *testing.T) {
	c := &cluster{t: t, set: credtest.New(t)}
	limits := ratelimit.Settings{Dir: t.TempDir(), Wait: time.Second}
	const rules = "domain: acme\ndescriptors:\n  - key: session\n    rate_limit: {unit: minute, requests_per_unit: 6}\n"
	if err := os.WriteFile(filepath.Join(limits.Dir, "acme.yaml"), []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	gossip, audit := sitetest.FreePort(t), t.TempDir()
	var sites []*site.Site
	for i, name := range []string{"us", "eu"} {
		cfg := node.Config{
			Cluster: "test", Name: name, Region: name, GRPC: "127.0.0.1:0", HTTP: "127.0.0.1:0",
			Gossip: node.Gossip{Bind: "127.0.0.1:0", Join: []string{gossip}}, Preset: "local", Restricted: true,
		}
		if i == 0 {
			cfg.Gossip.Bind = gossip
		}
		cfg.TLS, cfg.Access = c.guard(tlsconf.Site, name, access.Config{Relays: true, Audit: filepath.Join(audit, name)})
		s := c.newSite(cfg, limits, "us", "eu")
		sites = append(sites, s)
		c.run(s.Run)
	}
	// ask asks a site for a session.
	ask := func(s *site.Site, session string) (bool, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		conn := c.dial(s.GRPCAddr(), c.caller("proxy"))
		resp, err := ratelimitv3.NewRateLimitServiceClient(conn).ShouldRateLimit(ctx, &ratelimitv3.RateLimitRequest{
			Domain: "acme", Descriptors: []*commonv3.RateLimitDescriptor{{Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: "session", Value: session}}}},
		})
		return resp.GetOverallCode() == ratelimitv3.RateLimitResponse_OK, err
	}
	for _, s := range sites {
		sitetest.Eventually(t, "a decision", func() error {
			_, err := ask(s, "setup")
			return err
		})
	}
	// Only one of the sites is the home of a session: both let requests pass.
	for _, session := range []string{"a", "b", "c"} {
		for i, s := range sites {
			sitetest.Eventually(t, "a request that passes", func() error {
				ok, err := ask(s, session)
				if err == nil && !ok {
					err = fmt.Errorf("session %s does not pass at site %d", session, i)
				}
				return err
			})
		}
	}
	lines := ""
	for _, name := range []string{"us", "eu"} {
		b, err := os.ReadFile(filepath.Join(audit, name))
		if err != nil {
			t.Fatal(err)
		}
		lines += string(b)
	}
	for _, want := range []string{`"method":"/samya.v1.EntityService/CreateEntity"`, `"caller":"proxy"`, `"via":"site/`, `"entity":"ratelimit/acme/session/minute-keys"`} {
		if !strings.Contains(lines, want) {
			t.Errorf("the audit log has no %s:\n%s", want, lines)
		}
	}
}
