package appmgr

import (
	"context"
	"net/http"
	"slices"

	"github.com/samya-db/samya/internal/access"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/inspection"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// InspectSites implements samyav1.ClusterServiceServer: it asks all member sites, or only
// the named site. If no site answers, it fails with the error of the first.
func (s *service) InspectSites(ctx context.Context, in *samyav1.InspectSitesRequest) (*samyav1.InspectSitesResponse, error) {
	if err := site(in.GetSite()); err != nil {
		return nil, apierr.FromName(err)
	}
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	members, err := s.router.membersNow(ctx)
	if err != nil {
		return nil, err
	}
	if named := in.GetSite(); named != "" {
		i := slices.IndexFunc(members, func(m *samyav1.Site) bool { return m.GetName() == named })
		if i < 0 {
			return nil, unreachable(named)
		}
		members = members[i : i+1]
	}
	answers := make([]*samyav1.InspectSitesResponse, len(members))
	errs := s.everywhere(members, func(i int, site string) error {
		answers[i] = &samyav1.InspectSitesResponse{}
		return s.at(ctx, site, call{
			method: samyav1.ClusterService_InspectSites_FullMethodName, req: &samyav1.InspectSitesRequest{}, resp: answers[i], read: true,
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
		return nil, unreachable("")
	}
	return nil, errs[0]
}

func (a *api) inspectSites(w http.ResponseWriter, r *http.Request, _ string) error {
	q, err := query(r, "site")
	if err != nil {
		return err
	}
	out, err := access.Call(r.Context(), &samyav1.InspectSitesRequest{Site: q["site"]}, a.service.InspectSites)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, inspection.Of(out))
}
