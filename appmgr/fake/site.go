package fake

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
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpchealth "google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/apierr/refuse"
	"github.com/samya-db/samya/internal/cutid"
	"github.com/samya-db/samya/internal/health"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// OneWay holds half the round trips of the test network from region us.
var OneWay = map[string]time.Duration{"us": 0, "eu": 66 * time.Millisecond, "au": 80 * time.Millisecond}

// Site is a site in this process, served over a pipe. A test sets its answers.
type Site struct {
	samyav1.UnimplementedTokenServiceServer
	samyav1.UnimplementedEntityServiceServer
	samyav1.UnimplementedClusterServiceServer

	Name    string
	Members []string
	// Version is the version of Members. Tell changes both once the site is up.
	Version   uint64
	UnaryOnly bool // it serves no streams
	Listing   bool // its build has lists of the members, but no watch
	Mute      bool // a watch of the members tells a list, and then nothing
	// Health answers probes; nil: the site serves.
	Health healthpb.HealthServer
	// ahead, in nanoseconds, is how far the site's clock is ahead. Probes read it at any time.
	ahead atomic.Int64
	// recovered says that the site was told to go on without others.
	recovered atomic.Bool
	// Arrived gets the requests that come by unary calls; nil: none. A test sets it before Up.
	Arrived func(any)

	OnAcquire func(context.Context, *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error)
	OnRelease func(context.Context, *samyav1.ReleaseRequest) (*samyav1.ReleaseResponse, error)
	OnBatch   BatchFunc
	OnCreate  func(context.Context, *samyav1.CreateEntityRequest) (*samyav1.CreateEntityResponse, error)
	OnUpdate  func(context.Context, *samyav1.UpdateEntityRequest) (*samyav1.UpdateEntityResponse, error)
	OnGet     func(context.Context, *samyav1.GetEntityRequest) (*samyav1.GetEntityResponse, error)
	OnCut     func(context.Context, *samyav1.CutEntityRequest) (*samyav1.CutEntityResponse, error)
	OnList    func() error
	OnLeases  func(*samyav1.ListLeasesRequest) error
	OnRenew   func(*samyav1.RenewLeaseRequest) (*samyav1.RenewLeaseResponse, error)
	OnRemove  func() error
	OnCommit  func(*samyav1.CommitLeaseRequest) (*samyav1.CommitLeaseResponse, error)
	Calls     atomic.Int64 // acquires and creates that arrived

	mu      sync.Mutex
	OnWatch func(*samyav1.WatchEntityRequest, samyav1.EntityService_WatchEntityServer) error
	pipe    *bufconn.Listener
	conns   []net.Conn
	srv     *grpc.Server
	// probed answers probes where health is nil.
	probed *grpchealth.Server
	// list are the seats that the site tells, nil for those of Members; listed is closed
	// at the next change.
	list   *samyav1.ListMembersResponse
	listed chan struct{}
}

// SetAhead sets the site's clock ahead of the true one, or behind it where d is negative.
func (f *Site) SetAhead(d time.Duration) { f.ahead.Store(int64(d)) }

// now is the time by the site's clock.
func (f *Site) now() time.Time { return time.Now().Add(time.Duration(f.ahead.Load())) }

// Serves makes the site answer probes that it serves, or that it does not.
func (f *Site) Serves(serving bool) {
	status := healthpb.HealthCheckResponse_NOT_SERVING
	if serving {
		status = healthpb.HealthCheckResponse_SERVING
	}
	f.probed.SetServingStatus("", status)
}

// Acquire implements samyav1.TokenServiceServer.
func (f *Site) Acquire(ctx context.Context, r *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
	f.Calls.Add(1)
	if f.OnAcquire != nil {
		return f.OnAcquire(ctx, r)
	}
	resp := &samyav1.AcquireResponse{Tokens: r.GetTokens(), RequestId: r.GetRequestId(), Site: f.Name, Left: 7}
	if l := r.GetLease(); l != nil {
		resp.Lease = &samyav1.Lease{
			Name: f.Name + "/" + r.GetRequestId(), Entity: r.GetEntity(), Tokens: r.GetTokens(), Remaining: l.GetTtl(), Holder: l.GetHolder(),
		}
	}
	return resp, nil
}

// Release implements samyav1.TokenServiceServer.
func (f *Site) Release(ctx context.Context, r *samyav1.ReleaseRequest) (*samyav1.ReleaseResponse, error) {
	if f.OnRelease != nil {
		return f.OnRelease(ctx, r)
	}
	return &samyav1.ReleaseResponse{Tokens: r.GetTokens(), RequestId: r.GetRequestId(), Site: f.Name, Left: 9, Parked: r.GetLease() != "" && !strings.HasPrefix(r.GetLease(), f.Name+"/")}, nil
}

// RenewLease implements samyav1.TokenServiceServer.
func (f *Site) RenewLease(_ context.Context, r *samyav1.RenewLeaseRequest) (*samyav1.RenewLeaseResponse, error) {
	if f.OnRenew != nil {
		return f.OnRenew(r)
	}
	if r.GetLease() == f.Name+"/none" {
		return nil, apierr.New(apierr.LeaseNotFound, "no such lease")
	}
	return &samyav1.RenewLeaseResponse{Lease: &samyav1.Lease{
		Name: r.GetLease(), Entity: "acme/vm", Tokens: 3, Remaining: r.GetTtl(), Holder: "h",
	}}, nil
}

// CommitLease implements samyav1.TokenServiceServer.
func (f *Site) CommitLease(_ context.Context, r *samyav1.CommitLeaseRequest) (*samyav1.CommitLeaseResponse, error) {
	if f.OnCommit != nil {
		return f.OnCommit(r)
	}
	if r.GetLease() == f.Name+"/none" {
		return nil, apierr.New(apierr.LeaseNotFound, "no such lease")
	}
	return &samyav1.CommitLeaseResponse{Tokens: r.GetTokens(), Returned: 1, RequestId: r.GetRequestId(), Site: f.Name}, nil
}

// LeasesEach is the number of leases at each fake site.
const LeasesEach = 5

// ListLeases implements samyav1.TokenServiceServer.
func (f *Site) ListLeases(_ context.Context, r *samyav1.ListLeasesRequest) (*samyav1.ListLeasesResponse, error) {
	if f.OnLeases != nil {
		if err := f.OnLeases(r); err != nil {
			return nil, err
		}
	}
	after, err := strconv.Atoi(cmp.Or(r.GetPageToken(), "0"))
	if err != nil {
		return nil, apierr.Invalid("page_token", "bad")
	}
	resp := &samyav1.ListLeasesResponse{}
	for n := after + 1; n <= LeasesEach; n++ {
		if len(resp.GetLeases()) == int(r.GetPageSize()) {
			resp.NextPageToken = strconv.Itoa(n - 1)
			break
		}
		resp.Leases = append(resp.Leases, &samyav1.Lease{
			Name: f.Name + "/" + strconv.Itoa(n), Entity: "acme/vm", Tokens: 2, Remaining: durationpb.New(time.Second), Holder: r.GetHolder(),
		})
	}
	return resp, nil
}

// CreateEntity implements samyav1.EntityServiceServer.
func (f *Site) CreateEntity(ctx context.Context, r *samyav1.CreateEntityRequest) (*samyav1.CreateEntityResponse, error) {
	f.Calls.Add(1)
	if f.OnCreate != nil {
		return f.OnCreate(ctx, r)
	}
	if r.GetName() == "taken" {
		return nil, refuse.Exists("taken")
	}
	return &samyav1.CreateEntityResponse{Entity: &samyav1.Entity{
		Name: r.GetName(), Limit: r.GetLimit(), Generation: 1, Version: 1, Parent: r.GetParent(),
	}}, nil
}

// MoveEntity implements samyav1.EntityServiceServer.
func (f *Site) MoveEntity(_ context.Context, r *samyav1.MoveEntityRequest) (*samyav1.MoveEntityResponse, error) {
	switch r.GetParent() {
	case "none":
		return nil, refuse.NoParent(r.GetName(), "none")
	case "below":
		return nil, apierr.Invalid("parent", "stands below it")
	}
	return &samyav1.MoveEntityResponse{Entity: &samyav1.Entity{
		Name: r.GetName(), Limit: 9, Generation: max(1, r.GetExpectedGeneration()), Version: 1, Parent: r.GetParent(), Children: 2,
	}}, nil
}

// CutEntity implements samyav1.EntityServiceServer.
func (f *Site) CutEntity(ctx context.Context, r *samyav1.CutEntityRequest) (*samyav1.CutEntityResponse, error) {
	if f.OnCut != nil {
		return f.OnCut(ctx, r)
	}
	if r.GetName() == "none" {
		return nil, apierr.NotFound("none")
	}
	members, _ := f.told()
	resp := ShareOf(f.Name, &samyav1.Entity{Name: r.GetName(), Limit: 25 * int64(max(1, len(members))), Generation: 1, Version: 4}, 20, 5)
	resp.GetUsage().GetShares()[0].Moves = &samyav1.Moves{Own: 5, Returning: 1, Leased: 2}
	return &samyav1.CutEntityResponse{Entity: resp.GetEntity(), Usage: resp.GetUsage()}, nil
}

// ReconcileEntity implements samyav1.EntityServiceServer.
func (f *Site) ReconcileEntity(_ context.Context, r *samyav1.ReconcileEntityRequest) (*samyav1.ReconcileEntityResponse, error) {
	cut, err := cutid.Parse("cut", r.GetName(), r.GetCut())
	if err != nil {
		return nil, apierr.FromName(err)
	}
	if cut.Version != 4 {
		return nil, apierr.New(apierr.VersionMismatch, "the cut does not hold any more")
	}
	return &samyav1.ReconcileEntityResponse{
		Entity:   &samyav1.Entity{Name: r.GetName(), Limit: 75, Generation: 1, Version: 5},
		Returned: cut.InUse() - r.GetInUse(), MayExceedBy: 3, MissingSites: []string{"au"},
	}, nil
}

// RescueEntity implements samyav1.EntityServiceServer.
func (f *Site) RescueEntity(_ context.Context, r *samyav1.RescueEntityRequest) (*samyav1.RescueEntityResponse, error) {
	if r.GetSite() != "eu" {
		return nil, apierr.New(apierr.MemberState, "site %q was not written off: what it holds is its own", r.GetSite())
	}
	return &samyav1.RescueEntityResponse{
		Entity: &samyav1.Entity{Name: r.GetName(), Limit: 75, Generation: r.GetGeneration(), Version: 5}, Returned: r.GetHeld() - r.GetNet(), MissingSites: []string{"au"},
	}, nil
}

// ResetEntity implements samyav1.EntityServiceServer.
func (f *Site) ResetEntity(_ context.Context, r *samyav1.ResetEntityRequest) (*samyav1.ResetEntityResponse, error) {
	if r.GetName() == "none" {
		return nil, apierr.NotFound("none")
	}
	return &samyav1.ResetEntityResponse{Returned: 7}, nil
}

// UpdateEntity implements samyav1.EntityServiceServer.
func (f *Site) UpdateEntity(ctx context.Context, r *samyav1.UpdateEntityRequest) (*samyav1.UpdateEntityResponse, error) {
	if f.OnUpdate != nil {
		return f.OnUpdate(ctx, r)
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

// DeleteEntity implements samyav1.EntityServiceServer.
func (f *Site) DeleteEntity(_ context.Context, r *samyav1.DeleteEntityRequest) (*samyav1.DeleteEntityResponse, error) {
	if r.GetName() == "none" {
		return nil, apierr.NotFound("none")
	}
	if r.GetName() == "parent" && !r.GetSubtree() {
		return nil, refuse.Parental("parent")
	}
	return &samyav1.DeleteEntityResponse{}, nil
}

// ListEntities implements samyav1.EntityServiceServer.
func (f *Site) ListEntities(_ context.Context, r *samyav1.ListEntitiesRequest) (*samyav1.ListEntitiesResponse, error) {
	if f.OnList != nil {
		return nil, f.OnList()
	}
	return &samyav1.ListEntitiesResponse{
		Entities:      []*samyav1.Entity{{Name: r.GetPrefix() + "a", Limit: 1, Generation: 1, Version: 1}},
		NextPageToken: "next",
	}, nil
}

// GetEntity implements samyav1.EntityServiceServer.
func (f *Site) GetEntity(ctx context.Context, r *samyav1.GetEntityRequest) (*samyav1.GetEntityResponse, error) {
	if f.OnGet != nil {
		return f.OnGet(ctx, r)
	}
	if r.GetName() == "none" {
		return nil, apierr.NotFound("none")
	}
	resp := ShareOf(f.Name, &samyav1.Entity{Name: r.GetName(), Limit: 100, Generation: 1, Version: 1}, 20, 5)
	_, resp.Usage.MembersVersion = f.told()
	return resp, nil
}

// Tell has the site tell other members.
func (f *Site) Tell(members []string, version uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Members, f.Version = members, version
}

// told are the members that the site tells, and their version.
func (f *Site) told() ([]string, uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.Members, f.Version
}

// ListSites implements samyav1.ClusterServiceServer.
func (f *Site) ListSites(context.Context, *samyav1.ListSitesRequest) (*samyav1.ListSitesResponse, error) {
	members, version := f.told()
	resp := &samyav1.ListSitesResponse{Cluster: "test", AnsweredBy: "site/" + f.Name, MembersVersion: version}
	for _, m := range members {
		site := &samyav1.Site{Name: m, OldestVersion: 1, NewestVersion: 2, HttpAddress: m + ":7101"}
		if m == "au" {
			site.OldestVersion, site.NewestVersion, site.Refusal = 3, 4, "the build of site au is too new"
		}
		resp.Sites = append(resp.Sites, site)
	}
	return resp, nil
}

// modes are the modes of the fake sites: only us knows of the last change.
var modes = map[string]*samyav1.Mode{"us": {Protocol: "star", Version: 2}, "eu": {Protocol: "auto", Version: 1}}

// AddMember implements samyav1.ClusterServiceServer.
func (f *Site) AddMember(_ context.Context, r *samyav1.AddMemberRequest) (*samyav1.AddMemberResponse, error) {
	if r.GetRequestId() == "reused" {
		return nil, refuse.Reused(r.GetRequestId(), f.Name)
	}
	return &samyav1.AddMemberResponse{Member: joiner(r.GetName()), Version: 2}, nil
}

// DrainMember implements samyav1.ClusterServiceServer.
func (f *Site) DrainMember(_ context.Context, r *samyav1.DrainMemberRequest) (*samyav1.DrainMemberResponse, error) {
	m := &samyav1.Member{Name: r.GetName(), State: samyav1.MemberState_MEMBER_STATE_DRAINING, Knows: true, Region: "eu", Address: "eu:7", Heir: cmp.Or(r.GetHeir(), "us")}
	switch {
	case r.GetName() == "none":
		return nil, apierr.New(apierr.MemberNotFound, "the cluster has no site %q", r.GetName())
	case r.GetRequestId() == "early":
		return nil, apierr.New(apierr.MembersChanging, "12 entities have to adopt the new voters of the last change first; nothing was done")
	case r.GetCancel():
		m.State, m.Heir = samyav1.MemberState_MEMBER_STATE_MEMBER, ""
	}
	return &samyav1.DrainMemberResponse{Member: m, Version: 3}, nil
}

// RemoveMember implements samyav1.ClusterServiceServer.
func (f *Site) RemoveMember(_ context.Context, r *samyav1.RemoveMemberRequest) (*samyav1.RemoveMemberResponse, error) {
	m := &samyav1.Member{Name: r.GetName(), State: samyav1.MemberState_MEMBER_STATE_GONE}
	if f.OnRemove != nil {
		if err := f.OnRemove(); err != nil {
			return nil, err
		}
	}
	switch {
	case r.GetLost():
		m.State = samyav1.MemberState_MEMBER_STATE_LOST
	case r.GetName() == "eu":
		return nil, apierr.New(apierr.MemberState, "site %q is a member: drain it, or remove it as lost if its data is lost for good", "eu")
	}
	return &samyav1.RemoveMemberResponse{Member: m, Version: 3}, nil
}

// RescueMember implements samyav1.ClusterServiceServer.
func (f *Site) RescueMember(_ context.Context, r *samyav1.RescueMemberRequest) (*samyav1.RescueMemberResponse, error) {
	if r.GetName() != "eu" {
		return nil, apierr.New(apierr.MemberState, "site %q was not written off: what it holds is its own", r.GetName())
	}
	return &samyav1.RescueMemberResponse{
		Member: &samyav1.Member{
			Name: "eu", State: samyav1.MemberState_MEMBER_STATE_LOST, Rescued: true,
			Remembered: &samyav1.Remembered{Incarnation: "00000000000000ab", Commit: 7, Served: true},
		}, Version: 3,
	}, nil
}

// GetMode implements samyav1.ClusterServiceServer.
func (f *Site) GetMode(context.Context, *samyav1.GetModeRequest) (*samyav1.GetModeResponse, error) {
	m := modes[f.Name]
	return &samyav1.GetModeResponse{Mode: m, Sites: []*samyav1.SiteMode{{
		Site: f.Name, Protocol: cmp.Or(m.GetProtocol(), "majority"), Version: m.GetVersion(), Configured: "majority", Known: true,
	}}}, nil
}

// SetMode implements samyav1.ClusterServiceServer.
func (f *Site) SetMode(_ context.Context, r *samyav1.SetModeRequest) (*samyav1.SetModeResponse, error) {
	if v := r.GetExpectedVersion(); v != 0 && v != 3 {
		return nil, apierr.New(apierr.VersionMismatch, "version is 3")
	}
	if r.GetRequestId() == "reused" {
		return nil, refuse.Reused(r.GetRequestId(), f.Name)
	}
	return &samyav1.SetModeResponse{Mode: &samyav1.Mode{Protocol: r.GetProtocol(), Version: 4}}, nil
}

// GetVersion implements samyav1.ClusterServiceServer. The site au has a build of the first
// version, without this method.
func (f *Site) GetVersion(context.Context, *samyav1.GetVersionRequest) (*samyav1.GetVersionResponse, error) {
	if f.Name == "au" {
		return nil, status.Error(codes.Unimplemented, "unknown method GetVersion")
	}
	v := map[string]uint32{"us": 2, "eu": 1}[f.Name]
	return &samyav1.GetVersionResponse{Version: v, Sites: []*samyav1.SiteVersion{{
		Site: f.Name, Version: v, Oldest: 1, Newest: 2, Build: "samya v1", Known: true,
	}}}, nil
}

// RaiseVersion implements samyav1.ClusterServiceServer.
func (f *Site) RaiseVersion(_ context.Context, r *samyav1.RaiseVersionRequest) (*samyav1.RaiseVersionResponse, error) {
	if r.GetVersion() != 3 {
		return nil, apierr.New(apierr.VersionMismatch, "the cluster stays at version 2: site eu has a build that speaks versions 1 to 2")
	}
	return &samyav1.RaiseVersionResponse{Version: r.GetVersion()}, nil
}

// Recovered reports whether the site was told to go on without others.
func (f *Site) Recovered() bool { return f.recovered.Load() }

// RecoverCluster implements samyav1.ClusterServiceServer.
func (f *Site) RecoverCluster(_ context.Context, r *samyav1.RecoverClusterRequest) (*samyav1.RecoverClusterResponse, error) {
	if f.Name == "us" && slices.Contains(r.GetLost(), "picky") {
		return nil, apierr.New(apierr.MemberState, "the survivors are a majority of the members")
	}
	if !r.GetCheck() {
		f.recovered.Store(true)
	}
	return &samyav1.RecoverClusterResponse{Sites: []string{f.Name}}, nil
}

// GetForecast implements samyav1.ClusterServiceServer.
func (f *Site) GetForecast(context.Context, *samyav1.GetForecastRequest) (*samyav1.GetForecastResponse, error) {
	return &samyav1.GetForecastResponse{Sites: []*samyav1.SiteForecast{{Site: f.Name, Model: "auto", Configured: "auto", Known: true}}}, nil
}

// SetForecast implements samyav1.ClusterServiceServer.
func (f *Site) SetForecast(_ context.Context, r *samyav1.SetForecastRequest) (*samyav1.SetForecastResponse, error) {
	if r.GetModel() == "lstm" && f.Name != "eu" {
		return nil, apierr.New(apierr.SiteUnavailable, "site %s is not ready", f.Name)
	}
	if r.GetModel() == "arima" {
		return nil, apierr.New(apierr.SiteUnavailable, "site %s is not ready", f.Name)
	}
	return &samyav1.SetForecastResponse{Sites: []*samyav1.SiteForecast{{Site: f.Name, Model: r.GetModel(), Configured: "auto", Known: true}}}, nil
}

// InspectSites implements samyav1.ClusterServiceServer.
func (f *Site) InspectSites(context.Context, *samyav1.InspectSitesRequest) (*samyav1.InspectSitesResponse, error) {
	switch f.Name {
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
	return nil, apierr.New(apierr.SiteUnavailable, "site %s is not ready", f.Name)
}

// Up serves the site.
func (f *Site) Up() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pipe = bufconn.Listen(1 << 20)
	f.srv = grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		_ = grpc.SetHeader(ctx, metadata.Pairs(health.ClockHeader, health.ClockTold(f.now())))
		if f.Arrived != nil {
			f.Arrived(req)
		}
		return handler(ctx, req)
	}))
	samyav1.RegisterTokenServiceServer(f.srv, f)
	samyav1.RegisterEntityServiceServer(f.srv, f)
	samyav1.RegisterClusterServiceServer(f.srv, f)
	f.probed = grpchealth.NewServer()
	healthpb.RegisterHealthServer(f.srv, cmp.Or[healthpb.HealthServer](f.Health, f.probed))
	go func(s *grpc.Server, l net.Listener) { _ = s.Serve(l) }(f.srv, f.pipe)
}

// Kill breaks every connection to the site at once and takes no more, as a
// process that dies does. Answers not yet sent are never sent.
func (f *Site) Kill() {
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

// Dial connects to the site.
func (f *Site) Dial(ctx context.Context) (net.Conn, error) {
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

// Pass lets simulated time pass, and waits until all goroutines of the bubble are idle.
func Pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// Take is an acquire that gives its id.
var Take = &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 3, RequestId: "id-1"}
