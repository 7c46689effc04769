package reads

import (
	"context"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/samya-db/samya/appmgr/route"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// GetForecast implements samyav1.ClusterServiceServer: it asks all member sites.
func (s *Reads) GetForecast(ctx context.Context, in *samyav1.GetForecastRequest) (*samyav1.GetForecastResponse, error) {
	sites, complete, err := s.forecasts(ctx, samyav1.ClusterService_GetForecast_FullMethodName, in,
		func() siteForecasts { return &samyav1.GetForecastResponse{} })
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
func (s *Reads) forecasts(
	ctx context.Context, method string, in proto.Message, response func() siteForecasts,
) (sites []*samyav1.SiteForecast, complete bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	members, err := s.router.Members(ctx)
	if err != nil {
		return nil, false, err
	}
	answers := make([]siteForecasts, len(members))
	errs := s.everywhere(members, func(i int, site string) error {
		answers[i] = response()
		return s.router.At(ctx, site, route.Call{Method: method, Req: in, Resp: answers[i], Read: true})
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
			return nil, false, apierr.Unreachable("")
		}
		return nil, false, errs[0]
	}
	return sites, complete, nil
}

// everywhere calls ask for all members at the same time, and returns their errors.
func (s *Reads) everywhere(members []*samyav1.Site, ask func(i int, site string) error) []error {
	errs := make([]error, len(members))
	var asking sync.WaitGroup
	for i, m := range members {
		asking.Go(func() { errs[i] = ask(i, m.GetName()) })
	}
	asking.Wait()
	return errs
}
