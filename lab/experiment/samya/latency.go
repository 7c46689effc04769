package samya

import (
	"slices"
	"time"

	"github.com/samya-db/samya/lab/experiment"
	"github.com/samya-db/samya/lab/experiment/realtime"
	"github.com/samya-db/samya/lab/plot"
	"github.com/spf13/pflag"
)

// latencyStudy is Table 6 with Figures 8 and 9.
var latencyStudy = study{
	name:  "latency",
	short: "Table 6, Figures 8 and 9: latency and throughput of all systems over an hour",
	long: `Plays an hour of demand from five regions to samya (direct transfers as by
default; the majority, star and auto variants), to samya with the paper's policies, and
to its rivals, on the workloads fit, tight, burst and over. Load is open: latency counts
from when a request was due, percentiles are over all acquires. An oracle, one counter
without latency, tells which refusals no system can be blamed for.

With --trace, any CSV file of demand or a vmtable.csv of the Azure public dataset is
played instead, and nothing is held against goals.`,
	span:   time.Hour,
	plays:  latencyPlays,
	result: latencyResult,
	real:   &realtime.Experiment,
	own: func(o *options, f *pflag.FlagSet) {
		f.StringVar(&o.trace, "trace", "", "CSV file of demand, or a vmtable.csv, to play instead of the workloads")
		f.StringVar(&o.column, "column", "", "column of demand, if the CSV file has several")
	},
}

var (
	latencySystems = []string{
		transfers, majority, star, auto, paperMajority, paperStar, escrowAhead, escrowHalf, escrowExact, centralPool, approximate,
		oneRound, oneRoundCentral, batched, unlimited, noRedistributes, oracle,
	}
	latencyWorkloads = []string{fit, tight, burst, over}
)

// traced is the name of the workload of a trace.
const traced = "trace"

func latencyPlays(s *setting) []play {
	workloads := latencyWorkloads
	if s.trace != "" {
		workloads = []string{traced}
	}
	return across(play{span: s.span}, latencySystems, workloads)
}

// on returns the run of a system on a workload over the span of the study.
func (r *runs) on(system, workload string) play {
	return play{system: system, workload: workload, span: r.span}
}

func latencyResult(r *runs) *experiment.Result {
	plays := latencyPlays(r.setting)
	res := &experiment.Result{
		Setup: "Five regions, limit 5,000, open load; acquires wait 5 s at most; client to site and back takes 1 ms.",
		Tables: []experiment.Table{
			r.table(plays, byWorkload, bySystem),
			r.minuteTable("minutes", plays, func(p play) string { return p.workload + " " + p.system }, func(o *outcome) []float64 { return o.byMinute }),
		},
		Spreads: []experiment.Table{r.spread(plays)},
		Figures: latencyFigures(r, plays),
		Notes: []string{
			"Latency percentiles cover all acquires, even refused and timed-out; the columns refused_… cover refused acquires alone. A timed-out acquire counts as 5 s.",
			"The fair rival is the batched MultiPaxSys: it commits the whole demand, at the cost of latency.",
		},
	}
	if r.trace != "" {
		res.Setup += " Every region plays the demand of the file, shifted by its local time."
		return res
	}
	res.Goals, res.Compared = latencyGoals(r), latencyCompared(r)
	return res
}

// latencyFigures draws Table 6 as rows of percentiles, and Figures 8 and 9.
func latencyFigures(r *runs, plays []play) []experiment.Figure {
	var percentiles, tails, rates []plot.Panel
	workloads := latencyWorkloads
	if r.trace != "" {
		workloads = []string{traced}
	}
	for _, w := range workloads {
		of := slices.DeleteFunc(slices.Clone(plays), func(p play) bool { return p.workload != w })
		percentiles = append(percentiles, r.percentileRows("Latency, "+w, of))
		tails = append(tails, r.tailLines("Latency, "+w, among(of, tailSystems)))
		rates = append(rates, r.rateLines("Throughput, "+w, among(of, rateSystems), window))
	}
	figures := []experiment.Figure{
		picture("", "Table 6: latency percentiles of all acquires, medians over the seeds. Further left is better.", percentiles...),
		picture("time", "Figure 8: the 99th percentile of the worst ten seconds of each minute, medians over the seeds. Lower is better.", tails...),
		picture("throughput", "Figure 9: throughput, moving average of five minutes, medians over the seeds. Higher is better; lines that are not seen coincide with samya's.", rates...),
	}
	if r.trace != "" {
		return figures
	}
	return append(figures, answerFigure(r))
}

// answerFigure draws the README's picture of latencies.
func answerFigure(r *runs) experiment.Figure {
	rows := r.percentileRows("How long an acquire takes: five regions around the world, one limit", across(play{span: r.span}, answerSystems, []string{fit}))
	answer := picture("answer", "How long an acquire takes on fit: percentiles of all acquires of an hour, medians over the seeds. Further left is better.", rows)
	answer.Width, answer.Height = 760, 300
	return answer
}

// The systems of lines over time, few enough to tell apart. The tables and Table 6
// have all systems.
var (
	tailSystems = []string{transfers, majority, paperMajority, escrowHalf, escrowExact, batched}
	// answerSystems are the designs that readers know, each by its best system.
	answerSystems = []string{transfers, escrowAhead, escrowHalf, centralPool, batched, oneRound}
	rateSystems   = []string{transfers, majority, escrowExact, oneRound, batched, unlimited}
)

// among returns the plays of some systems.
func among(plays []play, systems []string) []play {
	return slices.DeleteFunc(slices.Clone(plays), func(p play) bool { return !slices.Contains(systems, p.system) })
}
