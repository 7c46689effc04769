package grpcapi

import (
	"cmp"
	"context"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/samya-db/samya/appmgr/route"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/checks"
	"github.com/samya-db/samya/internal/parts"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// AcquireAll makes an atomic batch at one site, and like an acquire at the next where
// that is safe. The caller has checked the operations; acquireAll may change req.
func (s *Service) AcquireAll(ctx context.Context, req *samyav1.BatchRequest) (*samyav1.BatchResponse, error) {
	if err := boundary.Batch(req); err != nil {
		return nil, apierr.FromName(err)
	}
	wait := checks.WaitOf(req.GetWait(), siteWait)
	req.Acknowledged = 0 // a site asks another about a try of this app manager
	moves := s.router.Movement(req, wait)
	req.RequestId = s.id(req.GetRequestId())
	req.NotAfter = timestamppb.New(moves.NotAfter)
	for i, op := range req.GetOperations() {
		req.Operations[i] = parts.Of(op.GetAcquire().GetEntity(), op.GetAcquire().GetTokens())
	}
	moves.Batch = req
	c := route.Call{Site: req.GetSite(), RequestID: req.GetRequestId(), Moves: moves, Until: time.Now().Add(wait + changeTime)}
	if err := s.router.Do(ctx, c); err != nil {
		return nil, err
	}
	resp := moves.Granted
	if parts.Foreign(req, resp) {
		return nil, s.router.Unknown(c, resp.GetSite(), errForeign)
	}
	// This app manager may try several sites, and tells no client of sessions.
	resp.RequestId, resp.Sessions = cmp.Or(resp.GetRequestId(), req.GetRequestId()), false
	return resp, nil
}
