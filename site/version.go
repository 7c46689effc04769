package site

import (
	"context"
	"errors"
	"fmt"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/checks"
	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/versions"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/input"
)

// GetVersion implements samyav1.ClusterServiceServer: what this site knows and speaks.
func (s cluster) GetVersion(ctx context.Context, _ *samyav1.GetVersionRequest) (*samyav1.GetVersionResponse, error) {
	if err := expired(ctx); err != nil {
		return nil, err
	}
	v := s.speaks.Load()
	return &samyav1.GetVersionResponse{
		Version: uint32(v.Cluster), Complete: len(s.members()) == 1,
		Sites: []*samyav1.SiteVersion{{
			Site: s.cfg.Name, Version: uint32(v.Cluster), Oldest: uint32(v.Oldest), Newest: uint32(v.Newest),
			Build: s.cfg.Build.String(), Known: true,
		}},
	}, nil
}

// knowSessions reports whether all sites know sessions, now and from now on: the cluster has come
// to the version of builds that do. To an older site the id of a session's request is another
// key, and the two sites could each execute the request.
func knowSessions(v *versions.Speaker) bool { return v.Begun && v.Cluster >= versions.Members }

// RaiseVersion implements samyav1.ClusterServiceServer.
func (s cluster) RaiseVersion(ctx context.Context, r *samyav1.RaiseVersionRequest) (*samyav1.RaiseVersionResponse, error) {
	if err := errors.Join(name.Version("version", r.GetVersion()), checks.RequestID("request_id", r.GetRequestId())); err != nil {
		return nil, apierr.FromName(err)
	}
	a, err := s.decide(ctx, &input.Change{
		Kind: input.RaiseVersion, Version: versions.Version(r.GetVersion()), RequestID: r.GetRequestId(),
	})
	if err != nil {
		return nil, err
	}
	return &samyav1.RaiseVersionResponse{Version: uint32(a.Version())}, nil
}

// hears hands to the core what another site told of its versions. The core learns of them
// before it gets messages by the same link, or there is no link.
func (s *Site) hears(from core.SiteID, v versions.Speaker) error {
	if err := s.engine.Submit(input.Speaks{From: from, Speaker: v}); err != nil {
		return fmt.Errorf("telling the core of the versions of site %s: %w", from, err)
	}
	return nil
}
