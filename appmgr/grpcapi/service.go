package grpcapi

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/samya-db/samya/appmgr/limiter"
	"github.com/samya-db/samya/appmgr/reads"
	"github.com/samya-db/samya/appmgr/route"
	"github.com/samya-db/samya/internal/access"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/checks"
	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/tracing"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

const (
	// siteWait is the wait of an acquire that gives none, at sites that keep the API's
	// default.
	siteWait = 5 * time.Second
	// changeTime is the time of a request beyond its wait.
	changeTime = 10 * time.Second
	// MaxVersion bounds a version or generation, so that every JSON client can hold it.
	MaxVersion = name.MaxTokens
)

// Service is the public API. gRPC serves it as it is, HTTP through api. Every error it
// returns is an *apierr.Error.
type Service struct {
	unimplemented
	*reads.Reads
	router *route.Router
	// limiter lets the operations of batches and streams in.
	limiter *limiter.Limiter
	newID   func() string
	// streaming and waiting bound the streams and the acquires that may wait, by caller.
	streaming, waiting *limiter.Portions
	// Traces, if set before the service is used, makes spans of the operations of streams.
	Traces *tracing.Traces
}

// unimplemented answers the methods that a service lacks.
type unimplemented struct {
	samyav1.UnimplementedTokenServiceServer
	samyav1.UnimplementedEntityServiceServer
	samyav1.UnimplementedClusterServiceServer
}

// New makes a service of which at most waiting acquires may wait.
func New(in *reads.Reads, router *route.Router, g *limiter.Limiter, waiting int) *Service {
	return &Service{
		Reads: in, router: router, limiter: g, newID: func() string { return ulid.Make().String() },
		streaming: limiter.NewPortions(limiter.MaxStreaming), waiting: limiter.NewPortions(waiting),
	}
}

// CreateEntity implements samyav1.EntityServiceServer.
func (s *Service) CreateEntity(ctx context.Context, in *samyav1.CreateEntityRequest) (*samyav1.CreateEntityResponse, error) {
	if _, err := checks.Create(in); err != nil {
		return nil, apierr.FromName(err)
	}
	if in.GetDryRun() {
		return s.dryCreate(ctx, in)
	}
	resp, err := change(ctx, s, route.Call{Method: samyav1.EntityService_CreateEntity_FullMethodName}, in, &samyav1.CreateEntityResponse{})
	if err == nil {
		s.Spread(ctx, resp.GetEntity())
	}
	return resp, err
}

// UpdateEntity implements samyav1.EntityServiceServer. If the caller wants to wait, the
// asked site waits for the other sites; a site asked after it goes on waiting.
func (s *Service) UpdateEntity(ctx context.Context, in *samyav1.UpdateEntityRequest) (*samyav1.UpdateEntityResponse, error) {
	if in.GetDryRun() {
		return s.dryUpdate(ctx, in)
	}
	return change(ctx, s, route.Call{Method: samyav1.EntityService_UpdateEntity_FullMethodName}, in, &samyav1.UpdateEntityResponse{},
		name.Entity("name", in.GetName()), name.Limit("limit", in.GetLimit()), version("expected_version", in.GetExpectedVersion()))
}

// ReconcileEntity implements samyav1.EntityServiceServer.
func (s *Service) ReconcileEntity(ctx context.Context, in *samyav1.ReconcileEntityRequest) (*samyav1.ReconcileEntityResponse, error) {
	if _, err := checks.Reconcile(in); err != nil {
		return nil, apierr.FromName(err)
	}
	return change(ctx, s, route.Call{Method: samyav1.EntityService_ReconcileEntity_FullMethodName}, in, &samyav1.ReconcileEntityResponse{})
}

// MoveEntity implements samyav1.EntityServiceServer.
func (s *Service) MoveEntity(ctx context.Context, in *samyav1.MoveEntityRequest) (*samyav1.MoveEntityResponse, error) {
	return change(ctx, s, route.Call{Method: samyav1.EntityService_MoveEntity_FullMethodName}, in, &samyav1.MoveEntityResponse{},
		name.Entity("name", in.GetName()), name.Parent("parent", in.GetParent()), version("expected_generation", in.GetExpectedGeneration()))
}

// DeleteEntity implements samyav1.EntityServiceServer.
func (s *Service) DeleteEntity(ctx context.Context, in *samyav1.DeleteEntityRequest) (*samyav1.DeleteEntityResponse, error) {
	return change(ctx, s, route.Call{Method: samyav1.EntityService_DeleteEntity_FullMethodName}, in, &samyav1.DeleteEntityResponse{},
		name.Entity("name", in.GetName()), version("expected_generation", in.GetExpectedGeneration()))
}

// SetMode implements samyav1.ClusterServiceServer.
func (s *Service) SetMode(ctx context.Context, in *samyav1.SetModeRequest) (*samyav1.SetModeResponse, error) {
	return change(ctx, s, route.Call{Method: samyav1.ClusterService_SetMode_FullMethodName}, in, &samyav1.SetModeResponse{},
		name.Mode("protocol", in.GetProtocol()), version("expected_version", in.GetExpectedVersion()))
}

// AddMember implements samyav1.ClusterServiceServer.
func (s *Service) AddMember(ctx context.Context, in *samyav1.AddMemberRequest) (*samyav1.AddMemberResponse, error) {
	return change(ctx, s, route.Call{Method: samyav1.ClusterService_AddMember_FullMethodName}, in, &samyav1.AddMemberResponse{},
		name.Site("name", in.GetName()))
}

// DrainMember implements samyav1.ClusterServiceServer.
func (s *Service) DrainMember(ctx context.Context, in *samyav1.DrainMemberRequest) (*samyav1.DrainMemberResponse, error) {
	if err := checks.Drain(in); err != nil {
		return nil, apierr.FromName(err)
	}
	if in.GetDryRun() {
		return s.dryDrain(ctx, in)
	}
	return change(ctx, s, route.Call{Method: samyav1.ClusterService_DrainMember_FullMethodName}, in, &samyav1.DrainMemberResponse{})
}

// RemoveMember implements samyav1.ClusterServiceServer. A site may wait for a lost site
// before it serves, and be needed to write that site off.
func (s *Service) RemoveMember(ctx context.Context, in *samyav1.RemoveMemberRequest) (*samyav1.RemoveMemberResponse, error) {
	return change(ctx, s, route.Call{Method: samyav1.ClusterService_RemoveMember_FullMethodName, Idle: in.GetLost()}, in, &samyav1.RemoveMemberResponse{},
		name.Site("name", in.GetName()))
}

// RescueMember implements samyav1.ClusterServiceServer.
func (s *Service) RescueMember(ctx context.Context, in *samyav1.RescueMemberRequest) (*samyav1.RescueMemberResponse, error) {
	return change(ctx, s, route.Call{Method: samyav1.ClusterService_RescueMember_FullMethodName}, in, &samyav1.RescueMemberResponse{},
		name.Site("name", in.GetName()))
}

// RescueEntity implements samyav1.EntityServiceServer.
func (s *Service) RescueEntity(ctx context.Context, in *samyav1.RescueEntityRequest) (*samyav1.RescueEntityResponse, error) {
	if err := checks.Rescue(in); err != nil {
		return nil, apierr.FromName(err)
	}
	return change(ctx, s, route.Call{Method: samyav1.EntityService_RescueEntity_FullMethodName}, in, &samyav1.RescueEntityResponse{})
}

// ofEntities begins the methods with requests that name an entity.
const ofEntities = "/samya.v1.EntityService/"

// RaiseVersion implements samyav1.ClusterServiceServer.
func (s *Service) RaiseVersion(ctx context.Context, in *samyav1.RaiseVersionRequest) (*samyav1.RaiseVersionResponse, error) {
	return change(ctx, s, route.Call{Method: samyav1.ClusterService_RaiseVersion_FullMethodName}, in, &samyav1.RaiseVersionResponse{},
		name.Version("version", in.GetVersion()))
}

// changing is a request that the sites decide together, once by its id.
type changing interface {
	proto.Message
	GetRequestId() string
}

// change relays a request as call c, if it has no faults, and returns resp filled in. The
// site gets all fields of the request, and an id if the caller gave none. A request that
// waits for sites counts among those that wait.
func change[Q changing, R proto.Message](ctx context.Context, s *Service, c route.Call, in Q, resp R, faults ...error) (none R, _ error) {
	if err := errors.Join(append(faults, checks.RequestID("request_id", in.GetRequestId()))...); err != nil {
		return none, apierr.FromName(err)
	}
	if w, ok := any(in).(interface{ GetWaitApplied() bool }); ok && w.GetWaitApplied() {
		at, err := s.waiting.Begin(access.CallerOf(ctx))
		if err != nil {
			return none, err
		}
		defer s.waiting.End(at)
	}
	if named, ok := any(in).(interface{ GetName() string }); ok && strings.HasPrefix(c.Method, ofEntities) {
		c.Entity = named.GetName()
	}
	req := proto.CloneOf(in)
	m := req.ProtoReflect()
	c.RequestID = s.id(in.GetRequestId())
	m.Set(m.Descriptor().Fields().ByName("request_id"), protoreflect.ValueOfString(c.RequestID))
	c.Req, c.Resp = req, resp
	if err := s.admin(ctx, c); err != nil {
		return none, err
	}
	return resp, nil
}

// admin relays a request that the sites decide together.
func (s *Service) admin(ctx context.Context, c route.Call) error {
	ctx, cancel := context.WithTimeout(ctx, changeTime)
	defer cancel()
	c.Changes = &route.Change{}
	return s.router.Do(ctx, c)
}

// id returns the request's id, or a new id: without an id the caller could not repeat a
// request of unknown outcome.
func (s *Service) id(given string) string {
	if given != "" {
		return given
	}
	return s.newID()
}

// version checks a version or generation.
func version(field string, v uint64) error {
	if v > MaxVersion {
		return &name.Error{Field: field, Problem: "at most 9007199254740991"}
	}
	return nil
}
