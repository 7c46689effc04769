package grpcapi

import (
	"context"
	"errors"

	"google.golang.org/protobuf/proto"

	"github.com/samya-db/samya/appmgr/route"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// RenewLease implements samyav1.TokenServiceServer, at the lease's home. It may
// be repeated at will.
func (s *Service) RenewLease(ctx context.Context, in *samyav1.RenewLeaseRequest) (*samyav1.RenewLeaseResponse, error) {
	home, _, err := name.Lease("lease", in.GetLease())
	var ttlErr error
	if in.GetTtl() != nil {
		ttlErr = ttl("ttl", in.GetTtl())
	}
	if err := errors.Join(err, ttlErr); err != nil {
		return nil, apierr.FromName(err)
	}
	resp := &samyav1.RenewLeaseResponse{}
	return answer(resp, s.admin(ctx, route.Call{
		Method: samyav1.TokenService_RenewLease_FullMethodName, Req: in, Resp: resp, Site: home, By: "lease",
	}))
}

// CommitLease implements samyav1.TokenServiceServer, at the lease's home.
func (s *Service) CommitLease(ctx context.Context, in *samyav1.CommitLeaseRequest) (*samyav1.CommitLeaseResponse, error) {
	home, _, err := name.Lease("lease", in.GetLease())
	if err := errors.Join(err, name.Released("tokens", in.GetTokens(), 0), requestID(in.GetRequestId())); err != nil {
		return nil, apierr.FromName(err)
	}
	req, resp := proto.CloneOf(in), &samyav1.CommitLeaseResponse{}
	req.RequestId = s.id(in.GetRequestId())
	return answer(resp, s.admin(ctx, route.Call{
		Method: samyav1.TokenService_CommitLease_FullMethodName, Req: req, Resp: resp, Site: home, By: "lease", RequestID: req.GetRequestId(),
	}))
}
