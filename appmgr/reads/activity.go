package reads

import (
	"cmp"
	"context"
	"slices"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// maxChanges bounds the changes in an answer about the history of an entity.
const maxChanges = 16

// SurveySites implements samyav1.ClusterServiceServer: it asks all member sites.
func (s *Reads) SurveySites(ctx context.Context, in *samyav1.SurveySitesRequest) (*samyav1.SurveySitesResponse, error) {
	out := &samyav1.SurveySitesResponse{Complete: true}
	refusal, err := everywhere(ctx, s, samyav1.ClusterService_SurveySites_FullMethodName, in, "", func(site string, r *samyav1.SurveySitesResponse, err error) {
		if err != nil {
			out.Complete = false
			out.Sites = append(out.Sites, &samyav1.SiteSurvey{Site: site, Problem: apierr.From(err).Message})
			return
		}
		out.Sites = append(out.Sites, r.GetSites()...)
	})
	if err = cmp.Or(err, refusal); err != nil {
		return nil, err
	}
	return out, nil
}

// GetEntityActivity implements samyav1.EntityServiceServer: it asks all member sites.
func (s *Reads) GetEntityActivity(ctx context.Context, in *samyav1.GetEntityActivityRequest) (*samyav1.GetEntityActivityResponse, error) {
	err := name.Entity("name", in.GetName())
	if err == nil && in.GetSinceMs() < 0 {
		err = &name.Error{Field: "since_ms", Problem: "negative, at least 0"}
	}
	if err != nil {
		return nil, apierr.FromName(err)
	}
	out := &samyav1.GetEntityActivityResponse{Complete: true}
	refusal, err := everywhere(ctx, s, samyav1.EntityService_GetEntityActivity_FullMethodName, in, "",
		func(site string, r *samyav1.GetEntityActivityResponse, err error) {
			if err != nil {
				out.Complete = false
				out.Sites = append(out.Sites, &samyav1.SiteActivity{Site: site, Problem: apierr.From(err).Message})
				return
			}
			out.NowMs = max(out.GetNowMs(), r.GetNowMs())
			out.Sites = append(out.Sites, r.GetSites()...)
		})
	if err = cmp.Or(err, refusal); err != nil {
		return nil, err
	}
	return out, nil
}

// GetEntityHistory implements samyav1.EntityServiceServer: it asks all member sites, and puts
// their changes in order. A change that was repeated at another site is told once, by the
// site that had the answer first.
func (s *Reads) GetEntityHistory(ctx context.Context, in *samyav1.GetEntityHistoryRequest) (*samyav1.GetEntityHistoryResponse, error) {
	if err := name.Entity("name", in.GetName()); err != nil {
		return nil, apierr.FromName(err)
	}
	out := &samyav1.GetEntityHistoryResponse{Complete: true}
	refusal, err := everywhere(ctx, s, samyav1.EntityService_GetEntityHistory_FullMethodName, in, "",
		func(site string, r *samyav1.GetEntityHistoryResponse, err error) {
			if err != nil {
				out.Complete = false
				out.MissingSites = append(out.MissingSites, site)
				return
			}
			out.Changes = append(out.Changes, r.GetChanges()...)
		})
	if err = cmp.Or(err, refusal); err != nil {
		return nil, err
	}
	out.Changes = inOrder(out.Changes)
	return out, nil
}

// inOrder merges the changes of sites: the latest first, and each once.
func inOrder(all []*samyav1.EntityChange) []*samyav1.EntityChange {
	slices.SortStableFunc(all, func(a, b *samyav1.EntityChange) int { return cmp.Compare(a.GetAtMs(), b.GetAtMs()) })
	type once struct {
		id, kind   string
		generation uint64
	}
	seen := make(map[once]bool)
	all = slices.DeleteFunc(all, func(c *samyav1.EntityChange) bool {
		key := once{c.GetRequestId(), c.GetKind(), c.GetGeneration()}
		again := c.GetRequestId() != "" && seen[key]
		seen[key] = true
		return again
	})
	// The generations and versions of an entity have an order that clocks may not have.
	slices.SortStableFunc(all, func(a, b *samyav1.EntityChange) int {
		return cmp.Or(cmp.Compare(b.GetGeneration(), a.GetGeneration()), cmp.Compare(b.GetVersion(), a.GetVersion()), cmp.Compare(b.GetAtMs(), a.GetAtMs()))
	})
	return all[:min(len(all), maxChanges)]
}
