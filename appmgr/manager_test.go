package appmgr

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	grpchealth "google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionv1alpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/appmgr/fake"
	"github.com/samya-db/samya/appmgr/route"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/apierr/refuse"
	"github.com/samya-db/samya/internal/membership"
	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/node"
	"github.com/samya-db/samya/internal/preset"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// realSite serves a fakeSite on loopback and gossips.
func realSite(t *testing.T, n string) (f *fake.Site, ms *membership.Membership) {
	t.Helper()
	f = &fake.Site{Name: n, Members: []string{n}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer()
	samyav1.RegisterTokenServiceServer(srv, f)
	samyav1.RegisterEntityServiceServer(srv, f)
	samyav1.RegisterClusterServiceServer(srv, f)
	healthpb.RegisterHealthServer(srv, grpchealth.NewServer())
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(srv.Stop)
	ms, err = membership.Start(t.Context(), membership.Config{
		Self: membership.Node{Name: n, Region: n, Role: membership.RoleSite, Cluster: "test", GRPC: l.Addr().String()},
		// By itself it takes half a minute to find out that a member is gone.
		Bind: "127.0.0.1:0", Preset: preset.WAN,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ms.Close() })
	return f, ms
}

// running starts an app manager on loopback that finds its site by gossip, and waits
// until it is ready. stop stops the app manager and returns the result of Run.
func running(t *testing.T, seed string) (m *Manager, stop func() error) {
	t.Helper()
	m, err := New(Config{
		Config: node.Config{
			Name: "am", Region: "us", Cluster: "test", HTTP: "127.0.0.1:0", GRPC: "127.0.0.1:0",
			Gossip: node.Gossip{Bind: "127.0.0.1:0", Join: []string{seed}}, Preset: preset.Local,
		},
		ProbeInterval: 50 * time.Millisecond, StopTimeout: 5 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	select {
	case <-m.Listening():
	case err := <-done:
		t.Fatal(err)
	}
	stopped := false
	stop = func() error {
		stopped = true
		cancel()
		return <-done
	}
	t.Cleanup(func() {
		if !stopped {
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
	})
	deadline := time.After(20 * time.Second)
	for tick := time.Tick(20 * time.Millisecond); ; {
		resp, err := http.Get("http://" + m.HTTPAddr() + "/readyz")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return m, stop
			}
		}
		select {
		case <-deadline:
			t.Fatalf("never ready: %v", err)
		case <-tick:
		}
	}
}

func dial(t *testing.T, addr string) *grpc.ClientConn {
	t.Helper()
	c, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestRun(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	site, gossip := realSite(t, "us")
	m, stop := running(t, gossip.Addr())
	conn := dial(t, m.GRPCAddr())
	ctx := t.Context()

	tokens := samyav1.NewTokenServiceClient(conn)
	out, err := tokens.Acquire(ctx, &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 3})
	if err != nil || out.GetTokens() != 3 || out.GetSite() != "us" || len(out.GetRequestId()) != 26 {
		t.Errorf("acquire: %v, %v", out, err)
	}
	if rel, err := tokens.Release(ctx, &samyav1.ReleaseRequest{Entity: "acme/vm", Tokens: 3, RequestId: "r"}); err != nil || rel.GetLeft() != 9 {
		t.Errorf("release: %v, %v", rel, err)
	}
	resp, err := http.Post("http://"+m.HTTPAddr()+"/v1/entities/acme%2Fvm:acquire", "application/json", strings.NewReader(`{"tokens":2,"request_id":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if want := `{"entity":"acme/vm","tokens":2,"request_id":"x","site":"us","left":7}` + "\n"; string(body) != want {
		t.Errorf("acquire over HTTP: %d %s", resp.StatusCode, body)
	}

	h, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
	if err != nil || h.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("health: %v, %v", h, err)
	}
	for _, name := range []string{"samya.v1.TokenService", "samya.v1.ClusterService", "envoy.service.ratelimit.v3.RateLimitService", "grpc.health.v1.Health"} {
		h, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: name})
		if err != nil || h.GetStatus() != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("health of %s: %v, %v", name, h, err)
		}
	}
	if _, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: "samya.peer.v1.PeerService"}); status.Code(err) != codes.NotFound {
		t.Errorf("health of a service of sites: %v", err)
	}
	for what, list := range map[string]func() (any, error){
		"v1": func() (any, error) {
			s, err := reflectionv1.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
			if err != nil {
				return nil, err
			}
			if err := s.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}}); err != nil {
				return nil, err
			}
			r, err := s.Recv()
			return r.GetListServicesResponse(), errors.Join(err, s.CloseSend())
		},
		"v1alpha": func() (any, error) {
			s, err := reflectionv1alpha.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
			if err != nil {
				return nil, err
			}
			//nolint:staticcheck // the old version is served for old tools
			if err := s.Send(&reflectionv1alpha.ServerReflectionRequest{MessageRequest: &reflectionv1alpha.ServerReflectionRequest_ListServices{}}); err != nil {
				return nil, err
			}
			r, err := s.Recv()
			return r.GetListServicesResponse(), errors.Join(err, s.CloseSend()) //nolint:staticcheck // as above
		},
	} {
		got, err := list()
		if s, ok := got.(interface{ String() string }); err != nil || !ok || !strings.Contains(s.String(), "samya.v1.TokenService") {
			t.Errorf("reflection %s: %v, %v", what, got, err)
		}
	}

	// A request under way ends in peace, new ones are refused, and the process
	// leaves nothing behind.
	hold, entered := make(chan struct{}), make(chan struct{})
	site.OnAcquire = func(context.Context, *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
		close(entered)
		<-hold
		return &samyav1.AcquireResponse{Site: "us"}, nil
	}
	last := make(chan error)
	go func() {
		_, err := tokens.Acquire(ctx, &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 1})
		last <- err
	}()
	<-entered
	time.AfterFunc(100*time.Millisecond, func() { close(hold) })
	if err := stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
	if err := <-last; err != nil {
		t.Errorf("the request under way: %v", err)
	}
	if _, err := net.Dial("tcp", m.HTTPAddr()); err == nil {
		t.Error("still listening")
	}
	// The app manager has announced its leave: the site need not find out by probing,
	// which would take half a minute.
	for deadline := time.After(20 * time.Second); ; {
		changed := gossip.Changed()
		if n := gossip.Nodes()[0]; n.Role == membership.RoleAppMgr && n.Health == membership.Dead {
			break
		}
		select {
		case <-changed:
			continue
		case <-deadline:
			t.Fatalf("left without a word: %+v", gossip.Nodes())
		}
	}
}

func TestGRPCRefusals(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	site, gossip := realSite(t, "us")
	site.OnAcquire = func(_ context.Context, in *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
		return nil, refuse.NoTokens(in.GetEntity(), "us", in.GetTokens(), 2, 300*time.Millisecond)
	}
	m, _ := running(t, gossip.Addr())
	conn := dial(t, m.GRPCAddr())
	tokens, entities := samyav1.NewTokenServiceClient(conn), samyav1.NewEntityServiceClient(conn)
	acquire := func(r *samyav1.AcquireRequest) func(context.Context) error {
		return func(ctx context.Context) error { _, err := tokens.Acquire(ctx, r); return err }
	}
	for _, c := range []struct {
		what   string
		do     func(context.Context) error
		code   codes.Code
		reason apierr.Reason
		field  string
	}{
		{"out of tokens", acquire(&samyav1.AcquireRequest{Entity: "a", Tokens: 5}), codes.ResourceExhausted, apierr.OutOfTokens, ""},
		{"zero tokens", acquire(&samyav1.AcquireRequest{Entity: "a"}), codes.InvalidArgument, apierr.InvalidField, "tokens"},
		{"negative tokens", acquire(&samyav1.AcquireRequest{Entity: "a", Tokens: -1}), codes.InvalidArgument, apierr.InvalidField, "tokens"},
		{"2^53 tokens", acquire(&samyav1.AcquireRequest{Entity: "a", Tokens: name.MaxTokens + 1}), codes.InvalidArgument, apierr.InvalidField, "tokens"},
		{"bad entity", acquire(&samyav1.AcquireRequest{Entity: "a//b", Tokens: 1}), codes.InvalidArgument, apierr.InvalidField, "entity"},
		{"bad id", acquire(&samyav1.AcquireRequest{Entity: "a", Tokens: 1, RequestId: "\n"}), codes.InvalidArgument, apierr.InvalidField, "request_id"},
		{"long wait", acquire(&samyav1.AcquireRequest{Entity: "a", Tokens: 1, Wait: durationpb.New(time.Hour)}), codes.InvalidArgument, apierr.InvalidField, "wait"},
		{"wait beyond all", acquire(&samyav1.AcquireRequest{Entity: "a", Tokens: 1, Wait: &durationpb.Duration{Seconds: 1 << 62}}), codes.InvalidArgument, apierr.InvalidField, "wait"},
		{"unknown site", acquire(&samyav1.AcquireRequest{Entity: "a", Tokens: 1, Site: "mars"}), codes.InvalidArgument, apierr.InvalidField, "site"},
		{"message too large", acquire(&samyav1.AcquireRequest{Entity: strings.Repeat("a", 16*defaultMaxBody), Tokens: 1}), codes.ResourceExhausted, apierr.BodyTooLarge, ""},
		{"unknown entity", func(ctx context.Context) error {
			_, err := entities.GetEntity(ctx, &samyav1.GetEntityRequest{Name: "none"})
			return err
		}, codes.NotFound, apierr.EntityNotFound, ""},
		{"duplicate", func(ctx context.Context) error {
			_, err := entities.CreateEntity(ctx, &samyav1.CreateEntityRequest{Name: "taken", Limit: 1})
			return err
		}, codes.AlreadyExists, apierr.EntityExists, ""},
		{"version", func(ctx context.Context) error {
			_, err := entities.UpdateEntity(ctx, &samyav1.UpdateEntityRequest{Name: "a", Limit: 1, ExpectedVersion: 2})
			return err
		}, codes.FailedPrecondition, apierr.VersionMismatch, ""},
		{"version beyond all", func(ctx context.Context) error {
			_, err := entities.DeleteEntity(ctx, &samyav1.DeleteEntityRequest{Name: "a", ExpectedGeneration: 1 << 60})
			return err
		}, codes.InvalidArgument, apierr.InvalidField, "expected_generation"},
		{"unknown method", func(ctx context.Context) error {
			return conn.Invoke(ctx, "/samya.v1.TokenService/Borrow", &samyav1.AcquireRequest{}, &samyav1.AcquireResponse{})
		}, codes.Unimplemented, apierr.RouteNotFound, ""},
		{"unknown service", func(ctx context.Context) error {
			return conn.Invoke(ctx, "/x.Y/Z", &samyav1.AcquireRequest{}, &samyav1.AcquireResponse{})
		}, codes.Unimplemented, apierr.RouteNotFound, ""},
	} {
		err := c.do(t.Context())
		e := apierr.FromGRPC(err)
		if e == nil || status.Code(err) != c.code || e.Reason != c.reason {
			t.Errorf("%s: %v, want %s %s", c.what, err, c.code, c.reason)
			continue
		}
		if c.field != "" && (len(e.Violations) != 1 || e.Violations[0].Field != c.field) {
			t.Errorf("%s: %+v", c.what, e.Violations)
		}
		if c.reason == apierr.OutOfTokens && (e.Left == nil || *e.Left != 2 || e.RetryAfter != 300*time.Millisecond || e.Site != "us" || e.RequestID == "") {
			t.Errorf("%s lost details: %+v", c.what, e)
		}
	}

	// The deadline has passed when the app manager looks at the request. A gRPC client
	// would not even send it.
	past, cancel := context.WithTimeout(t.Context(), -1)
	defer cancel()
	_, err := m.limiter.Unary(past, &samyav1.AcquireRequest{}, &grpc.UnaryServerInfo{FullMethod: samyav1.TokenService_Acquire_FullMethodName},
		func(context.Context, any) (any, error) { t.Error("executed"); return nil, nil })
	if status.Code(err) != codes.DeadlineExceeded || !errors.Is(err, apierr.DeadlineExceeded) {
		t.Errorf("expired deadline: %v", err)
	}
}

func TestConfig(t *testing.T) {
	good := func() Config {
		return Config{Config: node.Config{
			Name: "am", Region: "us", Cluster: "test", HTTP: "127.0.0.1:0", GRPC: "127.0.0.1:0",
			Gossip: node.Gossip{Bind: "127.0.0.1:0"},
		}}
	}
	if _, err := New(good()); err != nil {
		t.Fatal(err)
	}
	for field, spoil := range map[string]func(*Config){
		"name":           func(c *Config) { c.Name = "" },
		"region":         func(c *Config) { c.Region = "U" },
		"cluster":        func(c *Config) { c.Cluster = "-" },
		"http":           func(c *Config) { c.HTTP = "8080" },
		"grpc":           func(c *Config) { c.GRPC = "127.0.0.1:99999" },
		"bind":           func(c *Config) { c.Gossip.Bind = "" },
		"max-body":       func(c *Config) { c.MaxBody = -1 },
		"probe-interval": func(c *Config) { c.ProbeInterval = -1 },
		"probe-timeout":  func(c *Config) { c.ProbeTimeout = time.Hour },
		"try-time":       func(c *Config) { c.TryTime = time.Microsecond },
		"preset":         func(c *Config) { c.Preset, c.Directory = "moon", fake.NewRoster[route.SiteInfo]() },
	} {
		cfg := good()
		spoil(&cfg)
		_, err := New(cfg)
		if err == nil || !strings.Contains(err.Error(), field+": ") {
			t.Errorf("bad %s: %v", field, err)
		}
	}
	cfg := good()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cfg.GRPC = l.Addr().String()
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "listen for gRPC") {
		t.Errorf("address in use: %v", err)
	}
}

// TestTimings: a preset sets the timings without a value of their own.
func TestTimings(t *testing.T) {
	for n, want := range map[preset.Name][2]time.Duration{
		"": {time.Second, 2 * time.Second}, preset.Local: {time.Second, 2 * time.Second}, preset.LAN: {500 * time.Millisecond, 500 * time.Millisecond},
	} {
		c := Config{Config: node.Config{Preset: n}, TryTime: 3 * time.Second}.withDefaults()
		if got := [2]time.Duration{c.ProbeInterval, c.ProbeTimeout}; got != want || c.TryTime != 3*time.Second {
			t.Errorf("%q: %v, %v", n, got, c.TryTime)
		}
	}
}
