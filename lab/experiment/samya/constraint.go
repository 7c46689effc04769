package samya

import (
	"fmt"
	"time"

	"github.com/samya-db/samya/lab/experiment"
	"github.com/samya-db/samya/lab/plot"
)

// constraintStudy is Figure 12.
var constraintStudy = study{
	name:  "constraint",
	short: "Figure 12: samya beside no constraint and no redistribution",
	long: `Plays the hour to samya, to sites that grant whatever they are asked for (No
Constraint) and to sites that refuse what they do not hold (No Redistribution).`,
	span: time.Hour,
	plays: func(s *setting) []play {
		return across(play{span: s.span}, constraintSystems, constraintWorkloads)
	},
	result: constraintResult,
}

var (
	constraintSystems   = []string{unlimited, transfers, majority, star, noRedistributes, oracle}
	constraintWorkloads = []string{fit, tight}
)

func constraintGoals(r *runs) []experiment.Goal {
	bare := func(w string, bound float64) experiment.Goal {
		return r.judged(experiment.AtLeast(w+": throughput over No Redistribution, median", median(r.ratios(r.on(transfers, w), r.on(noRedistributes, w), (*outcome).rate)), bound, "×"))
	}
	return []experiment.Goal{bare(fit, overBareFit), bare(tight, overBareTight)}
}

func constraintResult(r *runs) *experiment.Result {
	plays := across(play{span: r.span}, constraintSystems, constraintWorkloads)
	res := &experiment.Result{
		Setup:  "Five regions, limit 5,000, open load.",
		Goals:  constraintGoals(r),
		Tables: []experiment.Table{r.table(plays, byWorkload, bySystem)},
	}
	var panels []plot.Panel
	for _, w := range constraintWorkloads {
		var of []play
		for _, s := range constraintSystems {
			of = append(of, r.on(s, w))
		}
		panels = append(panels, r.rateLines("Throughput, "+w, of, window))
		below := r.by(func(of func(play) *outcome) float64 {
			return 100 * (1 - ratio(of(r.on(transfers, w)).rate(), of(r.on(unlimited, w)).rate()))
		})
		res.Compared = append(
			res.Compared,
			experiment.Comparison{What: w + ": samya below No Constraint", Unit: "%", Paper: new(paperBelowNoConstraint), Ours: median(below), Why: "No acquire waits long enough to be lost; on tight demand sometimes exceeds the limit, and the oracle loses as much."},
		)
		for _, s := range []string{transfers, majority, star} {
			res.Compared = append(res.Compared, experiment.Comparison{
				What: fmt.Sprintf("%s: %s over No Redistribution", w, title(s)), Unit: "×", Paper: new(paperOverNoRedistributes),
				Ours: median(r.ratios(r.on(s, w), r.on(noRedistributes, w), (*outcome).rate)),
				Why:  "Depends on the trace's demand above an equal share of the limit.",
			})
		}
	}
	res.Figures = []experiment.Figure{picture("", "Figure 12: throughput, moving average of five minutes, medians over the seeds.", panels...)}
	return res
}
