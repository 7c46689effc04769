package grpcapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/samya-db/samya/appmgr/route"
	"github.com/samya-db/samya/internal/access"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// Acquire implements samyav1.TokenServiceServer.
func (s *Service) Acquire(ctx context.Context, in *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
	return s.AcquireInPlace(ctx, proto.CloneOf(in))
}

// AcquireInPlace is Acquire, but may change req.
func (s *Service) AcquireInPlace(ctx context.Context, req *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
	wait := siteWait
	var waitErr error
	if req.GetWait() != nil {
		wait, waitErr = duration("wait", req.GetWait())
	}
	if err := errors.Join(
		name.Entity("entity", req.GetEntity()), name.Tokens("tokens", req.GetTokens()), checkAttempt(req),
		site(req.GetSite()), waitErr, name.MinTokens("min_tokens", req.GetMinTokens(), req.GetTokens()), leaseTerms(req.GetLease()),
	); err != nil {
		return nil, apierr.FromName(err)
	}
	moves := s.router.Movement(req, wait)
	req.RequestId = s.id(req.GetRequestId())
	c := route.Call{Site: req.GetSite(), RequestID: req.GetRequestId(), Entity: req.GetEntity()}
	if req.GetDryRun() {
		return s.dryRun(ctx, c, req, wait)
	}
	if wait > 0 {
		at, err := s.waiting.Begin(access.CallerOf(ctx))
		if err != nil {
			return nil, err
		}
		defer s.waiting.End(at)
	}
	c.Moves, c.Until = moves, time.Now().Add(wait+changeTime)
	req.NotAfter = timestamppb.New(c.Moves.NotAfter)
	c.Moves.Operation = &samyav1.Operation{Operation: &samyav1.Operation_Acquire{Acquire: req}}
	if err := s.router.Do(ctx, c); err != nil {
		return nil, err
	}
	resp := c.Moves.Result.GetAcquire()
	if resp == nil {
		return nil, s.router.Unknown(c, "", errForeign)
	}
	resp.RequestId = cmp.Or(resp.GetRequestId(), req.GetRequestId())
	return resp, nil
}

// dryRun makes an acquire that moves nothing.
func (s *Service) dryRun(ctx context.Context, c route.Call, req *samyav1.AcquireRequest, wait time.Duration) (*samyav1.AcquireResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, wait+changeTime)
	defer cancel()
	resp := &samyav1.AcquireResponse{}
	c.Method, c.Req, c.Resp, c.Read = samyav1.TokenService_Acquire_FullMethodName, req, resp, true
	if err := s.router.Do(ctx, c); err != nil {
		return nil, err
	}
	resp.RequestId = cmp.Or(resp.GetRequestId(), req.GetRequestId())
	return resp, nil
}

// Release implements samyav1.TokenServiceServer. A release of a lease goes to the lease's
// home. Only if the home cannot be asked does it go to another site, which passes it on
// later.
func (s *Service) Release(ctx context.Context, in *samyav1.ReleaseRequest) (*samyav1.ReleaseResponse, error) {
	return s.ReleaseInPlace(ctx, proto.CloneOf(in))
}

// ReleaseInPlace is Release, but may change req.
func (s *Service) ReleaseInPlace(ctx context.Context, req *samyav1.ReleaseRequest) (*samyav1.ReleaseResponse, error) {
	least, home := int64(1), ""
	var leaseErr error
	if req.GetLease() != "" {
		least = 0
		home, _, leaseErr = name.Lease("lease", req.GetLease())
	}
	if err := errors.Join(
		name.Entity("entity", req.GetEntity()), name.Released("tokens", req.GetTokens(), least), checkAttempt(req),
		site(req.GetSite()), leaseErr,
	); err != nil {
		return nil, apierr.FromName(err)
	}
	moves := s.router.Movement(req, 0)
	req.RequestId = s.id(req.GetRequestId())
	c := route.Call{
		First: home, Site: req.GetSite(), RequestID: req.GetRequestId(), Entity: req.GetEntity(),
		Moves: moves, Until: time.Now().Add(changeTime),
	}
	req.NotAfter = timestamppb.New(c.Moves.NotAfter)
	c.Moves.Operation = &samyav1.Operation{Operation: &samyav1.Operation_Release{Release: req}}
	if err := s.router.Do(ctx, c); err != nil {
		return nil, err
	}
	resp := c.Moves.Result.GetRelease()
	if resp == nil {
		return nil, s.router.Unknown(c, "", errForeign)
	}
	resp.RequestId = cmp.Or(resp.GetRequestId(), req.GetRequestId())
	return resp, nil
}

// errForeign is the cause of an unknown outcome where the answer belongs to another
// request.
var errForeign = errors.New("the site answered what it was not asked")

// checkAttempt checks the fields of a request that tell of its attempts.
func checkAttempt(r route.Attempted) error {
	errs := []error{requestID(r.GetRequestId()), name.Attempt("attempt", int64(r.GetAttempt()))}
	bad := func(field, problem string) { errs = append(errs, &name.Error{Field: field, Problem: problem}) }
	for i, s := range r.GetTried() {
		if i == route.MaxSites {
			bad("tried", fmt.Sprintf("%d sites, at most %d", len(r.GetTried()), route.MaxSites))
			break
		}
		errs = append(errs, name.Site("tried", s))
	}
	switch t := r.GetNotAfter(); {
	case t != nil && t.CheckValid() != nil:
		bad("not_after", "no valid time")
	case t == nil && r.GetAttempt() > 1:
		bad("not_after", "missing: an attempt after the first has that of the first")
	}
	if r.GetAttempt() > 1 && r.GetRequestId() == "" {
		bad("request_id", "missing: an attempt after the first has that of the first")
	}
	if r.GetAttempt() <= 1 && len(r.GetTried()) > 0 {
		bad("tried", "only in attempts after the first")
	}
	if r.GetRelay() != 0 {
		bad("relay", "is for app managers to set")
	}
	return errors.Join(errs...)
}

func site(s string) error {
	if s == "" {
		return nil
	}
	return name.Site("site", s)
}

// leaseTerms checks the lease terms of an acquire.
func leaseTerms(l *samyav1.LeaseTerms) error {
	if l == nil {
		return nil
	}
	return errors.Join(ttl("lease.ttl", l.GetTtl()), name.Holder("lease.holder", l.GetHolder()))
}

// ttl checks a time to live.
func ttl(field string, d interface {
	CheckValid() error
	AsDuration() time.Duration
},
) error {
	if d.CheckValid() != nil {
		return &name.Error{Field: field, Problem: "no valid duration, at least 1s and at most 168h (7 days)"}
	}
	return name.TTL(field, d.AsDuration())
}
