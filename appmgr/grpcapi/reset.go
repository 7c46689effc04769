package grpcapi

import (
	"context"
	"sync"
	"time"

	"github.com/samya-db/samya/appmgr/route"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// resetTime bounds the time for which sites are asked to reset an entity.
const resetTime = 5 * time.Second

// ResetEntity implements samyav1.EntityServiceServer. It asks all sites, once. If no site has
// reset its part the error of the first site counts.
func (s *Service) ResetEntity(ctx context.Context, in *samyav1.ResetEntityRequest) (*samyav1.ResetEntityResponse, error) {
	if err := name.Entity("name", in.GetName()); err != nil {
		return nil, apierr.FromName(err)
	}
	ctx, cancel := context.WithTimeout(ctx, resetTime)
	defer cancel()
	members, err := s.router.Members(ctx)
	if err != nil {
		return nil, err
	}
	resps, errs := make([]*samyav1.ResetEntityResponse, len(members.Sites)), make([]error, len(members.Sites))
	var asking sync.WaitGroup
	for i, m := range members.Sites {
		asking.Go(func() {
			resps[i] = &samyav1.ResetEntityResponse{}
			errs[i] = s.router.At(ctx, m.GetName(), route.Call{
				Method: samyav1.EntityService_ResetEntity_FullMethodName, Req: in, Resp: resps[i], Entity: in.GetName(),
			})
		})
	}
	asking.Wait()
	sum := &samyav1.ResetEntityResponse{}
	for i, m := range members.Sites {
		if errs[i] != nil {
			sum.MissingSites = append(sum.MissingSites, m.GetName())
			continue
		}
		sum.Returned += resps[i].GetReturned()
	}
	if len(sum.GetMissingSites()) == len(errs) && len(errs) > 0 {
		return nil, errs[0]
	}
	return sum, nil
}
