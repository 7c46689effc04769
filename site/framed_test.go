package site_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/samya-db/samya/client"
	"github.com/samya-db/samya/internal/access"
	"github.com/samya-db/samya/internal/credtest"
	"github.com/samya-db/samya/internal/tlsconf"
	"github.com/samya-db/samya/site"
	"github.com/samya-db/samya/site/sitetest"
)

// TestClientOverFrames: the stream of a client goes over frames, in clear and with TLS. A
// caller's role holds there as on gRPC.
func TestClientOverFrames(t *testing.T) {
	set := credtest.New(t)
	secured := func(c *site.Config) {
		c.TLS = set.Open(set.Issue(tlsconf.Site, "us", time.Hour))
		g, err := access.Open(access.Config{File: set.AccessFile(), TLS: c.TLS, Relays: true})
		if err != nil {
			t.Fatal(err)
		}
		c.Access, c.Restricted = g, true
	}
	for name, tc := range map[string]struct {
		tweak  func(*site.Config)
		caller string
		denied error
	}{
		"in clear": {nil, "", nil},
		"with TLS": {secured, "client", client.ErrPermissionDenied},
	} {
		t.Run(name, func(t *testing.T) {
			us := runAlone(t, tc.tweak)
			as := func(caller string) *client.Client {
				cfg := client.Config{Targets: []client.Target{{Address: us.GRPCAddr()}}, FixedTargets: true}
				if caller != "" {
					security, err := client.TLSFiles{CA: set.Believing().CA}.Credentials(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					cfg.Security = security
					cfg.Token = func(context.Context) (string, error) { return credtest.Token(caller), nil }
				}
				cl, err := client.New(cfg)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = cl.Close(context.Background()) })
				return cl
			}
			admin := as(map[bool]string{true: "admin"}[tc.caller != ""])
			for _, entity := range []string{"acme/vm", "zeta/vm"} {
				sitetest.Eventually(t, "creation", func() error { return admin.CreateEntity(t.Context(), entity, 100) })
			}
			caller := as(tc.caller)
			if _, err := caller.Acquire(t.Context(), "acme/vm", 3); err != nil {
				t.Fatal(err)
			}
			if _, err := caller.Acquire(t.Context(), "zeta/vm", 3); !errors.Is(err, tc.denied) {
				t.Errorf("another's entity: %v, want %v", err, tc.denied)
			}
			if n := us.Framed(); n != 1 {
				t.Errorf("%d connections of frames", n)
			}
		})
	}
}

// runAlone runs a site that is a cluster by itself until the test ends.
func runAlone(t *testing.T, tweak func(*site.Config)) *site.Site {
	t.Helper()
	cfg := goodConfig(t.TempDir())
	cfg.Members = []string{cfg.Name}
	if tweak != nil {
		tweak(&cfg)
	}
	s, err := site.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}
