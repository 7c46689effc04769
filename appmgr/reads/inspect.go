package reads

import (
	"context"
	"slices"

	"github.com/samya-db/samya/appmgr/route"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// InspectSites implements samyav1.ClusterServiceServer: it asks all member sites, or only
// the named site. If no site answers, it fails with the error of the first.
func (s *Reads) InspectSites(ctx context.Context, in *samyav1.InspectSitesRequest) (*samyav1.InspectSitesResponse, error) {
	if in.GetSite() != "" {
		if err := name.Site("site", in.GetSite()); err != nil {
			return nil, apierr.FromName(err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	members, err := s.router.Members(ctx)
	if err != nil {
		return nil, err
	}
	if named := in.GetSite(); named != "" {
		i := slices.IndexFunc(members, func(m *samyav1.Site) bool { return m.GetName() == named })
		if i < 0 {
			return nil, apierr.Unreachable(named)
		}
		members = members[i : i+1]
	}
	answers := make([]*samyav1.InspectSitesResponse, len(members))
	errs := s.everywhere(members, func(i int, site string) error {
		answers[i] = &samyav1.InspectSitesResponse{}
		return s.router.At(ctx, site, route.Call{
			Method: samyav1.ClusterService_InspectSites_FullMethodName, Req: &samyav1.InspectSitesRequest{}, Resp: answers[i], Read: true,
		})
	})
	out := &samyav1.InspectSitesResponse{Complete: true}
	answered := false
	for i, m := range members {
		if errs[i] != nil {
			out.Complete = false
			out.Sites = append(out.Sites, &samyav1.SiteInspection{Site: m.GetName(), Problem: apierr.From(errs[i]).Message})
			continue
		}
		answered = true
		out.Sites = append(out.Sites, answers[i].GetSites()...)
	}
	switch {
	case answered:
		return out, nil
	case len(errs) == 0:
		return nil, apierr.Unreachable("")
	}
	return nil, errs[0]
}
