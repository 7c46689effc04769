package failuretest

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/wan"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// chain is an administrator who creates an entity, changes its limit and deletes it,
// again and again. Each change follows the answer to the last.
type chain struct {
	name string
	by   *client

	steps int
	// open is the change without an answer; last is the latest answered change.
	open, last *change
	checked    bool
}

// change is a change and its answer.
type change struct {
	kind   changeKind
	limit  int64
	id     string
	entity *samyav1.Entity // of the answer; nil for a deletion
}

type changeKind uint8

const (
	creation changeKind = iota
	limiting
	deletion
	changeKinds
)

// step makes the next change, or asks for the answer of the last.
func (c *chain) step(ctx context.Context, v *victim) {
	if c.open == nil {
		c.steps++
		c.open = &change{
			kind: changeKind((c.steps - 1) % int(changeKinds)), limit: int64(10 + c.steps%7), id: fmt.Sprintf("%s-%d", c.name, c.steps),
		}
	}
	c.settle(ctx, v)
}

// ask asks for the answer of the last change again, after the victim's start.
func (c *chain) ask(ctx context.Context, v *victim) {
	if c.open != nil {
		c.settle(ctx, v)
	}
	if c.open == nil && c.last != nil && !c.checked {
		c.check(ctx, v)
	}
}

// settle sends the open change until it has an answer. Its end is to be checked
// at the victim's next start.
func (c *chain) settle(ctx context.Context, v *victim) {
	for ctx.Err() == nil {
		e, err := c.send(ctx, c.open, c.open.limit)
		switch reason := reasonOf(err); {
		case err == nil:
			c.open.entity = e
			c.last, c.open, c.checked = c.open, nil, false
			v.mu.Lock()
			v.counts.changed++
			v.answered = v.answered || c.by == v.clients[0]
			v.mu.Unlock()
			return
		case reason == apierr.EntityExists, reason == apierr.EntityNotFound,
			reason == apierr.VersionMismatch, reason == apierr.RequestIDReused:
			v.lose("change %+v after %+v: %v", c.open, c.last, err)
			return
		}
	}
}

// check asks for the last answer again, and checks that it holds.
func (c *chain) check(ctx context.Context, v *victim) {
	e, err := c.send(ctx, c.last, c.last.limit)
	for reasonOf(err) == apierr.SiteUnavailable && wan.Wait(ctx, time.Millisecond) == nil {
		// It is not vouched for yet.
		e, err = c.send(ctx, c.last, c.last.limit)
	}
	if err != nil && ctx.Err() != nil || reasonOf(err) == apierr.OutcomeUnknown {
		return // the site went down; the next start will tell
	}
	if err != nil || e.String() != c.last.entity.String() {
		v.lose("change %+v was answered %v, and the repeat %v, %v", c.last, c.last.entity, e, err)
		return
	}
	got, err := v.clients[0].GetEntity(ctx, &samyav1.GetEntityRequest{Name: c.name}, grpc.WaitForReady(true))
	switch {
	case c.by != v.clients[0]: // the victim may learn of it later
	case err != nil && reasonOf(err) != apierr.EntityNotFound:
		return
	case (err != nil) != (c.last.kind == deletion), err == nil && got.GetEntity().String() != c.last.entity.String():
		v.lose("change %+v was answered %v, and the entity is %v, %v", c.last, c.last.entity, got.GetEntity(), err)
	}
	c.checked = true
}

// send sends a change, waiting for the site if it is down.
func (c *chain) send(ctx context.Context, ch *change, limit int64) (*samyav1.Entity, error) {
	wait := grpc.WaitForReady(true)
	switch ch.kind {
	case creation:
		resp, err := c.by.CreateEntity(ctx, &samyav1.CreateEntityRequest{Name: c.name, Limit: limit, RequestId: ch.id}, wait)
		return resp.GetEntity(), err
	case limiting:
		resp, err := c.by.UpdateEntity(ctx, &samyav1.UpdateEntityRequest{Name: c.name, Limit: limit, RequestId: ch.id}, wait)
		return resp.GetEntity(), err
	default:
		_, err := c.by.DeleteEntity(ctx, &samyav1.DeleteEntityRequest{Name: c.name, RequestId: ch.id}, wait)
		return nil, err
	}
}

// reasonOf returns why a call failed; empty: the call succeeded.
func reasonOf(err error) apierr.Reason {
	if err == nil {
		return ""
	}
	return apierr.FromGRPC(err).Reason
}
