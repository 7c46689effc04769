package appmgr

import (
	"context"
	"net/http"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/samya-db/samya/internal/access"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/health"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// GetForecast implements samyav1.ClusterServiceServer: it asks all member sites.
func (s *service) GetForecast(ctx context.Context, in *samyav1.GetForecastRequest) (*samyav1.GetForecastResponse, error) {
	sites, complete, err := s.forecasts(ctx, samyav1.ClusterService_GetForecast_FullMethodName, in,
		func() siteForecasts { return &samyav1.GetForecastResponse{} })
	if err != nil {
		return nil, err
	}
	return &samyav1.GetForecastResponse{Complete: complete, Sites: sites}, nil
}

// SetForecast implements samyav1.ClusterServiceServer: it goes to all member sites, and
// each site changes by itself.
func (s *service) SetForecast(ctx context.Context, in *samyav1.SetForecastRequest) (*samyav1.SetForecastResponse, error) {
	if err := name.Forecast("model", in.GetModel()); err != nil {
		return nil, apierr.FromName(err)
	}
	sites, complete, err := s.forecasts(ctx, samyav1.ClusterService_SetForecast_FullMethodName, in,
		func() siteForecasts { return &samyav1.SetForecastResponse{} })
	if err != nil {
		return nil, err
	}
	return &samyav1.SetForecastResponse{Complete: complete, Sites: sites}, nil
}

// siteForecasts is the answer of a site to GetForecast or SetForecast.
type siteForecasts interface {
	proto.Message
	GetSites() []*samyav1.SiteForecast
}

// forecasts makes a call at every member site. If no site answers, it fails with the
// error of the first.
func (s *service) forecasts(
	ctx context.Context, method string, in proto.Message, response func() siteForecasts,
) (sites []*samyav1.SiteForecast, complete bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	members, err := s.router.membersNow(ctx)
	if err != nil {
		return nil, false, err
	}
	answers := make([]siteForecasts, len(members))
	errs := s.everywhere(members, func(i int, site string) error {
		answers[i] = response()
		return s.at(ctx, site, call{method: method, req: in, resp: answers[i], read: true})
	})
	complete = true
	known := 0
	for i, m := range members {
		if errs[i] != nil {
			complete = false
			sites = append(sites, &samyav1.SiteForecast{Site: m.GetName(), Problem: apierr.From(errs[i]).Message})
			continue
		}
		known++
		sites = append(sites, answers[i].GetSites()...)
	}
	if known == 0 {
		if len(errs) == 0 {
			return nil, false, unreachable("")
		}
		return nil, false, errs[0]
	}
	return sites, complete, nil
}

// everywhere calls ask for all members at the same time, and returns their errors.
func (s *service) everywhere(members []*samyav1.Site, ask func(i int, site string) error) []error {
	errs := make([]error, len(members))
	var asking sync.WaitGroup
	for i, m := range members {
		asking.Go(func() { errs[i] = ask(i, m.GetName()) })
	}
	asking.Wait()
	return errs
}

// at makes c at a site. It does not wait for a site known to be down.
func (s *service) at(ctx context.Context, site string, c call) error {
	l := s.router.link(site)
	if l == nil || l.state().Reach == health.Down {
		return unreachable(site)
	}
	_, err := s.router.try(ctx, c, site, false)
	return err
}

// forecastStatus is the JSON shape of the models by which the sites forecast.
type forecastStatus struct {
	Complete bool           `json:"complete"`
	Sites    []siteForecast `json:"sites"`
}

type siteForecast struct {
	Site       string `json:"site"`
	Model      string `json:"model"`
	Configured string `json:"configured"`
	Known      bool   `json:"known"`
	Problem    string `json:"problem,omitempty"`
}

func writeForecasts(w http.ResponseWriter, complete bool, sites []*samyav1.SiteForecast) error {
	status := forecastStatus{Complete: complete, Sites: []siteForecast{}}
	for _, s := range sites {
		status.Sites = append(status.Sites, siteForecast{s.GetSite(), s.GetModel(), s.GetConfigured(), s.GetKnown(), s.GetProblem()})
	}
	return writeJSON(w, http.StatusOK, status)
}

func (a *api) getForecast(w http.ResponseWriter, r *http.Request, _ string) error {
	if _, err := query(r); err != nil {
		return err
	}
	out, err := access.Call(r.Context(), &samyav1.GetForecastRequest{}, a.service.GetForecast)
	if err != nil {
		return err
	}
	return writeForecasts(w, out.GetComplete(), out.GetSites())
}

func (a *api) setForecast(w http.ResponseWriter, r *http.Request, _ string) error {
	in := &samyav1.SetForecastRequest{}
	if err := a.read(w, r, fields{"model": text("model", &in.Model)}); err != nil {
		return err
	}
	if in.GetModel() == "" {
		return apierr.Invalid("model", "missing")
	}
	out, err := access.Call(r.Context(), in, a.service.SetForecast)
	if err != nil {
		return err
	}
	return writeForecasts(w, out.GetComplete(), out.GetSites())
}
