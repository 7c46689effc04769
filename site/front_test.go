package site_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/membership"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site"
	"github.com/samya-db/samya/site/sitetest"
)

// frontOfTest notes what its site does with it.
type frontOfTest struct {
	inside *site.Inside

	mu  sync.Mutex
	did []string
}

func (f *frontOfTest) note(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.did = append(f.did, what)
}

func (f *frontOfTest) noted() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.did)
}

func (f *frontOfTest) Register(to grpc.ServiceRegistrar) {
	to.RegisterService(&grpc.ServiceDesc{ServiceName: "test.Front"}, nil)
	f.note("registered")
}

func (f *frontOfTest) Run(ctx context.Context, gossip *membership.Membership) {
	f.note("runs with gossip at " + gossip.Addr()[:10])
	<-ctx.Done()
	f.note("ends")
}

func (f *frontOfTest) Close() { f.note("closes") }

// TestFront: a front lives as long as its site, and calls the site within the process.
func TestFront(t *testing.T) {
	f := &frontOfTest{}
	c := sitetest.Start(t, []string{"us"}, func(cfg *site.Config) {
		cfg.Front = func(in *site.Inside) (site.Front, error) {
			f.inside = in
			return f, nil
		}
	})
	c.Create("acme", 10)
	ctx := t.Context()
	if resp, err := f.inside.Acquire(ctx, &samyav1.AcquireRequest{Entity: "acme", Tokens: 7}); err != nil || resp.GetLeft() != 3 || resp.GetSite() != "us" {
		t.Errorf("%v, %v", resp, err)
	}
	if resp, err := f.inside.Release(ctx, &samyav1.ReleaseRequest{Entity: "acme", Tokens: 2}); err != nil || resp.GetLeft() != 5 {
		t.Errorf("%v, %v", resp, err)
	}
	all := func(tokens int64) *samyav1.BatchRequest {
		r := &samyav1.BatchRequest{Atomic: true}
		r.Operations = []*samyav1.Operation{{Operation: &samyav1.Operation_Acquire{Acquire: &samyav1.AcquireRequest{Entity: "acme", Tokens: tokens}}}}
		return r
	}
	if resp, err := f.inside.Batch(ctx, all(4)); err != nil || len(resp.GetResults()) != 1 {
		t.Errorf("%v, %v", resp, err)
	}
	if _, err := f.inside.Batch(ctx, all(11)); apierr.ReasonOf(err) != apierr.ExceedsLimit {
		t.Error(err)
	}
	if _, err := f.inside.Acquire(ctx, &samyav1.AcquireRequest{Entity: "none", Tokens: 1}); apierr.ReasonOf(err) != apierr.EntityNotFound {
		t.Error(err)
	}
	for labels, want := range map[string]float64{"Acquire OK": 1, "Acquire ENTITY_NOT_FOUND": 1, "Release OK": 1, "Batch OK": 1, "Batch EXCEEDS_LIMIT": 1} {
		method, reason, _ := strings.Cut(labels, " ")
		if got := counted(t, f.inside.Registry(), "/samya.v1.TokenService/"+method, reason); got != want {
			t.Errorf("%s: %v are counted", labels, got)
		}
	}

	conn, err := grpc.NewClient("passthrough:///inside", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return f.inside.Dial(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if h, err := healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{}); err != nil || h.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Errorf("%v, %v", h, err)
	}
	if resp, err := samyav1.NewEntityServiceClient(conn).UpdateEntity(ctx, &samyav1.UpdateEntityRequest{Name: "acme", Limit: 20}); err != nil || resp.GetEntity().GetLimit() != 20 {
		t.Errorf("%v, %v", resp, err)
	}
	if got := f.noted(); !slices.Equal(got, []string{"registered", "runs with gossip at 127.0.0.1:"}) {
		t.Errorf("%q", got)
	}
	c.Stop("us")
	if got := f.noted(); !slices.Equal(got[2:], []string{"closes", "ends"}) {
		t.Errorf("%q", got)
	}
}

// counted is the number of requests of a method that a registry counts.
func counted(t *testing.T, registry *prometheus.Registry, method, reason string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "samya_site_requests_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["method"] == method && labels["reason"] == reason {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// TestFrontThatFails: a site does not start without its front.
func TestFrontThatFails(t *testing.T) {
	cfg := site.Config{DataDir: t.TempDir(), Members: []string{"us"}}
	cfg.Cluster, cfg.Name, cfg.Region, cfg.GRPC, cfg.HTTP, cfg.Gossip.Bind = "test", "us", "us", "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	failure := errors.New("no rules")
	cfg.Front = func(*site.Inside) (site.Front, error) { return nil, failure }
	if _, err := site.New(cfg); !errors.Is(err, failure) {
		t.Error(err)
	}
	cfg.Front = nil
	s, err := site.New(cfg)
	if err != nil {
		t.Fatal(err) // the data and the listeners were not let go of
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
