package grpcapi

import (
	"cmp"
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/samya-db/samya/appmgr/route"
	"github.com/samya-db/samya/internal/access"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/checks"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// Acquire implements samyav1.TokenServiceServer.
func (s *Service) Acquire(ctx context.Context, in *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
	return s.AcquireInPlace(ctx, proto.CloneOf(in))
}

// AcquireInPlace is Acquire, but may change req.
func (s *Service) AcquireInPlace(ctx context.Context, req *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
	if err := boundary.Acquire(req); err != nil {
		return nil, apierr.FromName(err)
	}
	wait := checks.WaitOf(req.GetWait(), siteWait)
	req.Acknowledged = 0 // a site asks another about a try of this app manager
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
	if err := boundary.Release(req); err != nil {
		return nil, apierr.FromName(err)
	}
	req.Acknowledged = 0 // a site asks another about a try of this app manager
	moves := s.router.Movement(req, 0)
	req.RequestId = s.id(req.GetRequestId())
	c := route.Call{
		First: checks.Home(req), Site: req.GetSite(), RequestID: req.GetRequestId(), Entity: req.GetEntity(),
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

// boundary is the check of requests from outside.
var boundary = checks.Boundary{MaxSites: route.MaxSites}
