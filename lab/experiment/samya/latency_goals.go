package samya

import (
	"slices"

	"github.com/samya-db/samya/lab/experiment"
)

// toSite is the round trip between a client and its site, in ms.
const toSite = 1.0

// The bounds of the goals.
const (
	fitCommitted   = 99.99 // % of No Constraint
	tightCommitted = 99.9  // % of the oracle
	mostTail       = 2.0   // ms
	refusedShare   = 1.1   // of the oracle's refusals
	refusedMore    = 100.0
	mostASecond    = 1.0 // redistributions
	ofPaper        = .8  // of the redistributions under the paper's policies
	ofHalf         = 1.0 / 8
	ofExact        = 1.0 / 30
	overOneRound   = 13.0
	overBatched    = 100.0
	equalRate      = .999
	overBareFit    = 1.04
	overBareTight  = 1.08
)

func p99(o *outcome) float64  { return o.all.p99 }
func p999(o *outcome) float64 { return o.all.p999 }

// plenty999 is p999 of the acquires that came while a twentieth of the limit was
// free.
func plenty999(o *outcome) float64 { return o.plenty.p999 }

// whereFit returns a figure of each seed with demand below the limit throughout the
// hour of fit: the oracle refuses nothing.
func (r *runs) whereFit(f func(of func(play) *outcome) float64) []float64 {
	refused := r.by(func(of func(play) *outcome) float64 {
		f(of)
		return float64(of(r.on(transfers, fit)).oracleRefused)
	})
	var all []float64
	for i, v := range r.by(f) {
		if refused[i] == 0 {
			all = append(all, v)
		}
	}
	return all
}

// latencyGoals returns the goals of the hour. A goal for every seed judges the
// worst seed. A goal that needs demand below the limit judges the worst of such
// hours.
func latencyGoals(r *runs) []experiment.Goal {
	granted := r.whereFit(func(of func(play) *outcome) float64 {
		return 100 * ratio(of(r.on(transfers, fit)).committed(), of(r.on(unlimited, fit)).committed())
	})
	tails := r.whereFit(func(of func(play) *outcome) float64 { return p999(of(r.on(transfers, fit))) })
	refusals := r.whereFit(func(of func(play) *outcome) float64 { return of(r.on(transfers, fit)).beyondOracle() })
	goals := []experiment.Goal{
		r.judged(experiment.AtLeast("fit: committed, of No Constraint's, worst hour without refusals of the oracle", least(granted), fitCommitted, "%")),
		r.judged(experiment.AtLeast("fit: committed, of the oracle's, worst seed", least(percent(r.each(r.on(transfers, fit), ofOracle))), tightCommitted, "%")),
		r.judged(experiment.AtMost("fit: refused, worst hour without refusals of the oracle", most(refusals), 0, "")),
		r.judged(experiment.AtMost("fit: refused beyond 1.1 × the oracle's, worst seed", most(r.each(r.on(transfers, fit), beyondShare)), refusedMore, "")),
	}
	for _, s := range []string{transfers, majority} {
		goals = append(goals, r.judged(experiment.AtMost("fit: p99 beyond the way to the site, worst seed, "+title(s), most(r.each(r.on(s, fit), p99))-toSite, mostTail, "ms")))
	}
	goals = append(
		goals,
		r.judged(experiment.AtMost("fit: p99.9 beyond the way to the site, worst hour without refusals of the oracle, "+title(transfers), most(tails)-toSite, mostTail, "ms")),
		r.judged(experiment.AtMost("fit: p99.9 beyond the way to the site, median, "+title(transfers), r.median(r.on(transfers, fit), p999)-toSite, mostTail, "ms")),
		r.judged(experiment.AtMost("fit: p99.9 of those that come while 5 % is free, worst seed", most(r.each(r.on(transfers, fit), plenty999)), mostTail, "ms")),
		r.judged(experiment.AtMost("fit: p99.9 beyond the way to the site, median, "+title(majority), r.median(r.on(majority, fit), p999)-toSite, mostTail, "ms")),
		r.judged(experiment.AtLeast("tight: committed, of the oracle's, worst seed", least(percent(r.each(r.on(transfers, tight), ofOracle))), tightCommitted, "%")),
		r.judged(experiment.AtMost("tight: refused beyond 1.1 × the oracle's, worst seed", most(r.each(r.on(transfers, tight), beyondShare)), refusedMore, "")),
		r.judged(experiment.AtMost("tight: p99 of those that come while 5 % is free, worst seed", most(r.each(r.on(transfers, tight), func(o *outcome) float64 { return o.plenty.p99 })), mostTail, "ms")),
		r.judged(experiment.AtMost("burst: p99, median", r.median(r.on(transfers, burst), p99), mostTail, "ms")),
		r.judged(experiment.AtMost("over: redistributions a second over all sites, median", r.median(r.on(transfers, over), func(o *outcome) float64 {
			return o.redistributions() / o.seconds
		}), mostASecond, "/s")),
	)
	for _, w := range []string{fit, tight} {
		goals = append(
			goals,
			r.judged(experiment.AtMost(w+": redistributions, of those with the paper's policies, median", median(r.ratios(r.on(transfers, w), r.on(paperMajority, w), (*outcome).redistributions)), ofPaper, "×")),
			r.judged(experiment.Below(w+": acquires that wait, of those with the paper's policies, median", median(r.ratios(r.on(transfers, w), r.on(paperMajority, w), (*outcome).waits)), 1, "×")),
		)
	}
	goals = append(
		goals,
		r.judged(experiment.AtMost("fit: acquires that wait, of those of an escrow that borrows half, median", median(r.ratios(r.on(transfers, fit), r.on(escrowHalf, fit), (*outcome).waits)), ofHalf, "×")),
		r.judged(experiment.AtMost("fit: acquires that wait, of those of an escrow that borrows the need, median", median(r.ratios(r.on(transfers, fit), r.on(escrowExact, fit), (*outcome).waits)), ofExact, "×")),
		r.judged(experiment.AtLeast("fit: throughput over MultiPaxSys, median", median(r.ratios(r.on(transfers, fit), r.on(oneRound, fit), (*outcome).rate)), overOneRound, "×")),
		r.judged(experiment.AtLeast("fit: throughput over the batched MultiPaxSys, median", median(r.ratios(r.on(transfers, fit), r.on(batched, fit), (*outcome).rate)), equalRate, "×")),
		r.judged(experiment.AtLeast("fit: median latency of the batched MultiPaxSys over samya's", median(r.ratios(r.on(batched, fit), r.on(transfers, fit), func(o *outcome) float64 { return o.all.p50 })), overBatched, "×")),
	)
	for _, w := range latencyWorkloads {
		goals = append(goals, always(experiment.AtMost(w+": refused while 5 % was free, worst seed", most(r.each(r.on(transfers, w), falsely)), 0, "")))
	}
	return goals
}

func beyondLimit(o *outcome) float64 { return float64(o.beyond) }

// beyondShare returns the refusals beyond refusedShare of the oracle's refusals.
func beyondShare(o *outcome) float64 {
	return float64(o.refused) - refusedShare*float64(o.oracleRefused)
}

func falsely(o *outcome) float64 { return float64(o.falsely) }

// ofOracle returns the committed transactions, as a ratio to the oracle's.
func ofOracle(o *outcome) float64 { return ratio(o.committed(), float64(o.oracleCommitted)) }

// percent turns shares into percents.
func percent(shares []float64) []float64 {
	all := slices.Clone(shares)
	for i := range all {
		all[i] *= 100
	}
	return all
}
