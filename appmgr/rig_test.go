package appmgr

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	grpchealth "google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/health"
	"github.com/samya-db/samya/internal/node"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// oneWay holds half the round trips of the test network from region us.
var oneWay = map[string]time.Duration{"us": 0, "eu": 66 * time.Millisecond, "au": 80 * time.Millisecond}

// fakeSite is a site in this process, served over a pipe. A test sets its answers.
type fakeSite struct {
	samyav1.UnimplementedTokenServiceServer
	samyav1.UnimplementedEntityServiceServer
	samyav1.UnimplementedClusterServiceServer

	name      string
	members   []string
	unaryOnly bool // it serves no streams
	// health answers probes; nil: the site serves.
	health healthpb.HealthServer
	// ahead is how far the site's clock is ahead.
	ahead time.Duration
	// arrived gets the requests that come by unary calls; nil: none.
	arrived func(any)

	acquire func(context.Context, *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error)
	release func(context.Context, *samyav1.ReleaseRequest) (*samyav1.ReleaseResponse, error)
	batch   batchFunc
	create  func(context.Context, *samyav1.CreateEntityRequest) (*samyav1.CreateEntityResponse, error)
	update  func(context.Context, *samyav1.UpdateEntityRequest) (*samyav1.UpdateEntityResponse, error)
	get     func(context.Context, *samyav1.GetEntityRequest) (*samyav1.GetEntityResponse, error)
	list    func() error
	leases  func(*samyav1.ListLeasesRequest) error
	calls   atomic.Int64 // acquires and creates that arrived

	mu    sync.Mutex
	watch func(*samyav1.WatchEntityRequest, samyav1.EntityService_WatchEntityServer) error
	pipe  *bufconn.Listener
	conns []net.Conn
	srv   *grpc.Server
}

func (f *fakeSite) Acquire(ctx context.Context, r *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
	f.calls.Add(1)
	if f.acquire != nil {
		return f.acquire(ctx, r)
	}
	resp := &samyav1.AcquireResponse{Tokens: r.GetTokens(), RequestId: r.GetRequestId(), Site: f.name, Left: 7}
	if l := r.GetLease(); l != nil {
		resp.Lease = &samyav1.Lease{
			Name: f.name + "/" + r.GetRequestId(), Entity: r.GetEntity(), Tokens: r.GetTokens(), Remaining: l.GetTtl(), Holder: l.GetHolder(),
		}
	}
	return resp, nil
}

func (f *fakeSite) Release(ctx context.Context, r *samyav1.ReleaseRequest) (*samyav1.ReleaseResponse, error) {
	if f.release != nil {
		return f.release(ctx, r)
	}
	return &samyav1.ReleaseResponse{Tokens: r.GetTokens(), RequestId: r.GetRequestId(), Site: f.name, Left: 9, Parked: r.GetLease() != "" && !strings.HasPrefix(r.GetLease(), f.name+"/")}, nil
}

func (f *fakeSite) RenewLease(_ context.Context, r *samyav1.RenewLeaseRequest) (*samyav1.RenewLeaseResponse, error) {
	if r.GetLease() == f.name+"/none" {
		return nil, apierr.New(apierr.LeaseNotFound, "no such lease")
	}
	return &samyav1.RenewLeaseResponse{Lease: &samyav1.Lease{
		Name: r.GetLease(), Entity: "acme/vm", Tokens: 3, Remaining: r.GetTtl(), Holder: "h",
	}}, nil
}

func (f *fakeSite) CommitLease(_ context.Context, r *samyav1.CommitLeaseRequest) (*samyav1.CommitLeaseResponse, error) {
	if r.GetLease() == f.name+"/none" {
		return nil, apierr.New(apierr.LeaseNotFound, "no such lease")
	}
	return &samyav1.CommitLeaseResponse{Tokens: r.GetTokens(), Returned: 1, RequestId: r.GetRequestId(), Site: f.name}, nil
}

// leasesEach is the number of leases at each fake site.
const leasesEach = 5

func (f *fakeSite) ListLeases(_ context.Context, r *samyav1.ListLeasesRequest) (*samyav1.ListLeasesResponse, error) {
	if f.leases != nil {
		if err := f.leases(r); err != nil {
			return nil, err
		}
	}
	after, err := strconv.Atoi(cmp.Or(r.GetPageToken(), "0"))
	if err != nil {
		return nil, apierr.Invalid("page_token", "bad")
	}
	resp := &samyav1.ListLeasesResponse{}
	for n := after + 1; n <= leasesEach; n++ {
		if len(resp.GetLeases()) == int(r.GetPageSize()) {
			resp.NextPageToken = strconv.Itoa(n - 1)
			break
		}
		resp.Leases = append(resp.Leases, &samyav1.Lease{
			Name: f.name + "/" + strconv.Itoa(n), Entity: "acme/vm", Tokens: 2, Remaining: durationpb.New(time.Second), Holder: r.GetHolder(),
		})
	}
	return resp, nil
}

func (f *fakeSite) CreateEntity(ctx context.Context, r *samyav1.CreateEntityRequest) (*samyav1.CreateEntityResponse, error) {
	f.calls.Add(1)
	if f.create != nil {
		return f.create(ctx, r)
	}
	if r.GetName() == "taken" {
		return nil, apierr.Exists("taken")
	}
	return &samyav1.CreateEntityResponse{Entity: &samyav1.Entity{
		Name: r.GetName(), Limit: r.GetLimit(), Generation: 1, Version: 1, Parent: r.GetParent(),
	}}, nil
}

func (f *fakeSite) MoveEntity(_ context.Context, r *samyav1.MoveEntityRequest) (*samyav1.MoveEntityResponse, error) {
	switch r.GetParent() {
	case "none":
		return nil, apierr.NoParent(r.GetName(), "none")
	case "below":
		return nil, apierr.Invalid("parent", "stands below it")
	}
	return &samyav1.MoveEntityResponse{Entity: &samyav1.Entity{
		Name: r.GetName(), Limit: 9, Generation: max(1, r.GetExpectedGeneration()), Version: 1, Parent: r.GetParent(), Children: 2,
	}}, nil
}

func (f *fakeSite) UpdateEntity(ctx context.Context, r *samyav1.UpdateEntityRequest) (*samyav1.UpdateEntityResponse, error) {
	if f.update != nil {
		return f.update(ctx, r)
	}
	if v := r.GetExpectedVersion(); v != 0 && v != 3 {
		return nil, apierr.New(apierr.VersionMismatch, "version is 3")
	}
	resp := &samyav1.UpdateEntityResponse{Entity: &samyav1.Entity{Name: r.GetName(), Limit: r.GetLimit(), Generation: 1, Version: 4}}
	if r.GetWaitApplied() {
		resp.MayExceedBy, resp.MissingSites = 60, []string{"au", "eu"}
	}
	return resp, nil
}

func (f *fakeSite) DeleteEntity(_ context.Context, r *samyav1.DeleteEntityRequest) (*samyav1.DeleteEntityResponse, error) {
	if r.GetName() == "none" {
		return nil, apierr.NotFound("none")
	}
	if r.GetName() == "parent" && !r.GetSubtree() {
		return nil, apierr.Parental("parent")
	}
	return &samyav1.DeleteEntityResponse{}, nil
}

func (f *fakeSite) ListEntities(_ context.Context, r *samyav1.ListEntitiesRequest) (*samyav1.ListEntitiesResponse, error) {
	if f.list != nil {
		return nil, f.list()
	}
	return &samyav1.ListEntitiesResponse{
		Entities:      []*samyav1.Entity{{Name: r.GetPrefix() + "a", Limit: 1, Generation: 1, Version: 1}},
		NextPageToken: "next",
	}, nil
}

func (f *fakeSite) GetEntity(ctx context.Context, r *samyav1.GetEntityRequest) (*samyav1.GetEntityResponse, error) {
	if f.get != nil {
		return f.get(ctx, r)
	}
	if r.GetName() == "none" {
		return nil, apierr.NotFound("none")
	}
	return shareOf(f.name, &samyav1.Entity{Name: r.GetName(), Limit: 100, Generation: 1, Version: 1}, 20, 5), nil
}

func (f *fakeSite) ListSites(context.Context, *samyav1.ListSitesRequest) (*samyav1.ListSitesResponse, error) {
	resp := &samyav1.ListSitesResponse{Cluster: "test", AnsweredBy: "site/" + f.name}
	for _, m := range f.members {
		resp.Sites = append(resp.Sites, &samyav1.Site{Name: m})
	}
	return resp, nil
}

// modes are the modes of the fake sites: only us knows of the last change.
var modes = map[string]*samyav1.Mode{"us": {Protocol: "star", Version: 2}, "eu": {Protocol: "auto", Version: 1}}

func (f *fakeSite) GetMode(context.Context, *samyav1.GetModeRequest) (*samyav1.GetModeResponse, error) {
	m := modes[f.name]
	return &samyav1.GetModeResponse{Mode: m, Sites: []*samyav1.SiteMode{{
		Site: f.name, Protocol: cmp.Or(m.GetProtocol(), "majority"), Version: m.GetVersion(), Configured: "majority", Known: true,
	}}}, nil
}

func (f *fakeSite) SetMode(_ context.Context, r *samyav1.SetModeRequest) (*samyav1.SetModeResponse, error) {
	if v := r.GetExpectedVersion(); v != 0 && v != 3 {
		return nil, apierr.New(apierr.VersionMismatch, "version is 3")
	}
	if r.GetRequestId() == "reused" {
		return nil, apierr.Reused(r.GetRequestId(), f.name)
	}
	return &samyav1.SetModeResponse{Mode: &samyav1.Mode{Protocol: r.GetProtocol(), Version: 4}}, nil
}

func (f *fakeSite) GetForecast(context.Context, *samyav1.GetForecastRequest) (*samyav1.GetForecastResponse, error) {
	return &samyav1.GetForecastResponse{Sites: []*samyav1.SiteForecast{{Site: f.name, Model: "auto", Configured: "auto", Known: true}}}, nil
}

func (f *fakeSite) SetForecast(_ context.Context, r *samyav1.SetForecastRequest) (*samyav1.SetForecastResponse, error) {
	if r.GetModel() == "lstm" && f.name != "eu" {
		return nil, apierr.New(apierr.SiteUnavailable, "site %s is not ready", f.name)
	}
	if r.GetModel() == "arima" {
		return nil, apierr.New(apierr.SiteUnavailable, "site %s is not ready", f.name)
	}
	return &samyav1.SetForecastResponse{Sites: []*samyav1.SiteForecast{{Site: f.name, Model: r.GetModel(), Configured: "auto", Known: true}}}, nil
}

func (f *fakeSite) InspectSites(context.Context, *samyav1.InspectSitesRequest) (*samyav1.InspectSitesResponse, error) {
	switch f.name {
	case "us":
		return &samyav1.InspectSitesResponse{Sites: []*samyav1.SiteInspection{{
			Site: "us", Known: true, Up: durationpb.New(1500 * time.Millisecond),
			Partitions: []*samyav1.Partition{{Entities: 3, Operations: 9, Queued: 1}, {Entities: 2, Operations: 3}},
			Served:     10, Cross: 2, Passed: 1, Imbalance: 1.5,
			Repartitioning: &samyav1.Repartitioning{
				On: true, Computed: 3, Applied: 2, Skipped: 1, Failed: 4, Moved: 5, Tracking: .25, LastCut: math.NaN(),
				LastCutTime: durationpb.New(1250 * time.Microsecond),
				Pause: &samyav1.SwitchPause{
					Count: 2, P50: durationpb.New(40 * time.Microsecond), P99: durationpb.New(41 * time.Microsecond),
					Max: durationpb.New(41500 * time.Nanosecond),
				},
			},
			Split: []*samyav1.SplitEntity{{Name: "acme", Left: []int64{5, -1}, Operations: 6}},
		}}}, nil
	case "eu":
		return &samyav1.InspectSitesResponse{Sites: []*samyav1.SiteInspection{{Site: "eu", Known: true}}}, nil
	}
	return nil, apierr.New(apierr.SiteUnavailable, "site %s is not ready", f.name)
}

// up serves the site.
func (f *fakeSite) up() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pipe = bufconn.Listen(1 << 20)
	f.srv = grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		_ = grpc.SetHeader(ctx, metadata.Pairs(health.ClockHeader, health.ClockTold(time.Now().Add(f.ahead))))
		if f.arrived != nil {
			f.arrived(req)
		}
		return handler(ctx, req)
	}))
	samyav1.RegisterTokenServiceServer(f.srv, f)
	samyav1.RegisterEntityServiceServer(f.srv, f)
	samyav1.RegisterClusterServiceServer(f.srv, f)
	healthpb.RegisterHealthServer(f.srv, cmp.Or[healthpb.HealthServer](f.health, grpchealth.NewServer()))
	go func(s *grpc.Server, l net.Listener) { _ = s.Serve(l) }(f.srv, f.pipe)
}

// kill breaks every connection to the site at once and takes no more, as a
// process that dies does. Answers not yet sent are never sent.
func (f *fakeSite) kill() {
	f.mu.Lock()
	pipe, conns, srv := f.pipe, f.conns, f.srv
	f.pipe, f.conns, f.srv = nil, nil, nil
	f.mu.Unlock()
	for _, c := range conns {
		c.Close()
	}
	if srv != nil {
		_ = pipe.Close()
		go srv.Stop()
	}
}

func (f *fakeSite) dial(ctx context.Context) (net.Conn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pipe == nil {
		return nil, errors.New("connection refused")
	}
	c, err := f.pipe.DialContext(ctx)
	if err == nil {
		f.conns = append(f.conns, c)
	}
	return c, err
}

// rig is an app manager in region us with fake sites.
type rig struct {
	*Manager
	t     *testing.T // the bubble's own
	sites map[string]*fakeSite
}

// roster is a Directory set by a test.
type roster struct {
	mu      sync.Mutex
	infos   []SiteInfo
	changes chan struct{}
}

func (d *roster) Sites() []SiteInfo {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.infos)
}

func (d *roster) Changed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changes
}

func (d *roster) set(infos ...SiteInfo) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.infos = infos
	close(d.changes)
	d.changes = make(chan struct{})
}

// inBubble runs a test in simulated time, with the sites named up and found.
func inBubble(t *testing.T, names []string, change func(*Config), test func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, sites: map[string]*fakeSite{}}
		dir := &roster{changes: make(chan struct{})}
		for _, n := range names {
			f := &fakeSite{name: n, members: names}
			f.up()
			r.sites[n] = f
			dir.infos = append(dir.infos, SiteInfo{Name: n, Region: n, Address: n})
		}
		cfg := Config{
			Config: node.Config{
				Name: "am", Region: "us", Cluster: "test", HTTP: "127.0.0.1:0", GRPC: "127.0.0.1:0",
				Latency: func(_, to string) time.Duration { return oneWay[to] },
			},
			Directory: dir,
			Dial:      func(ctx context.Context, addr string) (net.Conn, error) { return r.sites[addr].dial(ctx) },
		}
		if change != nil {
			change(&cfg)
		}
		m, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		r.Manager = m
		m.assemble()
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { m.router.run(ctx); close(done) }()
		pass(2 * time.Second)
		test(r)
		cancel()
		<-done
		for _, f := range r.sites {
			f.kill()
		}
		pass(time.Minute)
	})
}

// pass lets simulated time pass, and waits until all goroutines of the bubble are idle.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

var take = &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 3, RequestId: "id-1"}
