package libra

import (
	"fmt"
	"math"

	"github.com/samya-db/samya/kvpart/libra"
	"github.com/samya-db/samya/lab/experiment"
	"github.com/samya-db/samya/lab/libralab"
)

// The bounds of the goals.
const (
	exactBound   = 1 + libra.DefaultTolerance // most Max/Mean without noise
	noisyBound   = 1.10                       // most with noise
	gap          = 20.0                       // least reduction beside 2D-ISO and 2D-WTD, %
	byLoadBound  = 10.0                       // most error of L-split, %
	bySizeBound  = 40.0                       // least error of S-split, %
	growthBound  = 1.5                        // least growth of regions, and added regions not lazy over lazy
	ycsbBound    = 20.9                       // least reduction on a YCSB workload, %
	flatBound    = .03                        // most gain of a tolerance below 0.05
	inverseBound = 1.0                        // least growth of splits, over that of 1/λ
)

// gaps are the reductions of Figure 11 that the paper gives, in %, by rival.
var gaps = map[string]libra.Load{
	onlyCPU.Name: {4.1, 52.7}, onlyDisk.Name: {47, 5}, isolated.Name: {34.1, 26.5}, weighted.Name: {32.2, 24.5},
}

// dimensionName is the paper's name of a dimension.
func dimensionName(d libra.Dimension) string {
	if d == libra.CPU {
		return "CPU"
	}
	return "disk"
}

// worse is the Max/Mean of the worse dimension.
func worse(o *outcome) float64 { return o.worse() }

// goals judges the paper's claims, each at the worst seed. Goals that few seeds cannot judge
// are not measured in a quick run.
func (m *measured) goals() []experiment.Goal {
	mine := m.static(skewed, ours)
	var all []experiment.Goal
	add := func(g experiment.Goal, short bool) {
		if m.env.Quick && !short || math.IsNaN(g.Got) || math.IsInf(g.Got, 0) {
			g = experiment.Unmeasured(g)
		}
		all = append(all, g)
	}
	add(experiment.AtMost("no noise: Max/Mean of Libra", m.worst(m.exact(skewed), worse), exactBound+1e-9, ""), true)
	add(experiment.AtMost("no noise, published skew: Max/Mean of Libra", m.worst(m.exact(published), worse), exactBound+1e-9, ""), true)
	add(experiment.AtMost("noise: Max/Mean of Libra", m.worst(mine, worse), noisyBound, ""), true)
	add(experiment.AtMost("noise, published skew: Max/Mean of Libra", m.worst(m.static(published, ours), worse), noisyBound, ""), true)
	for _, p := range rivals() {
		for _, d := range libra.Dimensions() {
			bound, single := gap, p.Rule == libra.OnlyCPU || p.Rule == libra.OnlyDisk
			if single {
				bound = 0
			}
			what := fmt.Sprintf("Fig. 11: %s Max/Mean of Libra below %s", dimensionName(d), p.Name)
			add(experiment.AtLeast(what, m.leastReduction(mine, m.static(skewed, p), in(d)), bound, "%"), single && !own(p, d))
		}
	}
	add(experiment.AtLeast("Fig. 15d: Max/Mean of Libra below 2D-ISO, the least of A to F", m.leastYCSB(), ycsbBound, "%"), false)
	add(experiment.AtMost("Fig. 16: error of L-split", m.byLoadError(skewed), byLoadBound, "%"), true)
	add(experiment.AtLeast("Fig. 16: error of S-split", m.bySizeError(skewed), bySizeBound, "%"), true)
	add(experiment.AtLeast("Fig. 17: Max/Mean without splits", m.least(m.split(noSplits), worse), exactBound, ""), true)
	add(experiment.Below("Fig. 17: rounds of L-split over S-split", m.roundsRatio(), 1, "×"), false)
	add(experiment.AtLeast("Fig. 18: regions of the last round over the first, not lazy", m.growth(), growthBound, "×"), false)
	add(experiment.AtLeast("Fig. 18: rounds in which regions grow, not lazy", m.growing(), float64(m.rounds-1), ""), true)
	add(experiment.AtLeast("Fig. 18: regions added in all rounds, not lazy over lazy", m.added(), growthBound, "×"), false)
	short, long := m.durations[0], m.durations[len(m.durations)-1]
	add(experiment.AtMost(fmt.Sprintf("Fig. 21: gain over 2D-ISO with hot spots of %d min", short), m.mostGainAt(short), 0, "%"), false)
	add(experiment.AtMost(fmt.Sprintf("Fig. 21: Max/Mean of Libra at the end of hot spots of %d min", long), m.worst(m.duration(ours, long), atEndOf(m.duration(ours, long))), noisyBound, ""), true)
	low := m.lambdas[0]
	if low < libra.DefaultTolerance {
		add(experiment.AtLeast(fmt.Sprintf("Fig. 22: growth of splits from λ = 0.05 to %v, over the growth of 1/λ", low), m.growthOfSplits(low), inverseBound, "×"), true)
		add(experiment.AtMost(fmt.Sprintf("Fig. 22: Max/Mean at λ = 0.05 less Max/Mean at %v", low), m.flatness(low), flatBound, ""), true)
	}
	add(experiment.AtMost("Table II: Max/Mean of 2D-WTD at 0.5 over its best weight", m.overBest(m.weight(.5)), 1, "×"), false)
	add(experiment.Below("Table II: Max/Mean of Libra over 2D-WTD at its best weight", m.overBest(m.static(skewed, ours)), 1, "×"), true)
	return all
}

// leastYCSB is the least reduction beside isolated scheduling on a YCSB workload.
func (m *measured) leastYCSB() float64 {
	least := math.Inf(1)
	for _, l := range m.letters {
		least = min(least, m.leastReduction(m.static(l, ours), m.static(l, isolated), worse))
	}
	return least
}

// byLoadError is the largest error of splits by load, bySizeError the least by size, of all shares and
// dimensions, in %.
func (m *measured) byLoadError(workload string) float64 {
	most := 0.
	for _, a := range m.accuracy[workload] {
		most = max(most, 100*a.Load[libra.CPU], 100*a.Load[libra.Disk])
	}
	return most
}

func (m *measured) bySizeError(workload string) float64 {
	least := math.Inf(1)
	for _, a := range m.accuracy[workload] {
		least = min(least, 100*a.Size[libra.CPU], 100*a.Size[libra.Disk])
	}
	return least
}

// roundsOf counts rounds of splits.
func roundsOf(o *outcome) float64 { return float64(o.Rounds) }

// splitsOf counts splits.
func splitsOf(o *outcome) float64 { return float64(o.Splits) }

// minutesOf is the time to balance.
func minutesOf(o *outcome) float64 {
	if math.IsNaN(o.balanced) {
		return splitMinutes
	}
	return o.balanced
}

// roundsRatio is the rounds of splits by load over by size, of the seed with the largest.
func (m *measured) roundsRatio() float64 {
	most := 0.
	for i, o := range m.runs[m.split(ours)] {
		most = max(most, roundsOf(o)/roundsOf(m.runs[m.split(sizeSplits)][i]))
	}
	return most
}

// regionsOf counts regions.
func regionsOf(p *libralab.Point) float64 { return float64(p.Regions) }

// growth is the growth of regions without lazy scheduling from the first round to the last.
func (m *measured) growth() float64 {
	r := m.round(eager)
	return m.least(r, func(o *outcome) float64 {
		all := endsOf(o, r, regionsOf)
		return all[len(all)-1] / all[0]
	})
}

// growing is the number of rounds without lazy scheduling that have more regions than the
// round before.
func (m *measured) growing() float64 {
	r := m.round(eager)
	return m.least(r, func(o *outcome) float64 {
		n, all := 0., endsOf(o, r, regionsOf)
		for i, v := range all[1:] {
			if v > all[i] {
				n++
			}
		}
		return n
	})
}

// lazyRatio is the regions at the end without lazy scheduling over with it.
func (m *measured) lazyRatio() float64 {
	a, b := m.ends(m.round(eager), regionsOf), m.ends(m.round(ours), regionsOf)
	return a[len(a)-1] / b[len(b)-1]
}

// added is how many regions all rounds add without lazy scheduling over with it, on the
// worst seed.
func (m *measured) added() float64 {
	least := math.Inf(1)
	lazy := m.runs[m.round(ours)]
	for i, o := range m.runs[m.round(eager)] {
		least = min(least, float64(o.Splits-o.Merges)/float64(max(1, lazy[i].Splits-lazy[i].Merges)))
	}
	return least
}

// gainAt is the reduction beside isolated scheduling at the ends of hot spots, of the means
// over the seeds; mostGainAt is the reduction of the seed with the largest.
func (m *measured) gainAt(minutes int) float64 {
	return 100 * (1 - m.atEnd(m.duration(ours, minutes))/m.atEnd(m.duration(isolated, minutes)))
}

func (m *measured) mostGainAt(minutes int) float64 {
	r, than := m.duration(ours, minutes), m.duration(isolated, minutes)
	most := math.Inf(-1)
	for i, o := range m.runs[r] {
		most = max(most, 100*(1-atEndOf(r)(o)/atEndOf(than)(m.runs[than][i])))
	}
	return most
}

// growthOfSplits is the growth of splits over the growth of 1/λ, of the seed with the least.
func (m *measured) growthOfSplits(low float64) float64 {
	base := m.runs[m.tolerance(libra.DefaultTolerance)]
	least := math.Inf(1)
	for i, o := range m.runs[m.tolerance(low)] {
		least = min(least, splitsOf(o)/splitsOf(base[i])*low/libra.DefaultTolerance)
	}
	return least
}

// flatness is how much a low tolerance lowers Max/Mean, on the seed with the most.
func (m *measured) flatness(low float64) float64 {
	base := m.runs[m.tolerance(libra.DefaultTolerance)]
	most := math.Inf(-1)
	for i, o := range m.runs[m.tolerance(low)] {
		most = max(most, worse(base[i])-worse(o))
	}
	return most
}

// overBest is the Max/Mean of a run over the Max/Mean of weighted scheduling by its best
// weight, on the worst seed.
func (m *measured) overBest(r run) float64 {
	most := math.Inf(-1)
	for i, o := range m.runs[r] {
		best := math.Inf(1)
		for _, w := range weights {
			best = min(best, worse(m.runs[m.weight(w)][i]))
		}
		most = max(most, worse(o)/best)
	}
	return most
}

// compared are the claims of the paper beside ours, as means over the seeds, as the paper's.
func (m *measured) compared() []experiment.Comparison {
	mine := m.static(skewed, ours)
	var all []experiment.Comparison
	add := func(what, unit string, paper, got float64, why string) {
		c := experiment.Comparison{What: what, Unit: unit, Ours: got, Why: why}
		if !math.IsNaN(paper) {
			c.Paper = &paper
		}
		if !math.IsNaN(got) && !math.IsInf(got, 0) {
			all = append(all, c)
		}
	}
	for _, p := range rivals() {
		for _, d := range libra.Dimensions() {
			add(fmt.Sprintf("Fig. 11: %s Max/Mean below %s", dimensionName(d), p.Name), "%", gaps[p.Name][d],
				m.reduction(mine, m.static(skewed, p), in(d)), why(p, d))
			add(fmt.Sprintf("– %s with the store's splits", p.Name), "%", gaps[p.Name][d],
				m.reduction(mine, m.static(skewed, stores(p)), in(d)), "Regions with more than 3,000 requests/s are split at the middle request, and no others.")
		}
	}
	for _, v := range []struct {
		libralab.Policy
		why string
	}{
		{turns, "Both schedulers know of each other's moves: kinder than the paper's."},
		{bySize, "Splits by load are Libra's; perhaps the paper's rivals had none."},
		{unguarded, "The pause while loads fluctuate is Libra's as well."},
	} {
		for _, d := range libra.Dimensions() {
			add(fmt.Sprintf("– %s below %s", dimensionName(d), v.Name), "%", gaps[isolated.Name][d], m.reduction(mine, m.static(skewed, v.Policy), in(d)), v.why)
		}
	}
	for _, p := range rivals() {
		rate := 100 * (m.mean(m.static(skewed, p), worse)/m.mean(mine, worse) - 1)
		add(fmt.Sprintf("Model, not measured: throughput at saturation over %s", p.Name), "%", nan, rate, "In proportion to 1/Max; the paper has 32.4 to 72.1 % for writes, on its machines.")
	}
	for i, l := range m.letters {
		why := "The paper gives the range of all six."
		if l == "D" {
			why = "Keys of the latest records lie anywhere, and all regions are alike: no policy has much to do."
		}
		paper := nan
		if i == 0 {
			paper = 35.8
		}
		add("Fig. 15d: Max/Mean below 2D-ISO, YCSB "+l, "%", paper, m.reduction(m.static(l, ours), m.static(l, isolated), worse), why)
	}
	add("Fig. 16: error of L-split", "%", 10, m.byLoadError(skewed), "The largest of all shares and dimensions.")
	add("Fig. 16: error of S-split", "%", 40, m.bySizeError(skewed), "The least; hot ranges fill a small part of a region.")
	add("– error of L-split, scans of 50 keys (YCSB E)", "%", 10, m.byLoadError("E"), "A key cannot be split, and a hot key may have half of a region.")
	add("Fig. 17: minutes to balance, L-split", "min", nan, m.mean(m.split(ours), minutesOf), "The paper gives the difference to S-split alone: 20 min.")
	add("Fig. 17: minutes to balance, S-split", "min", nan, m.mean(m.split(sizeSplits), minutesOf), "Runs that never balance count with the length of the run.")
	add("Fig. 17: rounds of S-split over L-split", "×", nan, m.mean(m.split(sizeSplits), roundsOf)/m.mean(m.split(ours), roundsOf), "The paper says that S-split requires more splitting.")
	add("– splits of a hot spot that stays, not lazy over lazy", "×", nan, m.mean(m.static(skewed, eager), splitsOf)/m.mean(mine, splitsOf), "With noise; the paper gives none.")
	add("Fig. 18: CPU of communication, not lazy over lazy, last round", "%", 105.9, 100*(m.lazyRatio()-1), "In proportion to the number of regions. About 750 are here from the start, and neither way adds them.")
	for _, d := range m.durations {
		add(fmt.Sprintf("Fig. 21: gain over 2D-ISO at the end of hot spots of %d min", d), "%", nan, m.gainAt(d), "The paper has none below 5 min.")
	}
	add("Fig. 22: splits at λ = 0.05", "", nan, m.mean(m.tolerance(libra.DefaultTolerance), splitsOf), "The text says that splits rise above 0.05; they rise below.")
	for i, w := range weights {
		add(fmt.Sprintf("Table II: Max/Mean of 2D-WTD, weight %v", w), "", []float64{2.19, 2.04, 1.71, 2.11, 2.41}[i], m.mean(m.weight(w), worse), "")
	}
	return all
}

// why is the reason of a difference in Figure 11.
func why(p libralab.Policy, d libra.Dimension) string {
	switch {
	case own(p, d):
		return "In its own dimension it ends within the tolerance, as Libra does: a tie."
	case p.Rule == libra.Isolated:
		return "On some seeds it balances, after more moves; on others both schedulers undo each other's work for ever."
	case p.Rule == libra.Weighted:
		return "False balance: nodes with much of one and little of the other have the mean score."
	}
	return "It does not look at this dimension."
}

// own reports whether a policy balances a dimension alone.
func own(p libralab.Policy, d libra.Dimension) bool {
	return p.Rule == libra.OnlyCPU && d == libra.CPU || p.Rule == libra.OnlyDisk && d == libra.Disk
}
