package client

import (
	"context"
	"time"

	"github.com/oklog/ulid/v2"
	"google.golang.org/protobuf/types/known/durationpb"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// Entity is a resource with a limit, and what the sites' books of it add up to.
type Entity struct {
	// Name is its name.
	Name string
	// Limit is the most tokens that may be out at once.
	Limit int64
	// Generation tells it apart from earlier ones of the same name.
	Generation uint64
	// Version counts the changes of the limit; it starts at 1.
	Version uint64
	// Parent is the entity that it stands below; empty for none.
	Parent string
	// Children is how many entities stand right below it.
	Children int
	// Available are the tokens that can be acquired now, over the sites seen. Negative
	// where the limit was lowered below what is out.
	Available int64
	// Acquired are the tokens that are out, over the sites seen.
	Acquired int64
	// InTransit are tokens on their way between sites; only meaningful if Complete.
	InTransit int64
	// MayExceedBy is by how many tokens Limit may be exceeded at most, as sites that may
	// not have heard of it go on granting what they hold; 0 once all have.
	MayExceedBy int64
	// Complete: every site has answered, or no figure is older than was asked for.
	Complete bool
	// Consistent: tokens in transit are counted once. Only an exact read tells.
	Consistent bool
}

// ReadOption says what a read is content with.
type ReadOption func(*samyav1.GetEntityRequest)

// Exact asks all sites, until what they tell is a consistent cut. It is the default
// of app managers; sites know only themselves.
func Exact() ReadOption {
	return func(r *samyav1.GetEntityRequest) { r.Consistency = samyav1.Consistency_CONSISTENCY_EXACT }
}

// Bounded is content with what the site asked has heard of the others, if that is
// not older than an age: 0 to 1h.
func Bounded(age time.Duration) ReadOption {
	return func(r *samyav1.GetEntityRequest) {
		r.Consistency, r.MaxAge = samyav1.Consistency_CONSISTENCY_BOUNDED, durationpb.New(age)
	}
}

// Local is content with the share of the one site asked.
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
	e, u := resp.GetEntity(), resp.GetUsage()
	return Entity{
		Name: e.GetName(), Limit: e.GetLimit(), Generation: e.GetGeneration(), Version: e.GetVersion(),
		Parent: e.GetParent(), Children: int(e.GetChildren()),
		Available: u.GetAvailable(), Acquired: u.GetAcquired(), InTransit: u.GetInTransit(),
		Complete: u.GetComplete(), Consistent: u.GetConsistent(), MayExceedBy: u.GetMayExceedBy(),
	}, nil
}

// EntityOption changes the creation of an entity.
type EntityOption func(*samyav1.CreateEntityRequest)

// Below has the entity stand below another: what is acquired of it is acquired of that
// one too, and of all above that one.
func Below(parent string) EntityOption {
	return func(r *samyav1.CreateEntityRequest) { r.Parent = parent }
}

// CreateID has the creation made under a request id, 1 to 128 printable characters. A
// repeat of a creation of unknown outcome names the same id: it is told what became of
// the first, and not that the entity exists.
func CreateID(id string) EntityOption {
	return func(r *samyav1.CreateEntityRequest) { r.RequestId = id }
}

// CreateEntity creates an entity with a limit, 0 to 2^53-1, as a majority of the
// sites decides. The error is an *Error, ErrEntityExists if there is one of that name,
// and ErrParentNotFound if there is none to stand below.
func (c *Client) CreateEntity(ctx context.Context, entity string, limit int64, opts ...EntityOption) error {
	req := &samyav1.CreateEntityRequest{Name: entity, Limit: limit, RequestId: ulid.Make().String()}
	for _, o := range opts {
		o(req)
	}
	return c.ask(ctx, question{
		method: samyav1.EntityService_CreateEntity_FullMethodName, moves: true, req: req, resp: &samyav1.CreateEntityResponse{},
		entity: entity, requestID: req.GetRequestId(),
	})
}

// LimitOption changes a change of a limit.
type LimitOption func(*samyav1.UpdateEntityRequest)

// WaitApplied has the change of a limit answered once all sites have applied it, or
// after 10s, or shortly before the deadline of the call: LimitChange tells which sites
// are missing then. A repeat with the same LimitID waits further.
func WaitApplied() LimitOption {
	return func(r *samyav1.UpdateEntityRequest) { r.WaitApplied = true }
}

// ExpectedVersion has the limit changed only if the entity has that version; the error
// is ErrVersionMismatch else.
func ExpectedVersion(version uint64) LimitOption {
	return func(r *samyav1.UpdateEntityRequest) { r.ExpectedVersion = version }
}

// LimitID has the change made under a request id, 1 to 128 printable characters. A
// repeat of the id changes nothing, and is told what became of the first.
func LimitID(id string) LimitOption {
	return func(r *samyav1.UpdateEntityRequest) { r.RequestId = id }
}

// LimitChange is what a change of a limit has come to.
type LimitChange struct {
	// Limit and Version are those after the change.
	Limit   int64
	Version uint64
	// MayExceedBy is by how many tokens Limit may be exceeded at most, as sites that may
	// not have heard of it go on granting what they hold.
	MayExceedBy int64
	// MissingSites are not known to have applied the change: without WaitApplied mostly
	// all but one.
	MissingSites []string
}

// SetLimit changes the limit of an entity, 0 to 2^53-1, as a majority of the sites
// decides. The error is an *Error.
func (c *Client) SetLimit(ctx context.Context, entity string, limit int64, opts ...LimitOption) (LimitChange, error) {
	req := &samyav1.UpdateEntityRequest{Name: entity, Limit: limit, RequestId: ulid.Make().String()}
	for _, o := range opts {
		o(req)
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

// appliedWait is for how long a target waits for all sites at most, and a little more.
const appliedWait = 11 * time.Second

// MoveEntity has an entity, with all that stands below it and the tokens that are out
// of them, stand below another; an empty parent means none. The error is an *Error,
// ErrInvalid if the parent stands below the entity.
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

// Subtree deletes all that stands below the entity as well.
func Subtree() DeleteOption {
	return func(r *samyav1.DeleteEntityRequest) { r.Subtree = true }
}

// DeleteEntity deletes an entity. Its tokens that are out are forgotten. The error is
// an *Error, ErrHasChildren if others stand below it.
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
