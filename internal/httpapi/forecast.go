package httpapi

import (
	"context"
	"net/http"
)

// ForecastStatus is by which models the sites forecast demand.
type ForecastStatus struct {
	// Complete says whether every site answered, or changed.
	Complete bool `json:"complete"`
	// Sites has one entry per site, in the order of the names.
	Sites []SiteForecast `json:"sites"`
}

// SiteForecast is by which model one site forecasts demand.
type SiteForecast struct {
	// Site is the site's name.
	Site string `json:"site"`
	// Model is the one in force at the site.
	Model string `json:"model"`
	// Configured is the site's own setting, in force again after a restart.
	Configured string `json:"configured"`
	// Known says whether the site answered; if not, Problem says why.
	Known   bool   `json:"known"`
	Problem string `json:"problem,omitempty"`
}

// GetForecast reads by which models the sites forecast.
func (c *Client) GetForecast(ctx context.Context) (ForecastStatus, error) {
	var f ForecastStatus
	err := c.do(ctx, http.MethodGet, "/v1/forecast", nil, nil, &f)
	return f, err
}

// SetForecast changes the model of all sites. Some may have changed although it
// fails; to repeat it does no harm.
func (c *Client) SetForecast(ctx context.Context, model string) (ForecastStatus, error) {
	var f ForecastStatus
	err := c.do(ctx, http.MethodPut, "/v1/forecast", nil, map[string]any{"model": model}, &f)
	return f, err
}
