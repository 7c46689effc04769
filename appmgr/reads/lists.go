package reads

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/appmgr/route"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/checks"
	"github.com/samya-db/samya/internal/health"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// ListEntities implements samyav1.EntityServiceServer.
func (s *Reads) ListEntities(ctx context.Context, in *samyav1.ListEntitiesRequest) (*samyav1.ListEntitiesResponse, error) {
	if err := errors.Join(checks.List(in), pageToken(in.GetPageToken())); err != nil {
		return nil, apierr.FromName(err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	resp := &samyav1.ListEntitiesResponse{}
	err := s.router.Do(ctx, route.Call{Method: samyav1.EntityService_ListEntities_FullMethodName, Req: in, Resp: resp, Read: true})
	if err != nil {
		return nil, err
	}
	// A site of an earlier build knows the prefix alone.
	part := strings.ToLower(in.GetContains())
	resp.Entities = slices.DeleteFunc(resp.Entities, func(e *samyav1.Entity) bool {
		return !name.Has(e.GetName(), part) || in.GetParent() != "" && e.GetParent() != in.GetParent() || in.GetTop() && e.GetParent() != ""
	})
	return resp, nil
}

// ListSites implements samyav1.ClusterServiceServer: it returns the member set, and whom a
// site refuses, as a site told them, with the health and round trips that this app manager sees.
func (s *Reads) ListSites(ctx context.Context, _ *samyav1.ListSitesRequest) (*samyav1.ListSitesResponse, error) {
	set, err := s.router.Members(ctx)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	resp := &samyav1.ListSitesResponse{Cluster: s.cluster, AnsweredBy: s.name, MembersVersion: set.Version}
	for _, m := range set.Sites {
		site := &samyav1.Site{
			Name: m.GetName(), Region: m.GetRegion(), Address: m.GetAddress(), HttpAddress: m.GetHttpAddress(),
			OldestVersion: m.GetOldestVersion(), NewestVersion: m.GetNewestVersion(), Refusal: m.GetRefusal(),
			Node: m.GetNode(), Term: m.GetTerm(), Standbys: m.GetStandbys(),
		}
		if info, h, ok := s.router.State(m.GetName()); ok {
			site.Region, site.Address, site.Health = info.Region, info.Address, publicHealth(h, now)
			if site.GetTerm() != info.Term {
				site.Standbys = 0 // of another take-over
			}
			site.Node, site.Term = info.Node, info.Term
			if h.RTT > 0 {
				site.RoundTrip = durationpb.New(h.RTT)
			}
		}
		resp.Sites = append(resp.Sites, site)
	}
	return resp, nil
}

// publicHealth returns a health in the terms of the API.
func publicHealth(h health.Health, now time.Time) samyav1.SiteHealth {
	switch {
	case h.Reach == health.Down:
		return samyav1.SiteHealth_SITE_HEALTH_UNREACHABLE
	case h.Overloaded(now):
		return samyav1.SiteHealth_SITE_HEALTH_OVERLOADED
	case h.Reach == health.Up:
		return samyav1.SiteHealth_SITE_HEALTH_SERVING
	}
	return samyav1.SiteHealth_SITE_HEALTH_UNSPECIFIED
}

// maxPageToken bounds a page token, in bytes.
const maxPageToken = 1024

func pageToken(t string) error {
	if len(t) > maxPageToken || strings.ContainsFunc(t, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return &name.Error{Field: "page_token", Problem: "not a token that an earlier page gave"}
	}
	return nil
}
