package site

import (
	"context"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

// GetForecast implements samyav1.ClusterServiceServer: the model that this site uses.
func (s cluster) GetForecast(ctx context.Context, _ *samyav1.GetForecastRequest) (*samyav1.GetForecastResponse, error) {
	in := &input.ReadForecast{}
	f, err := s.forecast(ctx, func(c input.Call) input.Input { in.Call = c; return in })
	if err != nil {
		return nil, err
	}
	return &samyav1.GetForecastResponse{Complete: s.alone(), Sites: []*samyav1.SiteForecast{f}}, nil
}

// SetForecast implements samyav1.ClusterServiceServer: this site's own model.
func (s cluster) SetForecast(ctx context.Context, r *samyav1.SetForecastRequest) (*samyav1.SetForecastResponse, error) {
	if err := name.Forecast("model", r.GetModel()); err != nil {
		return nil, apierr.FromName(err)
	}
	in := &input.SetForecast{Model: r.GetModel()}
	f, err := s.forecast(ctx, func(c input.Call) input.Input { in.Call = c; return in })
	if err != nil {
		return nil, err
	}
	s.log.Info("demand is forecast by another model until the site ends", "model", f.GetModel(), "configured", f.GetConfigured())
	return &samyav1.SetForecastResponse{Complete: s.alone(), Sites: []*samyav1.SiteForecast{f}}, nil
}

// alone reports whether this site is the only site.
func (s cluster) alone() bool { return len(s.members()) == 1 }

func (s cluster) forecast(ctx context.Context, with func(input.Call) input.Input) (*samyav1.SiteForecast, error) {
	if err := expired(ctx); err != nil {
		return nil, err
	}
	a, err := s.engine.Do(ctx, with)
	if err != nil {
		return nil, s.broken(err, asked{})
	}
	switch a.Code {
	case answer.OK:
	case answer.Invalid:
		return nil, apierr.Invalid("model", "unknown")
	default:
		return nil, s.failure(a, asked{})
	}
	return &samyav1.SiteForecast{Site: s.cfg.Name, Model: a.Forecast().Model, Configured: a.Forecast().Configured, Known: true}, nil
}
