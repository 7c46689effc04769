package samya

import (
	"fmt"
	"time"

	"github.com/samya-db/samya/lab/experiment"
	"github.com/samya-db/samya/lab/plot"
)

// forecastsStudy is Figure 13.
var forecastsStudy = study{
	name:  "forecasts",
	short: "Figure 13: with forecasts, with constant ones, and without",
	long: `Plays half an hour to each variant of samya: with forecasts of the demand, with
forecasts that are the same at all times, and without any, where nothing moves before an
acquire waits. On batch, where jobs come at fixed times, the timing of demand matters.`,
	span: 30 * time.Minute,
	plays: func(s *setting) []play {
		return across(play{span: s.span}, forecastSystems(), forecastWorkloads)
	},
	result: forecastsResult,
}

var (
	forecastVariants  = []string{transfers, majority, star, paperMajority, paperStar}
	forecastWorkloads = []string{fit, tight, batch}
)

// forecastSystems returns the variants with forecasts and without.
func forecastSystems() []string {
	var all []string
	for _, s := range forecastVariants {
		all = append(all, s)
		if s != paperMajority && s != paperStar {
			all = append(all, with(s, constant))
		}
		all = append(all, with(s, noForecast))
	}
	return all
}

func forecastsResult(r *runs) *experiment.Result {
	plays := across(play{span: r.span}, forecastSystems(), forecastWorkloads)
	res := &experiment.Result{
		Setup:  "Five regions, limit 5,000, open load.",
		Tables: []experiment.Table{r.table(plays, byWorkload, bySystem)},
		Notes:  []string{"Under open load forecasts save waits, not throughput: waiting requests are served later. The paper's clients ask nothing while they wait, so 1.4 times is out of reach here."},
	}
	for _, w := range forecastWorkloads {
		for _, s := range forecastVariants {
			pair := func(f figure) float64 { return median(r.ratios(r.on(s, w), r.on(with(s, noForecast), w), f)) }
			res.Compared = append(res.Compared, experiment.Comparison{
				What: fmt.Sprintf("%s: throughput with forecasts over without, %s", w, title(s)), Unit: "×", Paper: new(paperForecasts), Ours: pair((*outcome).rate),
				Why: "Not reproduced under open load.",
			})
		}
		for _, s := range forecastVariants {
			waits := r.by(func(of func(play) *outcome) float64 {
				return share(of(r.on(s, w)).waits(), of(r.on(with(s, noForecast), w)).waits())
			})
			res.Compared = append(res.Compared, experiment.Comparison{
				What: fmt.Sprintf("%s: acquires that wait with forecasts over without, %s", w, title(s)), Unit: "×", Ours: median(waits), Why: "Not in the paper.",
			})
		}
	}
	var panels []plot.Panel
	for _, w := range forecastWorkloads {
		var of []play
		for _, s := range forecastSystems() {
			of = append(of, r.on(s, w))
		}
		panels = append(panels, r.bars(
			&plot.Bars{Title: "Acquires that wait, " + w, X: "system", Y: plot.Axis{Label: "waited", Unit: "%"}},
			of, func(p play) string { return p.system }, map[string]figure{"waited": (*outcome).waits}, "waited",
		))
	}
	f := picture("", "Figure 13: acquires that wait, with forecasts and without, medians over the seeds.", panels...)
	f.Width, f.Height = 800, 340
	res.Figures = []experiment.Figure{f}
	return res
}
