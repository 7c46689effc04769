package appmgr

import (
	"cmp"
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/samya-db/samya/internal/access"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// Acquire implements samyav1.TokenServiceServer.
func (s *service) Acquire(ctx context.Context, in *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
	return s.acquire(ctx, proto.CloneOf(in))
}

// acquire is Acquire, but may change req.
func (s *service) acquire(ctx context.Context, req *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
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
	moves := s.movement(req, wait)
	req.RequestId = s.id(req.GetRequestId())
	c := call{site: req.GetSite(), requestID: req.GetRequestId(), entity: req.GetEntity()}
	if req.GetDryRun() {
		return s.dryRun(ctx, c, req, wait)
	}
	if wait > 0 {
		at, err := s.waiting.begin(access.CallerOf(ctx))
		if err != nil {
			return nil, err
		}
		defer s.waiting.end(at)
	}
	c.moves, c.until = moves, time.Now().Add(wait+callTime)
	req.NotAfter = timestamppb.New(c.moves.notAfter)
	c.moves.operation = &samyav1.Operation{Operation: &samyav1.Operation_Acquire{Acquire: req}}
	if err := s.router.do(ctx, c); err != nil {
		return nil, err
	}
	resp := c.moves.result.GetAcquire()
	if resp == nil {
		return nil, s.router.unknown(c, "", errForeign)
	}
	resp.RequestId = cmp.Or(resp.GetRequestId(), req.GetRequestId())
	return resp, nil
}

// dryRun makes an acquire that moves nothing.
func (s *service) dryRun(ctx context.Context, c call, req *samyav1.AcquireRequest, wait time.Duration) (*samyav1.AcquireResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, wait+callTime)
	defer cancel()
	resp := &samyav1.AcquireResponse{}
	c.method, c.req, c.resp, c.read = samyav1.TokenService_Acquire_FullMethodName, req, resp, true
	if err := s.router.do(ctx, c); err != nil {
		return nil, err
	}
	resp.RequestId = cmp.Or(resp.GetRequestId(), req.GetRequestId())
	return resp, nil
}

// Release implements samyav1.TokenServiceServer. A release of a lease goes to the lease's
// home. Only if the home cannot be asked does it go to another site, which passes it on
// later.
func (s *service) Release(ctx context.Context, in *samyav1.ReleaseRequest) (*samyav1.ReleaseResponse, error) {
	return s.release(ctx, proto.CloneOf(in))
}

// release is Release, but may change req.
func (s *service) release(ctx context.Context, req *samyav1.ReleaseRequest) (*samyav1.ReleaseResponse, error) {
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
	moves := s.movement(req, 0)
	req.RequestId = s.id(req.GetRequestId())
	c := call{
		first: home, site: req.GetSite(), requestID: req.GetRequestId(), entity: req.GetEntity(),
		moves: moves, until: time.Now().Add(callTime),
	}
	req.NotAfter = timestamppb.New(c.moves.notAfter)
	c.moves.operation = &samyav1.Operation{Operation: &samyav1.Operation_Release{Release: req}}
	if err := s.router.do(ctx, c); err != nil {
		return nil, err
	}
	resp := c.moves.result.GetRelease()
	if resp == nil {
		return nil, s.router.unknown(c, "", errForeign)
	}
	resp.RequestId = cmp.Or(resp.GetRequestId(), req.GetRequestId())
	return resp, nil
}

// errForeign is the cause of an unknown outcome where the answer belongs to another
// request.
var errForeign = errors.New("the site answered what it was not asked")

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
