package core

import (
	"slices"

	"github.com/samya-db/samya/predict"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

func (c *forecasting) forecastChoice() answer.ForecastChoice {
	return answer.ForecastChoice{Model: c.forecasts.name, Configured: c.cfg.Forecast}
}

// setForecast chooses another model. An entity's model is replaced when its next bin
// closes: replacing all at once would hold up waiting requests.
func (c *forecasting) setForecast(in *input.SetForecast) {
	if !slices.Contains(predict.Names(), in.Model) {
		c.reply(in.Call, answer.Answer{Code: answer.Invalid, Details: &answer.Details{Forecast: c.forecastChoice()}})
		return
	}
	if in.Model != c.forecasts.name {
		c.forecasts.name = in.Model
		c.forecasts.choice++
	}
	c.reply(in.Call, answer.Answer{Details: &answer.Details{Forecast: c.forecastChoice()}})
}
