package samya

import (
	"fmt"
	"time"

	"github.com/samya-db/samya/lab/experiment"
	"github.com/samya-db/samya/lab/plot"
)

// arrivalsStudy is Figure 17.
var arrivalsStudy = study{
	name:  "arrivals",
	short: "Figure 17: requests up to 60 times rarer",
	long: `Plays half an hour in which a bin of the trace, 300 s there, takes 5 to 300 s: the
same requests, up to 60 times slower, and tokens held for as many times longer.`,
	span:   30 * time.Minute,
	plays:  arrivalsPlays,
	result: arrivalsResult,
}

func arrivalsPlays(s *setting) []play {
	var all []play
	for _, stretch := range stretches {
		all = append(all, across(play{span: s.span, stretch: stretch}, arrivalSystems, []string{fit})...)
	}
	return all
}

var (
	stretches      = []int{1, 2, 6, 12, 30, 60}
	arrivalSystems = []string{transfers, majority, star, oneRound, batched, oracle}
)

// binSeconds is the length of a bin of the trace in a run without stretch.
const binSeconds = 5

func arrivalsResult(r *runs) *experiment.Result {
	plays := arrivalsPlays(r.setting)
	at := func(system string, seconds int) play {
		p := r.on(system, fit)
		p.stretch = seconds / binSeconds
		return p
	}
	var bins []int
	for _, s := range stretches {
		bins = append(bins, s*binSeconds)
	}
	slow, fast := bins[len(bins)-1], bins[0]
	res := &experiment.Result{
		Setup:  "Five regions, limit 5,000, open load.",
		Tables: []experiment.Table{r.table(plays, byStretch, bySystem)},
	}
	for _, s := range []string{majority, star, transfers} {
		fell := r.by(func(of func(play) *outcome) float64 {
			return 100 * (1 - ratio(of(at(s, slow)).rate(), of(at(s, fast)).rate()))
		})
		ahead := r.by(func(of func(play) *outcome) float64 {
			return ratio(of(at(s, slow)).rate(), of(at(oneRound, slow)).rate())
		})
		res.Compared = append(
			res.Compared,
			experiment.Comparison{What: "throughput falls by, requests 60 times rarer, " + title(s), Unit: "%", Paper: new(paperRarer), Ours: median(fell), Why: "Not reproduced: under open load a sixtieth is asked for and committed; the paper's clients must have asked for more."},
			experiment.Comparison{What: fmt.Sprintf("throughput over MultiPaxSys at %d s a bin, %s", slow, title(s)), Unit: "×", Paper: new(paperOverWhereRare), Ours: median(ahead), Why: "Not reproduced: MultiPaxSys can do four times this demand, so both commit all; latency differs."},
		)
	}
	for _, s := range arrivalSystems[:5] {
		res.Compared = append(res.Compared, experiment.Comparison{
			What: fmt.Sprintf("median latency at %d s a bin, %s", slow, title(s)), Unit: "ms", Ours: r.median(at(s, slow), func(o *outcome) float64 { return o.all.p50 }), Why: "Not in the paper.",
		})
	}
	axis := plot.Axis{Label: "time of a bin", Unit: "s", Log: true}
	res.Figures = []experiment.Figure{picture(
		"", "Figure 17: throughput and median latency, medians over the seeds.",
		r.against(&plot.Lines{Title: "Throughput", X: axis, Y: plot.Axis{Label: "committed", Unit: "transactions/s", Log: true}}, arrivalSystems, bins, at, (*outcome).rate),
		r.against(&plot.Lines{Title: "Median latency", X: axis, Y: plot.Axis{Label: "p50", Unit: "ms", Log: true}}, arrivalSystems[:5], bins, at, func(o *outcome) float64 { return o.all.p50 }),
	)}
	return res
}
