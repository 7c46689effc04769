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
		What: "throughput at 16,000 over 600, " + title(oracle), Unit: "×", Ours: median(r.ratios(at(oracle, high), at(oracle, low), (*outcome).rate)),
		Why: "The most possible on this trace.",
	}}
	for _, s := range []string{transfers, majority, star, paperMajority, paperStar} {
		res.Compared = append(
			res.Compared,
			experiment.Comparison{What: "throughput at 16,000 over 600, " + title(s), Unit: "×", Paper: new(paperLimits), Ours: median(r.ratios(at(s, high), at(s, low), (*outcome).rate)), Why: "Reproduced: while tokens are short, releases bound throughput; the oracle's grows as much."},
			experiment.Comparison{What: "redistributions at 600, " + title(s), Paper: new(paperAt600), Ours: r.median(at(s, low), (*outcome).redistributions), Why: whyAt600(s)},
			experiment.Comparison{What: "redistributions at 16,000, " + title(s), Paper: new(paperAt16000), Ours: r.median(at(s, high), (*outcome).redistributions), Why: "A site then has 3,200, more than a region ever has out."},
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
		return "Reproduced, as far as another trace can; these policies never tell a site that no tokens are left."
	}
	return "A site told that no tokens are left elsewhere gives up for a while."
}
