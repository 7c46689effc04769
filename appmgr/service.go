package appmgr

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/internal/access"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/health"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

const (
	// siteWait is the wait of an acquire that gives none, at sites that keep the API's
	// default.
	siteWait = 5 * time.Second
	// callTime is the time of a request beyond its wait.
	callTime = 10 * time.Second
	// readTime bounds a global read unless its caller gives less.
	readTime = 2 * time.Second
	// maxPageToken bounds a page token, in bytes.
	maxPageToken = 1024
	// maxVersion bounds a version or generation, so that every JSON client can hold it.
	maxVersion = name.MaxTokens
)

// service is the public API. gRPC serves it as it is, HTTP through api. Every error it
// returns is an *apierr.Error.
type service struct {
	samyav1.UnimplementedTokenServiceServer
	samyav1.UnimplementedEntityServiceServer
	samyav1.UnimplementedClusterServiceServer

	name   string
	cfg    Config
	router *router
	// guard lets the operations of batches and streams in.
	guard *guard
	seen  *lastSeen
	newID func() string
	// watching, streaming and waiting bound the watches, the streams and the acquires
	// that may wait, by caller.
	watching, streaming, waiting *portions
	// open ends the watches and streams under way, with endStreams.
	open       context.Context
	endStreams context.CancelFunc
}

func newService(cfg Config, r *router, g *guard) *service {
	s := &service{
		name: cfg.Name, cfg: cfg, router: r, guard: g, seen: newLastSeen(maxSeen),
		newID:    func() string { return ulid.Make().String() },
		watching: newPortions(maxLasting), streaming: newPortions(maxLasting), waiting: newPortions(cfg.MaxConcurrent),
	}
	s.open, s.endStreams = context.WithCancel(context.Background())
	return s
}

// CreateEntity implements samyav1.EntityServiceServer.
func (s *service) CreateEntity(ctx context.Context, in *samyav1.CreateEntityRequest) (*samyav1.CreateEntityResponse, error) {
	if err := errors.Join(
		name.Entity("name", in.GetName()), name.Limit("limit", in.GetLimit()), name.Parent("parent", in.GetParent()),
		requestID(in.GetRequestId()),
	); err != nil {
		return nil, apierr.FromName(err)
	}
	id := s.id(in.GetRequestId())
	req := &samyav1.CreateEntityRequest{Name: in.GetName(), Limit: in.GetLimit(), Parent: in.GetParent(), RequestId: id}
	resp := &samyav1.CreateEntityResponse{}
	if err := s.admin(ctx, call{
		method: samyav1.EntityService_CreateEntity_FullMethodName, req: req, resp: resp, requestID: id, entity: req.GetName(),
	}); err != nil {
		return nil, err
	}
	s.spread(ctx, resp.GetEntity())
	return resp, nil
}

// UpdateEntity implements samyav1.EntityServiceServer. If the caller wants to wait, the
// asked site waits for the other sites; a site asked after it goes on waiting.
func (s *service) UpdateEntity(ctx context.Context, in *samyav1.UpdateEntityRequest) (*samyav1.UpdateEntityResponse, error) {
	if err := errors.Join(
		name.Entity("name", in.GetName()), name.Limit("limit", in.GetLimit()),
		version("expected_version", in.GetExpectedVersion()), requestID(in.GetRequestId()),
	); err != nil {
		return nil, apierr.FromName(err)
	}
	if in.GetWaitApplied() {
		at, err := s.waiting.begin(access.CallerOf(ctx))
		if err != nil {
			return nil, err
		}
		defer s.waiting.end(at)
	}
	id := s.id(in.GetRequestId())
	req := &samyav1.UpdateEntityRequest{
		Name: in.GetName(), Limit: in.GetLimit(), ExpectedVersion: in.GetExpectedVersion(), RequestId: id,
		WaitApplied: in.GetWaitApplied(),
	}
	resp := &samyav1.UpdateEntityResponse{}
	return answer(resp, s.admin(ctx, call{
		method: samyav1.EntityService_UpdateEntity_FullMethodName, req: req, resp: resp, requestID: id, entity: req.GetName(),
	}))
}

// MoveEntity implements samyav1.EntityServiceServer.
func (s *service) MoveEntity(ctx context.Context, in *samyav1.MoveEntityRequest) (*samyav1.MoveEntityResponse, error) {
	if err := errors.Join(
		name.Entity("name", in.GetName()), name.Parent("parent", in.GetParent()),
		version("expected_generation", in.GetExpectedGeneration()), requestID(in.GetRequestId()),
	); err != nil {
		return nil, apierr.FromName(err)
	}
	id := s.id(in.GetRequestId())
	req := &samyav1.MoveEntityRequest{
		Name: in.GetName(), Parent: in.GetParent(), ExpectedGeneration: in.GetExpectedGeneration(), RequestId: id,
	}
	resp := &samyav1.MoveEntityResponse{}
	return answer(resp, s.admin(ctx, call{
		method: samyav1.EntityService_MoveEntity_FullMethodName, req: req, resp: resp, requestID: id, entity: req.GetName(),
	}))
}

// DeleteEntity implements samyav1.EntityServiceServer.
func (s *service) DeleteEntity(ctx context.Context, in *samyav1.DeleteEntityRequest) (*samyav1.DeleteEntityResponse, error) {
	if err := errors.Join(
		name.Entity("name", in.GetName()), version("expected_generation", in.GetExpectedGeneration()), requestID(in.GetRequestId()),
	); err != nil {
		return nil, apierr.FromName(err)
	}
	id := s.id(in.GetRequestId())
	req := &samyav1.DeleteEntityRequest{
		Name: in.GetName(), ExpectedGeneration: in.GetExpectedGeneration(), Subtree: in.GetSubtree(), RequestId: id,
	}
	resp := &samyav1.DeleteEntityResponse{}
	return answer(resp, s.admin(ctx, call{
		method: samyav1.EntityService_DeleteEntity_FullMethodName, req: req, resp: resp, requestID: id, entity: req.GetName(),
	}))
}

// answer returns resp or err, never both.
func answer[T any](resp *T, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// admin relays a request that the sites decide together.
func (s *service) admin(ctx context.Context, c call) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	c.changes = &change{}
	return s.router.do(ctx, c)
}

// ListEntities implements samyav1.EntityServiceServer.
func (s *service) ListEntities(ctx context.Context, in *samyav1.ListEntitiesRequest) (*samyav1.ListEntitiesResponse, error) {
	if err := errors.Join(
		name.Prefix("prefix", in.GetPrefix()), name.PageSize("page_size", int64(in.GetPageSize())), pageToken(in.GetPageToken()),
	); err != nil {
		return nil, apierr.FromName(err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	resp := &samyav1.ListEntitiesResponse{}
	err := s.router.do(ctx, call{method: samyav1.EntityService_ListEntities_FullMethodName, req: in, resp: resp, read: true})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// ListSites implements samyav1.ClusterServiceServer: it returns the member set as a site
// told it, with the health and round trips that this app manager sees.
func (s *service) ListSites(ctx context.Context, _ *samyav1.ListSitesRequest) (*samyav1.ListSitesResponse, error) {
	members, err := s.router.membersNow(ctx)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	resp := &samyav1.ListSitesResponse{Cluster: s.cfg.Cluster, AnsweredBy: s.name}
	for _, m := range members {
		site := &samyav1.Site{Name: m.GetName(), Region: m.GetRegion(), Address: m.GetAddress()}
		if l := s.router.link(m.GetName()); l != nil {
			h := l.state()
			site.Region, site.Address, site.Health = l.info.Region, l.info.Address, publicHealth(h, now)
			if h.RTT > 0 {
				site.RoundTrip = durationpb.New(h.RTT)
			}
		}
		resp.Sites = append(resp.Sites, site)
	}
	return resp, nil
}

// publicHealth returns a health in the terms of the API.
func publicHealth(h health.Health, now time.Time) samyav1.SiteHealth {
	switch {
	case h.Reach == health.Down:
		return samyav1.SiteHealth_SITE_HEALTH_UNREACHABLE
	case h.Overloaded(now):
		return samyav1.SiteHealth_SITE_HEALTH_OVERLOADED
	case h.Reach == health.Up:
		return samyav1.SiteHealth_SITE_HEALTH_SERVING
	}
	return samyav1.SiteHealth_SITE_HEALTH_UNSPECIFIED
}

// id returns the request's id, or a new id: without an id the caller could not repeat a
// request of unknown outcome.
func (s *service) id(given string) string {
	if given != "" {
		return given
	}
	return s.newID()
}

func requestID(id string) error {
	if id == "" {
		return nil
	}
	return name.RequestID("request_id", id)
}

func site(s string) error {
	if s == "" {
		return nil
	}
	return name.Site("site", s)
}

// version checks a version or generation.
func version(field string, v uint64) error {
	if v > maxVersion {
		return &name.Error{Field: field, Problem: "at most 9007199254740991"}
	}
	return nil
}

func pageToken(t string) error {
	if len(t) > maxPageToken || strings.ContainsFunc(t, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return &name.Error{Field: "page_token", Problem: "not a token that an earlier page gave"}
	}
	return nil
}

// duration reads a protobuf duration, which may hold more than Go's.
func duration(field string, d *durationpb.Duration) (time.Duration, error) {
	if err := d.CheckValid(); err != nil {
		return 0, &name.Error{Field: field, Problem: "not a valid duration, at least 0s and at most 60s"}
	}
	v := d.AsDuration()
	return v, name.Wait(field, v)
}
