package reads

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/samya-db/samya/appmgr/route"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/checks"
	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/versions"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// GetMode implements samyav1.ClusterServiceServer: it asks all member sites for the mode
// they use. Mode in the answer has the highest version of all.
func (s *Reads) GetMode(ctx context.Context, in *samyav1.GetModeRequest) (*samyav1.GetModeResponse, error) {
	out := &samyav1.GetModeResponse{Complete: true}
	_, err := everywhere(ctx, s, samyav1.ClusterService_GetMode_FullMethodName, in, "", func(site string, r *samyav1.GetModeResponse, err error) {
		if err != nil {
			out.Complete = false
			out.Sites = append(out.Sites, &samyav1.SiteMode{Site: site})
			return
		}
		if mode := r.GetMode(); out.GetMode() == nil || mode.GetVersion() > out.GetMode().GetVersion() {
			out.Mode = mode
		}
		out.Sites = append(out.Sites, r.GetSites()...)
	})
	switch {
	case err != nil:
		return nil, err
	case out.GetMode() == nil:
		return nil, apierr.Unreachable("")
	}
	return out, nil
}

// GetVersion implements samyav1.ClusterServiceServer: it asks all member sites. Version in
// the answer is the highest that a site knows.
func (s *Reads) GetVersion(ctx context.Context, in *samyav1.GetVersionRequest) (*samyav1.GetVersionResponse, error) {
	out := &samyav1.GetVersionResponse{Complete: true}
	refusal, err := everywhere(ctx, s, samyav1.ClusterService_GetVersion_FullMethodName, in, "", func(site string, r *samyav1.GetVersionResponse, err error) {
		switch {
		case err != nil && apierr.From(err).Reason == apierr.RouteNotFound:
			// A build without the method is of the first version, and knows no other.
			out.Version = max(out.GetVersion(), uint32(versions.First))
			out.Sites = append(out.Sites, &samyav1.SiteVersion{
				Site: site, Version: uint32(versions.First), Oldest: uint32(versions.First), Newest: uint32(versions.First), Known: true,
			})
			return
		case err != nil:
			out.Complete = false
			out.Sites = append(out.Sites, &samyav1.SiteVersion{Site: site, Problem: apierr.From(err).Message})
			return
		}
		out.Version = max(out.GetVersion(), r.GetVersion())
		out.Sites = append(out.Sites, r.GetSites()...)
	})
	if err = cmp.Or(err, refusal); err != nil {
		return nil, err
	}
	return out, nil
}

// InspectSites implements samyav1.ClusterServiceServer: it asks all member sites, or only
// the named site. If no site answers, it fails with the error of the first.
func (s *Reads) InspectSites(ctx context.Context, in *samyav1.InspectSitesRequest) (*samyav1.InspectSitesResponse, error) {
	if in.GetSite() != "" {
		if err := name.Site("site", in.GetSite()); err != nil {
			return nil, apierr.FromName(err)
		}
	}
	out := &samyav1.InspectSitesResponse{Complete: true}
	refusal, err := everywhere(ctx, s, samyav1.ClusterService_InspectSites_FullMethodName, &samyav1.InspectSitesRequest{}, in.GetSite(),
		func(site string, r *samyav1.InspectSitesResponse, err error) {
			if err != nil {
				out.Complete = false
				out.Sites = append(out.Sites, &samyav1.SiteInspection{Site: site, Problem: apierr.From(err).Message})
				return
			}
			out.Sites = append(out.Sites, r.GetSites()...)
		})
	if err = cmp.Or(err, refusal); err != nil {
		return nil, err
	}
	return out, nil
}

// GetForecast implements samyav1.ClusterServiceServer: it asks all member sites.
func (s *Reads) GetForecast(ctx context.Context, in *samyav1.GetForecastRequest) (*samyav1.GetForecastResponse, error) {
	sites, complete, err := forecasts[samyav1.GetForecastResponse](ctx, s, samyav1.ClusterService_GetForecast_FullMethodName, in)
	if err != nil {
		return nil, err
	}
	return &samyav1.GetForecastResponse{Complete: complete, Sites: sites}, nil
}

// SetForecast implements samyav1.ClusterServiceServer: it goes to all member sites, and
// each site changes by itself.
func (s *Reads) SetForecast(ctx context.Context, in *samyav1.SetForecastRequest) (*samyav1.SetForecastResponse, error) {
	if err := name.Forecast("model", in.GetModel()); err != nil {
		return nil, apierr.FromName(err)
	}
	sites, complete, err := forecasts[samyav1.SetForecastResponse](ctx, s, samyav1.ClusterService_SetForecast_FullMethodName, in)
	if err != nil {
		return nil, err
	}
	return &samyav1.SetForecastResponse{Complete: complete, Sites: sites}, nil
}

// RecoverCluster implements samyav1.ClusterServiceServer. All survivors are asked first
// whether they can go on without the lost sites. None goes on unless all can.
func (s *Reads) RecoverCluster(ctx context.Context, in *samyav1.RecoverClusterRequest) (*samyav1.RecoverClusterResponse, error) {
	if err := checks.Recover(in); err != nil {
		return nil, apierr.FromName(err)
	}
	asks := []*samyav1.RecoverClusterRequest{proto.CloneOf(in)}
	asks[0].Check = true
	if !in.GetCheck() {
		asks = append(asks, in)
	}
	survivors := slices.Sorted(slices.Values(in.GetSurvivors()))
	for _, ask := range asks {
		for _, survivor := range survivors {
			refusal, err := everywhere(ctx, s, samyav1.ClusterService_RecoverCluster_FullMethodName, ask, survivor,
				func(string, *samyav1.RecoverClusterResponse, error) {})
			if err = cmp.Or(err, refusal); err != nil {
				return nil, err
			}
		}
	}
	return &samyav1.RecoverClusterResponse{Sites: survivors}, nil
}

// forecasts makes a call at every member site. If no site answers, it fails with the
// error of the first.
func forecasts[R any, P interface {
	answerOf[R]
	GetSites() []*samyav1.SiteForecast
}](ctx context.Context, s *Reads, method string, in proto.Message) (sites []*samyav1.SiteForecast, complete bool, err error) {
	complete = true
	refusal, err := everywhere(ctx, s, method, in, "", func(site string, r P, err error) {
		if err != nil {
			complete = false
			sites = append(sites, &samyav1.SiteForecast{Site: site, Problem: apierr.From(err).Message})
			return
		}
		sites = append(sites, r.GetSites()...)
	})
	return sites, complete, cmp.Or(err, refusal)
}

// answerOf is a pointer to an answer R.
type answerOf[R any] interface {
	*R
	proto.Message
}

// everywhere makes a call at all member sites at the same time, or only at the site named
// only. It then calls add with the answer or the error of each, in the order of the
// members. If no site answered, refusal is the error of the first.
func everywhere[R any, P answerOf[R]](
	ctx context.Context, s *Reads, method string, in proto.Message, only string, add func(site string, answer P, err error),
) (refusal, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	set, err := s.router.Members(ctx)
	if err != nil {
		return nil, err
	}
	members := set.Sites
	if only != "" {
		i := slices.IndexFunc(members, func(m *samyav1.Site) bool { return m.GetName() == only })
		if i < 0 {
			return nil, apierr.Unreachable(only)
		}
		members = members[i : i+1]
	}
	answers, errs := make([]R, len(members)), make([]error, len(members))
	var asking sync.WaitGroup
	for i, m := range members {
		asking.Go(func() {
			errs[i] = s.router.At(ctx, m.GetName(), route.Call{Method: method, Req: in, Resp: P(&answers[i]), Read: true})
		})
	}
	asking.Wait()
	refusal = apierr.Unreachable("")
	if len(errs) > 0 {
		refusal = errs[0]
	}
	for i, m := range members {
		if errs[i] == nil {
			refusal = nil
		}
		add(m.GetName(), &answers[i], errs[i])
	}
	return refusal, nil
}
