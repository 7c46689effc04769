package core

import (
	"slices"

	"github.com/samya-db/samya/predict"
)

// ForecastChoice is by which model a site forecasts.
type ForecastChoice struct {
	// Model is the one in force, Configured the site's own setting, which is in force
	// again after a restart.
	Model, Configured string
}

func (c *Core) forecastChoice() ForecastChoice {
	return ForecastChoice{Model: c.forecasts.name, Configured: c.cfg.Forecast}
}

// setForecast chooses another model. That of an entity is replaced when its next
// bin closes: all at once would hold up what waits.
func (c *Core) setForecast(in *SetForecast) {
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
