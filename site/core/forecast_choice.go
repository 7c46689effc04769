package core

import (
	"slices"

	"github.com/samya-db/samya/predict"
)

// ForecastChoice names the models by which a site forecasts.
type ForecastChoice struct {
	// Model is the model in force, Configured the site's own setting, which is in force
	// again after a restart.
	Model, Configured string
}

func (c *forecasting) forecastChoice() ForecastChoice {
	return ForecastChoice{Model: c.forecasts.name, Configured: c.cfg.Forecast}
}

// setForecast chooses another model. An entity's model is replaced when its next bin
// closes: replacing all at once would hold up waiting requests.
func (c *forecasting) setForecast(in *SetForecast) {
	if !slices.Contains(predict.Names(), in.Model) {
		c.reply(in.Call, Answer{Code: Invalid, Details: &Details{Forecast: c.forecastChoice()}})
		return
	}
	if in.Model != c.forecasts.name {
		c.forecasts.name = in.Model
		c.forecasts.choice++
	}
	c.reply(in.Call, Answer{Details: &Details{Forecast: c.forecastChoice()}})
}
