package httpapi

import (
	"context"
	"net/http"
)

// ForecastStatus is the models by which the sites forecast demand.
type ForecastStatus struct {
	// Complete reports whether every site answered, or changed.
	Complete bool `json:"complete"`
	// Sites has an entry for each site, in the order of the names.
	Sites []SiteForecast `json:"sites"`
}

// SiteForecast is the model by which a site forecasts demand.
type SiteForecast struct {
	// Site is the site's name.
	Site string `json:"site"`
	// Model is the model in force at the site.
	Model string `json:"model"`
	// Configured is the site's own setting, in force again after a restart.
	Configured string `json:"configured"`
	// Known reports whether the site answered; if not, Problem says why.
	Known   bool   `json:"known"`
	Problem string `json:"problem,omitempty"`
}

// GetForecast reads the models by which the sites forecast.
func (c *Client) GetForecast(ctx context.Context) (ForecastStatus, error) {
	var f ForecastStatus
	err := c.do(ctx, http.MethodGet, "/v1/forecast", nil, nil, &f)
	return f, err
}

// SetForecast changes the model of all sites. If it fails, some sites may have changed; a
// repeat does no harm.
func (c *Client) SetForecast(ctx context.Context, model string) (ForecastStatus, error) {
	var f ForecastStatus
	err := c.do(ctx, http.MethodPut, "/v1/forecast", nil, map[string]any{"model": model}, &f)
	return f, err
}
