package site

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/checks"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/wire"
)

const (
	// decideWait is how long a change may take to be decided.
	decideWait = 10 * time.Second
	// lookAt is the number of entities that the core looks at in a step of a search. Other
	// requests wait for no more than a step.
	lookAt = 4096
	// searchTime is how long a search goes on for a page.
	searchTime = 200 * time.Millisecond
)

// entities serves samyav1.EntityService.
type entities struct {
	samyav1.UnimplementedEntityServiceServer
	*Site
}

// CreateEntity implements samyav1.EntityServiceServer.
func (s entities) CreateEntity(
	ctx context.Context, r *samyav1.CreateEntityRequest,
) (*samyav1.CreateEntityResponse, error) {
	terms, err := checks.Create(r)
	if err = errors.Join(err, noDryRun(r.GetDryRun())); err != nil {
		return nil, apierr.FromName(err)
	}
	a, err := s.change(ctx, &input.Change{
		Kind: input.CreateEntity, Name: r.GetName(), Limit: core.Tokens(r.GetLimit()), Parent: r.GetParent(), Rate: terms,
		RequestID: r.GetRequestId(),
	})
	if err != nil {
		return nil, err
	}
	return &samyav1.CreateEntityResponse{Entity: entityOf(a.View())}, nil
}

// noDryRun refuses a dry run: what a change would do depends on the other sites.
func noDryRun(dry bool) error {
	if dry {
		return &name.Error{Field: "dry_run", Problem: "only an app manager tells what a change would do"}
	}
	return nil
}

// UpdateEntity implements samyav1.EntityServiceServer.
func (s entities) UpdateEntity(
	ctx context.Context, r *samyav1.UpdateEntityRequest,
) (*samyav1.UpdateEntityResponse, error) {
	if err := noDryRun(r.GetDryRun()); err != nil {
		return nil, apierr.FromName(err)
	}
	a, err := s.change(ctx, &input.Change{
		Kind: input.SetLimit, Name: r.GetName(), Limit: core.Tokens(r.GetLimit()),
		Expected: r.GetExpectedVersion(), RequestID: r.GetRequestId(), Applied: r.GetWaitApplied(),
	})
	if err != nil {
		return nil, err
	}
	return &samyav1.UpdateEntityResponse{
		Entity: entityOf(a.View()), MayExceedBy: int64(a.View().MayExceed), MissingSites: wire.Names(a.Unapplied()),
	}, nil
}

// ReconcileEntity implements samyav1.EntityServiceServer.
func (s entities) ReconcileEntity(
	ctx context.Context, r *samyav1.ReconcileEntityRequest,
) (*samyav1.ReconcileEntityResponse, error) {
	cut, err := checks.Reconcile(r)
	if err != nil {
		return nil, apierr.FromName(err)
	}
	truth := input.Truth{
		InUse: core.Tokens(r.GetInUse()), Counted: core.Tokens(cut.Counted), Returning: core.Tokens(cut.Returning), Generation: cut.Generation,
	}
	a, err := s.change(ctx, &input.Change{
		Kind: input.Reconcile, Name: r.GetName(), Expected: cut.Version, RequestID: r.GetRequestId(), Truth: truth,
	})
	if err != nil {
		return nil, err
	}
	return &samyav1.ReconcileEntityResponse{
		Entity: entityOf(a.View()), Returned: cut.WrittenOff + int64(truth.Drift()), MayExceedBy: int64(a.View().MayExceed),
		MissingSites: wire.Names(a.Unapplied()),
	}, nil
}

// DeleteEntity implements samyav1.EntityServiceServer.
func (s entities) DeleteEntity(
	ctx context.Context, r *samyav1.DeleteEntityRequest,
) (*samyav1.DeleteEntityResponse, error) {
	_, err := s.change(ctx, &input.Change{
		Kind: input.DeleteEntity, Name: r.GetName(), Subtree: r.GetSubtree(), Expected: r.GetExpectedGeneration(),
		RequestID: r.GetRequestId(),
	})
	if err != nil {
		return nil, err
	}
	return &samyav1.DeleteEntityResponse{}, nil
}

// MoveEntity implements samyav1.EntityServiceServer.
func (s entities) MoveEntity(
	ctx context.Context, r *samyav1.MoveEntityRequest,
) (*samyav1.MoveEntityResponse, error) {
	a, err := s.change(ctx, &input.Change{
		Kind: input.MoveEntity, Name: r.GetName(), Parent: r.GetParent(),
		Expected: r.GetExpectedGeneration(), RequestID: r.GetRequestId(),
	})
	if err != nil {
		return nil, err
	}
	return &samyav1.MoveEntityResponse{Entity: entityOf(a.View())}, nil
}

func (s entities) change(ctx context.Context, ch *input.Change) (answer.Answer, error) {
	err := errors.Join(
		name.Entity("name", ch.Name), name.Limit("limit", int64(ch.Limit)), name.Parent("parent", ch.Parent), checks.RequestID("request_id", ch.RequestID),
	)
	if err != nil {
		return answer.Answer{}, apierr.FromName(err)
	}
	before := s.before(ctx, ch)
	a, err := s.decide(ctx, ch)
	if err == nil {
		s.remember(ctx, ch, before, a)
	}
	return a, err
}

// decide has the sites decide a change with checked fields.
func (s *Site) decide(ctx context.Context, ch *input.Change) (answer.Answer, error) {
	if ch.RequestID == "" {
		ch.RequestID = ulid.Make().String()
	}
	if err := expired(ctx); err != nil {
		return answer.Answer{}, err
	}
	// The core may hold on to a change for a first phase longer, to tell for sure that
	// nothing was done.
	collect, _ := s.cfg.timings()
	lateness := collect + 50*time.Millisecond
	whole := within(timeLeft(ctx), decideWait+lateness)
	ch.Wait = ticks(max(whole/2, whole-lateness))
	a, err := s.engine.Do(ctx, func(c input.Call) input.Input { ch.Call = c; return ch })
	if err != nil {
		return a, s.broken(err, asked{entity: ch.Name, requestID: ch.RequestID})
	}
	return a, s.refusal(ctx, a, ch)
}

// ListEntities implements samyav1.EntityServiceServer.
func (s entities) ListEntities(
	ctx context.Context, r *samyav1.ListEntitiesRequest,
) (*samyav1.ListEntitiesResponse, error) {
	after, tokenErr := pageToken(r.GetPageToken())
	if err := errors.Join(checks.List(r), tokenErr); err != nil {
		return nil, apierr.FromName(err)
	}
	in := input.List{
		Prefix: r.GetPrefix(), After: after, Count: cmp.Or(int(r.GetPageSize()), 100),
		Contains: strings.ToLower(r.GetContains()), Parent: r.GetParent(), Top: r.GetTop(), Look: lookAt,
	}
	resp := &samyav1.ListEntitiesResponse{}
	for began := time.Now(); ; {
		a, err := s.list(ctx, in)
		if err != nil {
			return nil, s.broken(err, asked{})
		}
		for i := range a.Views() {
			resp.Entities = append(resp.Entities, entityOf(&a.Views()[i]))
		}
		in.After, in.Count = a.After(), in.Count-len(a.Views())
		switch {
		case !a.More:
			return resp, nil
		case in.Count == 0 || time.Since(began) > searchTime:
			resp.NextPageToken = base64.RawURLEncoding.EncodeToString([]byte(in.After))
			return resp, nil
		}
	}
}

// list asks the core for a page of its list.
func (s entities) list(ctx context.Context, in input.List) (answer.Answer, error) {
	return s.engine.Do(ctx, func(c input.Call) input.Input {
		in.Call = c
		return &in
	})
}

// pageToken returns the name that a page starts behind.
func pageToken(token string) (string, error) {
	if token == "" {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || name.Entity("page_token", string(raw)) != nil {
		return "", &name.Error{Field: "page_token", Problem: "is none that a list returned"}
	}
	return string(raw), nil
}
