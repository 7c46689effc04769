package access_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/samya-db/samya/appmgr"
	"github.com/samya-db/samya/appmgr/ratelimit"
	"github.com/samya-db/samya/client"
	"github.com/samya-db/samya/internal/access"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/credtest"
	"github.com/samya-db/samya/internal/node"
	"github.com/samya-db/samya/internal/tlsconf"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site"
	"github.com/samya-db/samya/site/sitetest"
)

// cluster is a site and an app manager, both with TLS and an access file.
type cluster struct {
	t       testing.TB
	set     *credtest.Set
	site    *site.Site
	manager *appmgr.Manager
	// guards and stores are of the site and the app manager; tests make them look at
	// their files.
	guards []*access.Guard
	stores []*tlsconf.Store
	// audit is the site's audit log.
	audit string
}

// start starts a cluster; the limits hold at the site and at the app manager.
func start(tb testing.TB, limits access.Limits) *cluster {
	tb.Helper()
	c := &cluster{t: tb, set: credtest.New(tb), audit: filepath.Join(tb.TempDir(), "audit.log")}
	siteTLS, siteGuard := c.guard(tlsconf.Site, "us", access.Config{Relays: true, Limits: limits, Audit: c.audit})
	gossip := sitetest.FreePort(tb)
	c.site = c.newSite(node.Config{
		Cluster: "test", Name: "us", Region: "us", GRPC: "127.0.0.1:0", HTTP: "127.0.0.1:0",
		Gossip: node.Gossip{Bind: gossip}, Preset: "local", TLS: siteTLS, Access: siteGuard, Restricted: true,
	}, ratelimit.Settings{}, "us")
	managerTLS, managerGuard := c.guard(tlsconf.AppManager, "am", access.Config{Limits: limits})
	var err error
	c.manager, err = appmgr.New(appmgr.Config{
		Config: node.Config{
			Name: "am", Region: "us", Cluster: "test", GRPC: "127.0.0.1:0", HTTP: "127.0.0.1:0",
			Gossip: node.Gossip{Bind: "127.0.0.1:0", Join: []string{gossip}}, Preset: "local",
			TLS: managerTLS, Access: managerGuard, Restricted: true,
		},
		StopTimeout: time.Second,
	})
	if err != nil {
		tb.Fatal(err)
	}
	c.run(c.site.Run)
	c.run(c.manager.Run)
	<-c.manager.Listening()
	// No rate holds for app managers.
	admin := c.dial(c.site.GRPCAddr(), shown{files: c.set.Issue(tlsconf.AppManager, "setup", time.Hour)})
	health := healthv1.NewHealthClient(c.dial(c.manager.GRPCAddr(), shown{files: c.set.Believing()}))
	sitetest.Eventually(tb, "the app manager", func() error {
		h, err := health.Check(tb.Context(), &healthv1.HealthCheckRequest{})
		if err == nil && h.GetStatus() != healthv1.HealthCheckResponse_SERVING {
			return errors.New("it has no site yet")
		}
		return err
	})
	for _, name := range []string{"acme/vm", "acme/gpu", "zeta/vm"} {
		sitetest.Eventually(tb, "creation of "+name, func() error {
			_, err := samyav1.NewEntityServiceClient(admin).CreateEntity(tb.Context(), &samyav1.CreateEntityRequest{Name: name, Limit: 1000, RequestId: "create-" + name})
			return err
		})
	}
	return c
}

// newSite makes a site that also serves Envoy.
func (c *cluster) newSite(cfg node.Config, limits ratelimit.Settings, members ...string) *site.Site {
	c.t.Helper()
	s, err := site.New(site.Config{
		Config: cfg, DataDir: filepath.Join(c.t.TempDir(), cfg.Name), Members: members,
		Front: func(in *site.Inside) (site.Front, error) {
			return appmgr.NewInside(appmgr.Config{Config: cfg, RateLimits: limits, Registry: in.Registry()}, in)
		},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}

// run runs a process until the end of the test.
func (c *cluster) run(process func(context.Context) error) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- process(ctx) }()
	c.t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			c.t.Error(err)
		}
	})
}

func (c *cluster) guard(kind tlsconf.Kind, name string, cfg access.Config) (*tlsconf.Store, *access.Guard) {
	c.t.Helper()
	store := c.set.Open(c.set.Issue(kind, name, time.Hour))
	cfg.TLS, cfg.File = store, c.set.AccessFile()
	g, err := access.Open(cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = g.Close() })
	c.guards, c.stores = append(c.guards, g), append(c.stores, store)
	return store, g
}

// shown is the credentials that a caller shows.
type shown struct {
	files         tlsconf.Files
	authorization string
	plain         bool
}

// caller shows the token of a caller in the access file.
func (c *cluster) caller(name string) shown {
	return shown{files: c.set.Believing(), authorization: "Bearer " + credtest.Token(name)}
}

// dial connects to a listener of gRPC.
func (c *cluster) dial(addr string, s shown) *grpc.ClientConn {
	c.t.Helper()
	security := grpc.WithTransportCredentials(insecure.NewCredentials())
	if !s.plain {
		security = grpc.WithTransportCredentials(c.set.Open(s.files).DialCredentials(""))
	}
	opts := []grpc.DialOption{security, grpc.WithNoProxy(), grpc.WithDisableRetry()}
	if s.authorization != "" {
		opts = append(opts, grpc.WithPerRPCCredentials(header(s.authorization)))
	}
	conn, err := grpc.NewClient("passthrough:///"+addr, opts...)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { conn.Close() })
	return conn
}

type header string

func (h header) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": string(h)}, nil
}
func (header) RequireTransportSecurity() bool { return false }

// web is a client of HTTP that shows credentials.
func (c *cluster) web(s shown) *http.Client {
	c.t.Helper()
	transport := &http.Transport{}
	if !s.plain {
		transport.DialTLSContext = c.set.Open(s.files).DialHTTP("")
	}
	c.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// request makes a request of HTTP and returns the reason of its refusal, or "".
func (c *cluster) request(web *http.Client, s shown, addr, method, path, body string) (apierr.Reason, string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	scheme := "https://"
	if s.plain {
		scheme = "http://"
	}
	r, err := http.NewRequestWithContext(ctx, method, scheme+addr+path, bytes.NewReader([]byte(body)))
	if err != nil {
		c.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if s.authorization != "" {
		r.Header.Set("Authorization", s.authorization)
	}
	resp, err := web.Do(r)
	if err != nil {
		return "", "", err
	}
	defer resp.Body.Close()
	b := make([]byte, 1<<16)
	// A watch has no end: its first bytes are enough.
	n, err := io.ReadAtLeast(resp.Body, b, 1)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", "", err
	}
	if answer := string(b[:n]); s.plain && strings.HasPrefix(answer, "Client sent an HTTP request to an HTTPS server.") {
		return "", "", errors.New(answer)
	}
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		return apierr.Unauthenticated, string(b[:n]), nil
	case http.StatusForbidden:
		return apierr.PermissionDenied, string(b[:n]), nil
	}
	return "", string(b[:n]), nil
}

// reason is why a call of gRPC was refused for its caller, or "". An error means that the
// connection failed.
func reason(err error) (apierr.Reason, error) {
	switch st := status.Convert(err); st.Code() {
	case codes.Unauthenticated:
		return apierr.Unauthenticated, nil
	case codes.PermissionDenied:
		return apierr.PermissionDenied, nil
	case codes.Unavailable:
		if e := apierr.FromGRPC(err); len(st.Details()) == 0 {
			return "", e
		}
	}
	return "", nil
}

// sdk is a client of the SDK.
func (c *cluster) sdk(addr, caller string) *client.Client {
	c.t.Helper()
	security, err := client.TLSFiles{CA: c.set.Believing().CA}.Credentials(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	cl, err := client.New(client.Config{
		Targets: []client.Target{{Address: addr}}, Security: security,
		Token: func(context.Context) (string, error) { return credtest.Token(caller), nil },
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = cl.Close(context.Background()) })
	return cl
}
