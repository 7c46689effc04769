package appmgr

import (
	"cmp"
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// Acquire implements samyav1.TokenServiceServer.
func (s *service) Acquire(ctx context.Context, in *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
	wait := siteWait
	var waitErr error
	if in.GetWait() != nil {
		wait, waitErr = duration("wait", in.GetWait())
	}
	if err := errors.Join(
		name.Entity("entity", in.GetEntity()), name.Tokens("tokens", in.GetTokens()), checkAttempt(in),
		site(in.GetSite()), waitErr, name.MinTokens("min_tokens", in.GetMinTokens(), in.GetTokens()), leaseTerms(in.GetLease()),
	); err != nil {
		return nil, apierr.FromName(err)
	}
	ctx, cancel := context.WithTimeout(ctx, wait+callTime)
	defer cancel()
	req, resp := proto.CloneOf(in), &samyav1.AcquireResponse{}
	req.RequestId = s.id(in.GetRequestId())
	c := call{
		method: samyav1.TokenService_Acquire_FullMethodName, req: req, resp: resp, read: in.GetDryRun(),
		site: req.GetSite(), requestID: req.GetRequestId(), entity: req.GetEntity(),
	}
	if !in.GetDryRun() {
		c.moves = s.movement(in, wait)
		req.NotAfter = timestamppb.New(c.moves.notAfter)
		c.moves.place = func(relay uint32, tried []string) { req.Relay, req.Tried = relay, tried }
	}
	if err := s.router.do(ctx, c); err != nil {
		return nil, err
	}
	resp.RequestId = cmp.Or(resp.GetRequestId(), req.GetRequestId())
	return resp, nil
}

// Release implements samyav1.TokenServiceServer. One that names a lease goes to
// the lease's home, and to another site, which sees to it later, only if the home
// cannot be asked.
func (s *service) Release(ctx context.Context, in *samyav1.ReleaseRequest) (*samyav1.ReleaseResponse, error) {
	least, home := int64(1), ""
	var leaseErr error
	if in.GetLease() != "" {
		least = 0
		home, _, leaseErr = name.Lease("lease", in.GetLease())
	}
	if err := errors.Join(
		name.Entity("entity", in.GetEntity()), name.Released("tokens", in.GetTokens(), least), checkAttempt(in),
		site(in.GetSite()), leaseErr,
	); err != nil {
		return nil, apierr.FromName(err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	req, resp := proto.CloneOf(in), &samyav1.ReleaseResponse{}
	req.RequestId = s.id(in.GetRequestId())
	c := call{
		method: samyav1.TokenService_Release_FullMethodName, req: req, resp: resp, first: home,
		site: req.GetSite(), requestID: req.GetRequestId(), entity: req.GetEntity(), moves: s.movement(in, 0),
	}
	req.NotAfter = timestamppb.New(c.moves.notAfter)
	c.moves.place = func(relay uint32, tried []string) { req.Relay, req.Tried = relay, tried }
	if err := s.router.do(ctx, c); err != nil {
		return nil, err
	}
	resp.RequestId = cmp.Or(resp.GetRequestId(), req.GetRequestId())
	return resp, nil
}

// leaseTerms checks what an acquire says of a lease.
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
