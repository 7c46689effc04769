package samya

import (
	"time"

	"github.com/samya-db/samya/lab/experiment"
	"github.com/samya-db/samya/lab/plot"
)

// limitsStudy is Figure 16.
var limitsStudy = study{
	name:   "limits",
	short:  "Figure 16: limits from 600 to 16,000",
	long:   `Plays half an hour under limits from 600 to 16,000, in equal parts at the start.`,
	span:   30 * time.Minute,
	plays:  limitsPlays,
	result: limitsResult,
}

func limitsPlays(s *setting) []play {
	var all []play
	for _, limit := range limits {
		all = append(all, across(play{span: s.span, limit: limit}, limitSystems, []string{fit})...)
	}
	return all
}

var (
	limits       = []int{600, 1200, 2500, 5000, 8000, 12_000, 16_000}
	limitSystems = []string{transfers, majority, star, paperMajority, paperStar, oracle}
)

func limitsResult(r *runs) *experiment.Result {
	plays := limitsPlays(r.setting)
	at := func(system string, limit int) play {
		p := r.on(system, fit)
		p.limit = limit
		return p
	}
	res := &experiment.Result{
		Setup:  "Five regions, open load.",
		Tables: []experiment.Table{r.table(plays, byLimit, bySystem)},
	}
	low, high := limits[0], limits[len(limits)-1]
	res.Compared = []experiment.Comparison{{
		What: "throughput at 16,000 over that at 600, " + title(oracle), Unit: "×", Ours: median(r.ratios(at(oracle, high), at(oracle, low), (*outcome).rate)),
		Why: "What is to be had on this trace.",
	}}
	for _, s := range []string{transfers, majority, star, paperMajority, paperStar} {
		res.Compared = append(
			res.Compared,
			experiment.Comparison{What: "throughput at 16,000 over that at 600, " + title(s), Unit: "×", Paper: new(paperLimits), Ours: median(r.ratios(at(s, high), at(s, low), (*outcome).rate)), Why: "Reproduces: where tokens are short all the time throughput is what comes free, and the oracle's grows as much."},
			experiment.Comparison{What: "redistributions at 600, " + title(s), Paper: new(paperAt600), Ours: r.median(at(s, low), (*outcome).redistributions), Why: whyAt600(s)},
			experiment.Comparison{What: "redistributions at 16,000, " + title(s), Paper: new(paperAt16000), Ours: r.median(at(s, high), (*outcome).redistributions), Why: "A site has 3,200 then, more than a region ever has out."},
		)
	}
	axis := plot.Axis{Label: "limit", Unit: "tokens", Zero: true}
	res.Figures = []experiment.Figure{picture(
		"", "Figure 16: throughput and redistributions, medians over the seeds.",
		r.against(&plot.Lines{Title: "Throughput", X: axis, Y: rateAxis}, limitSystems, limits, at, (*outcome).rate),
		r.against(&plot.Lines{Title: "Redistributions", X: axis, Y: plot.Axis{Label: "redistributions", Zero: true}}, limitSystems[:5], limits, at, (*outcome).redistributions),
	)}
	return res
}

func whyAt600(system string) string {
	if system == paperMajority || system == paperStar {
		return "Reproduces, within what another trace makes of it; nothing in these policies says that there is nothing left to be had."
	}
	return "A site that hears that there is nothing left elsewhere gives up for a while."
}
