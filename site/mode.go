package site

import (
	"context"
	"errors"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/checks"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

// GetMode implements samyav1.ClusterServiceServer: the mode that this site uses.
func (s cluster) GetMode(ctx context.Context, _ *samyav1.GetModeRequest) (*samyav1.GetModeResponse, error) {
	if err := expired(ctx); err != nil {
		return nil, err
	}
	a, err := asked{}.ask(ctx, s.Site, func(c input.Call) input.Input { return &input.ReadMode{Call: c} })
	if err != nil {
		return nil, err
	}
	m := a.Mode()
	return &samyav1.GetModeResponse{
		Mode: modeOf(m.Decided), Complete: len(s.members()) == 1,
		Sites: []*samyav1.SiteMode{{
			Site: s.cfg.Name, Protocol: m.Protocol(), Version: m.Decided.Version, Configured: m.Configured, Known: true,
		}},
	}, nil
}

// SetMode implements samyav1.ClusterServiceServer.
func (s cluster) SetMode(ctx context.Context, r *samyav1.SetModeRequest) (*samyav1.SetModeResponse, error) {
	if err := errors.Join(name.Mode("protocol", r.GetProtocol()), checks.RequestID("request_id", r.GetRequestId())); err != nil {
		return nil, apierr.FromName(err)
	}
	a, err := s.decide(ctx, &input.Change{
		Kind: input.SetMode, Mode: r.GetProtocol(), Expected: r.GetExpectedVersion(), RequestID: r.GetRequestId(),
	})
	if err != nil {
		return nil, err
	}
	return &samyav1.SetModeResponse{Mode: modeOf(a.Mode().Decided)}, nil
}

func modeOf(m answer.DecidedMode) *samyav1.Mode {
	return &samyav1.Mode{Protocol: m.Protocol, Version: m.Version}
}
