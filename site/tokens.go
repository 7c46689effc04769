package site

import (
	"context"
	"errors"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/core"
)

// defaultWait is how long an acquire that names no wait may wait for tokens.
// It is answered sooner as soon as it is known that there are none.
const defaultWait = 5 * time.Second

// tokens serves samyav1.TokenService.
type tokens struct {
	samyav1.UnimplementedTokenServiceServer
	*Site
}

// Acquire implements samyav1.TokenServiceServer.
func (s tokens) Acquire(ctx context.Context, r *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
	wait, waitErr := waitOf(r)
	tries, triesErr := s.tries(r)
	terms, leaseErr := leaseTerms(r.GetLease())
	least := name.MinTokens("min_tokens", r.GetMinTokens(), r.GetTokens())
	if r.GetTokens() < 1 {
		// Said of the tokens alone.
		least = nil
	}
	q, err := s.admit(ctx, r, 1, waitErr, triesErr, leaseErr, least)
	if err != nil {
		return nil, err
	}
	if terms != nil {
		terms.ID = q.requestID
	}
	in := &core.Acquire{
		Entity: q.entity, Tokens: core.Tokens(q.tokens), Request: keyOf(q.requestID),
		Wait: ticks(within(ctx, wait)), Least: core.Tokens(r.GetMinTokens()), DryRun: r.GetDryRun(), Lease: terms, Tries: tries,
	}
	a, err := s.engine.Do(ctx, func(c core.Call) core.Input { in.Call = c; return in })
	if err != nil {
		return nil, s.broken(err, q)
	}
	if err := s.failure(a, q); err != nil {
		return nil, err
	}
	resp := &samyav1.AcquireResponse{
		Tokens: int64(a.Tokens), RequestId: q.requestID, Site: s.cfg.Name, Left: int64(a.Left),
	}
	if terms != nil && !r.GetDryRun() {
		// Of a lease that has ended a repeat is told the name, and that nothing is left.
		a.Lease.ID, a.Lease.Entity, a.Lease.Holder = q.requestID, q.entity, r.GetLease().GetHolder()
		resp.Lease = s.lease(&a.Lease)
	}
	return resp, nil
}

// Release implements samyav1.TokenServiceServer.
func (s tokens) Release(ctx context.Context, r *samyav1.ReleaseRequest) (*samyav1.ReleaseResponse, error) {
	tries, triesErr := s.tries(r)
	lease, leaseErr := s.leaseRef(r.GetLease())
	least := int64(1)
	if r.GetLease() != "" {
		least = 0
	}
	q, err := s.admit(ctx, r, least, triesErr, leaseErr)
	if err != nil {
		return nil, err
	}
	in := &core.Release{
		Entity: q.entity, Tokens: core.Tokens(q.tokens), Request: keyOf(q.requestID), Lease: lease, Tries: tries,
	}
	a, err := s.engine.Do(ctx, func(c core.Call) core.Input { in.Call = c; return in })
	if err != nil {
		return nil, s.broken(err, q)
	}
	if err := s.failure(a, q); err != nil {
		return nil, err
	}
	return &samyav1.ReleaseResponse{
		Tokens: int64(a.Tokens), RequestId: q.requestID, Site: s.cfg.Name, Left: int64(a.Left), Parked: a.Parked,
	}, nil
}

// movement is what acquires and releases have in common.
type movement interface {
	GetEntity() string
	GetTokens() int64
	GetRequestId() string
	GetSite() string
}

// admit checks a request's fields and deadline before anything is begun, and
// gives it an id if it has none. More are what is wrong with its other fields.
func (s *Site) admit(ctx context.Context, r movement, least int64, more ...error) (asked, error) {
	q := asked{entity: r.GetEntity(), requestID: r.GetRequestId(), tokens: r.GetTokens()}
	var idErr, siteErr error
	if q.requestID == "" {
		q.requestID = ulid.Make().String()
	} else {
		idErr = name.RequestID("request_id", q.requestID)
	}
	if at := r.GetSite(); at != "" && at != s.cfg.Name {
		siteErr = &name.Error{Field: "site", Problem: "this is site " + s.cfg.Name}
	}
	entityErr, tokensErr := name.Entity("entity", q.entity), name.Released("tokens", q.tokens, least)
	if err := errors.Join(entityErr, tokensErr, idErr, siteErr, errors.Join(more...)); err != nil {
		return q, apierr.FromName(err)
	}
	return q, expired(ctx)
}

// expired refuses what nobody waits for any more, before it is begun.
func expired(ctx context.Context) error {
	if ctx.Err() != nil {
		return apierr.Wrap(apierr.DeadlineExceeded, context.Cause(ctx))
	}
	return nil
}

// waitOf returns how long a request may wait for tokens.
func waitOf(r *samyav1.AcquireRequest) (time.Duration, error) {
	switch w := r.GetWait(); {
	case w == nil:
		return defaultWait, nil
	case w.CheckValid() != nil:
		return 0, &name.Error{Field: "wait", Problem: "no valid duration"}
	default:
		return w.AsDuration(), name.Wait("wait", w.AsDuration())
	}
}

// within shortens a wait so that its answer can reach a caller in time.
func within(ctx context.Context, wait time.Duration) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return wait
	}
	left := time.Until(deadline)
	return max(0, min(wait, left-min(left/10, 50*time.Millisecond)))
}

func ticks(d time.Duration) core.Tick { return core.Tick(d.Milliseconds()) }

// keyOf is the part of a request id that is remembered: enough of a
// collision-resistant hash that no two ids meet.
func keyOf(requestID string) core.RequestKey { return core.KeyOf(requestID) }
