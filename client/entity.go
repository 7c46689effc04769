package client

import (
	"context"
	"time"

	"github.com/oklog/ulid/v2"
	"google.golang.org/protobuf/types/known/durationpb"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// Entity is a resource with a limit, and the sum of the sites' books about it.
type Entity struct {
	// Name is the entity's name.
	Name string
	// Limit is the most tokens that may be out at once.
	Limit int64
	// Generation tells the entity apart from earlier entities of the same name.
	Generation uint64
	// Version counts the changes of the limit; it starts at 1.
	Version uint64
	// Parent is the entity right above it; empty for none.
	Parent string
	// Children is the number of entities right below it.
	Children int
	// Rate has the terms of a rate quota; zero for other entities.
	Rate Rate
	// WindowEnds is the end of the window of a rate quota of windows; zero for all others.
	WindowEnds time.Time
	// Available are the tokens that can be acquired now, over the sites seen. It is
	// negative if the limit was lowered below the tokens that are out.
	Available int64
	// Acquired are the tokens that are out, over the sites seen.
	Acquired int64
	// InTransit are tokens on their way between sites; only meaningful if Complete.
	InTransit int64
	// MayExceedBy is by how many tokens Limit may be exceeded at most; 0 once all sites
	// have heard of Limit. Until then, sites go on granting the tokens they hold.
	MayExceedBy int64
	// Complete: every site has answered, or no figure is older than the age asked for.
	Complete bool
	// Consistent: tokens in transit are counted once. Only an exact read tells.
	Consistent bool
	// Deleted: the entity was deleted, and ends its watch. ResumeToken continues a later
	// watch after this state. Only a watch sets them.
	Deleted     bool
	ResumeToken string
}

// ReadOption sets how many sites a read asks.
type ReadOption func(*samyav1.GetEntityRequest)

// Exact asks all sites until their shares are a consistent cut. It is the default of app
// managers; sites know only their own share.
func Exact() ReadOption {
	return func(r *samyav1.GetEntityRequest) { r.Consistency = samyav1.Consistency_CONSISTENCY_EXACT }
}

// Bounded lets the asked site answer with figures it has heard of other sites, if no
// figure is older than age: 0 to 1h.
func Bounded(age time.Duration) ReadOption {
	return func(r *samyav1.GetEntityRequest) {
		r.Consistency, r.MaxAge = samyav1.Consistency_CONSISTENCY_BOUNDED, durationpb.New(age)
	}
}

// Local reads only the share of the asked site.
func Local() ReadOption {
	return func(r *samyav1.GetEntityRequest) { r.Consistency = samyav1.Consistency_CONSISTENCY_LOCAL }
}

// Entity reads an entity. The error is an *Error.
func (c *Client) Entity(ctx context.Context, entity string, opts ...ReadOption) (Entity, error) {
	req, resp := &samyav1.GetEntityRequest{Name: entity}, &samyav1.GetEntityResponse{}
	for _, o := range opts {
		o(req)
	}
	if err := c.ask(ctx, question{method: samyav1.EntityService_GetEntity_FullMethodName, req: req, resp: resp, entity: entity}); err != nil {
		return Entity{}, err
	}
	return entityOf(resp.GetEntity(), resp.GetUsage()), nil
}

// entityOf returns an entity and its books as this package has them.
func entityOf(e *samyav1.Entity, u *samyav1.Usage) Entity {
	var ends time.Time
	if ms := u.GetWindowEndsMs(); ms != 0 {
		ends = time.UnixMilli(ms)
	}
	return Entity{
		Name: e.GetName(), Limit: e.GetLimit(), Generation: e.GetGeneration(), Version: e.GetVersion(),
		Parent: e.GetParent(), Children: int(e.GetChildren()), WindowEnds: ends,
		Rate:      Rate{Per: e.GetPer(), Kind: e.GetKind(), TimeZone: e.GetTimeZone(), Durable: e.Durable, Keys: e.GetKeys()},
		Available: u.GetAvailable(), Acquired: u.GetAcquired(), InTransit: u.GetInTransit(),
		Complete: u.GetComplete(), Consistent: u.GetConsistent(), MayExceedBy: u.GetMayExceedBy(),
	}
}

// EntityOption changes the creation of an entity.
type EntityOption interface {
	toEntity(r *samyav1.CreateEntityRequest)
}

type entityOption func(*samyav1.CreateEntityRequest)

func (o entityOption) toEntity(r *samyav1.CreateEntityRequest) { o(r) }

// Below creates the entity below parent: tokens acquired of the entity are also acquired
// of parent and of all entities above parent.
func Below(parent string) EntityOption {
	return entityOption(func(r *samyav1.CreateEntityRequest) { r.Parent = parent })
}

// Rate makes the entity a rate quota: its limit is for each period. Tokens come back by the
// clock, and are not released.
type Rate struct {
	// Per is the period, a number and a unit such as 10s, 5m, 1h, 1d or 1month.
	Per string
	// Kind tells when tokens come back: "window", also if empty, for all at the end of a
	// window; "bucket" for evenly, all within a period; "sliding" for each a period after
	// its grant.
	Kind string
	// TimeZone is the time zone of windows of days or months, such as Europe/Berlin; empty
	// for UTC.
	TimeZone string
	// Durable has each grant durable before its answer. A site that starts anew takes all
	// tokens of other rate quotas for granted. Nil is true for windows of an hour and longer.
	Durable *bool
	// Keys makes a template: each name below the entity, such as calls/acme below calls, has
	// a quota to itself, from its first use on. Keys are not durable, and have no leases.
	Keys bool
}

func (o Rate) toEntity(r *samyav1.CreateEntityRequest) {
	r.Per, r.Kind, r.TimeZone, r.Durable, r.Keys = o.Per, o.Kind, o.TimeZone, o.Durable, o.Keys
}

// CreateEntity creates an entity with a limit, 0 to 2^53-1, by decision of a majority of
// the sites. The error is an *Error: ErrEntityExists if an entity of that name exists,
// and ErrParentNotFound if the parent does not. A creation of unknown outcome may be
// repeated with the same RequestID: the answer is the outcome of the first creation, and
// not that the entity exists.
func (c *Client) CreateEntity(ctx context.Context, entity string, limit int64, opts ...EntityOption) error {
	req := &samyav1.CreateEntityRequest{Name: entity, Limit: limit, RequestId: ulid.Make().String()}
	for _, o := range opts {
		o.toEntity(req)
	}
	return c.ask(ctx, question{
		method: samyav1.EntityService_CreateEntity_FullMethodName, moves: true, req: req, resp: &samyav1.CreateEntityResponse{},
		entity: entity, requestID: req.GetRequestId(),
	})
}

// LimitOption changes a change of a limit.
type LimitOption interface {
	toLimit(r *samyav1.UpdateEntityRequest)
}

type limitOption func(*samyav1.UpdateEntityRequest)

func (o limitOption) toLimit(r *samyav1.UpdateEntityRequest) { o(r) }

// WaitApplied delays the answer to a change of a limit until all sites have applied it.
// It waits at most for 10s, and until shortly before the deadline of the call.
// LimitChange then tells which sites are missing. A repeat with the same RequestID waits
// further.
func WaitApplied() LimitOption {
	return limitOption(func(r *samyav1.UpdateEntityRequest) { r.WaitApplied = true })
}

// ExpectedVersion changes the limit only if the entity has that version; otherwise the
// error is ErrVersionMismatch.
func ExpectedVersion(version uint64) LimitOption {
	return limitOption(func(r *samyav1.UpdateEntityRequest) { r.ExpectedVersion = version })
}

// LimitChange is the outcome of a change of a limit.
type LimitChange struct {
	// Limit and Version are the values after the change.
	Limit   int64
	Version uint64
	// MayExceedBy is by how many tokens Limit may be exceeded at most. Sites that have
	// not heard of Limit go on granting the tokens they hold.
	MayExceedBy int64
	// MissingSites are not known to have applied the change: without WaitApplied mostly
	// all sites except the site that answered.
	MissingSites []string
}

// SetLimit changes the limit of an entity, 0 to 2^53-1, as a majority of the sites
// decides. A repeat with the same RequestID changes nothing, and returns the outcome of the
// first change. The error is an *Error.
func (c *Client) SetLimit(ctx context.Context, entity string, limit int64, opts ...LimitOption) (LimitChange, error) {
	req := &samyav1.UpdateEntityRequest{Name: entity, Limit: limit, RequestId: ulid.Make().String()}
	for _, o := range opts {
		o.toLimit(req)
	}
	resp, wait := &samyav1.UpdateEntityResponse{}, time.Duration(0)
	if req.GetWaitApplied() {
		wait = appliedWait
	}
	if err := c.ask(ctx, question{
		method: samyav1.EntityService_UpdateEntity_FullMethodName, moves: true, req: req, resp: resp,
		entity: entity, requestID: req.GetRequestId(), wait: wait,
	}); err != nil {
		return LimitChange{}, err
	}
	return LimitChange{
		Limit: resp.GetEntity().GetLimit(), Version: resp.GetEntity().GetVersion(),
		MayExceedBy: resp.GetMayExceedBy(), MissingSites: resp.GetMissingSites(),
	}, nil
}

// appliedWait is a little more than the longest time a target waits for all sites.
const appliedWait = 11 * time.Second

// MoveEntity moves an entity below parent, with all entities below it and the tokens of
// them that are out; an empty parent means none. The error is an *Error, ErrInvalid if
// the parent stands below the entity.
func (c *Client) MoveEntity(ctx context.Context, entity, parent string) error {
	id := ulid.Make().String()
	return c.ask(ctx, question{
		method: samyav1.EntityService_MoveEntity_FullMethodName, moves: true,
		req: &samyav1.MoveEntityRequest{Name: entity, Parent: parent, RequestId: id}, resp: &samyav1.MoveEntityResponse{},
		entity: entity, requestID: id,
	})
}

// DeleteOption changes the deletion of an entity.
type DeleteOption func(*samyav1.DeleteEntityRequest)

// Subtree also deletes all entities below the entity.
func Subtree() DeleteOption {
	return func(r *samyav1.DeleteEntityRequest) { r.Subtree = true }
}

// DeleteEntity deletes an entity and forgets its tokens that are out. The error is an
// *Error, ErrHasChildren if other entities stand below it.
func (c *Client) DeleteEntity(ctx context.Context, entity string, opts ...DeleteOption) error {
	req := &samyav1.DeleteEntityRequest{Name: entity, RequestId: ulid.Make().String()}
	for _, o := range opts {
		o(req)
	}
	return c.ask(ctx, question{
		method: samyav1.EntityService_DeleteEntity_FullMethodName, moves: true, req: req, resp: &samyav1.DeleteEntityResponse{},
		entity: entity, requestID: req.GetRequestId(),
	})
}
