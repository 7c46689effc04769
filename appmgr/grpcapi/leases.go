package grpcapi

import (
	"context"
	"errors"

	"github.com/samya-db/samya/appmgr/route"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/checks"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// RenewLease implements samyav1.TokenServiceServer, at the lease's home. It may
// be repeated at will.
func (s *Service) RenewLease(ctx context.Context, in *samyav1.RenewLeaseRequest) (*samyav1.RenewLeaseResponse, error) {
	home, _, err := name.Lease("lease", in.GetLease())
	var ttlErr error
	if in.GetTtl() != nil {
		ttlErr = checks.TTL("ttl", in.GetTtl())
	}
	if err := errors.Join(err, ttlErr); err != nil {
		return nil, apierr.FromName(err)
	}
	resp := &samyav1.RenewLeaseResponse{}
	if err := s.admin(ctx, route.Call{
		Method: samyav1.TokenService_RenewLease_FullMethodName, Req: in, Resp: resp, Site: home, By: "lease",
	}); err != nil {
		return nil, err
	}
	return resp, nil
}

// CommitLease implements samyav1.TokenServiceServer, at the lease's home.
func (s *Service) CommitLease(ctx context.Context, in *samyav1.CommitLeaseRequest) (*samyav1.CommitLeaseResponse, error) {
	home, _, err := name.Lease("lease", in.GetLease())
	return change(ctx, s, route.Call{Method: samyav1.TokenService_CommitLease_FullMethodName, Site: home, By: "lease"},
		in, &samyav1.CommitLeaseResponse{}, err, name.Released("tokens", in.GetTokens(), 0))
}
