package libra

import (
	"math"

	"github.com/samya-db/samya/kvpart/libra"
	"github.com/samya-db/samya/lab/libralab"
)

// splitPolicies are the ways to split of Figure 17, and splitMinutes the time for it.
var splitPolicies = []libralab.Policy{ours, sizeSplits, noSplits}

const splitMinutes = 56

func (m *measured) split(p libralab.Policy) run {
	r := m.static(skewed, p)
	r.minutes, r.noise = splitMinutes, 0
	return r
}

// roundMinutes is how long a hot spot of Figure 18 lasts.
const roundMinutes = 20

func (m *measured) round(p libralab.Policy) run {
	r := m.static(skewed, p)
	r.shift, r.minutes, r.merge = roundMinutes, roundMinutes*m.rounds, true
	return r
}

// durable are the policies of Figure 21.
func durable() []libralab.Policy { return []libralab.Policy{off, isolated, weighted, ours} }

// duration is a run with hot spots of so many minutes, for at least an hour and three hot
// spots.
func (m *measured) duration(p libralab.Policy, minutes int) run {
	r := m.static(skewed, p)
	r.shift, r.minutes, r.merge = minutes, max(60, 3*minutes), true
	return r
}

func (m *measured) tolerance(lambda float64) run {
	r := m.static(skewed, ours)
	r.lambda, r.minutes = lambda, splitMinutes
	return r
}

// weights are the weights of the processor in Table II.
var weights = []float64{0, .25, .5, .75, 1}

func (m *measured) weight(w float64) run {
	p := weighted
	p.Weight = w
	return m.static(skewed, p)
}

func (m *measured) scale(p libralab.Policy, nodes int) run {
	r := m.static(skewed, p)
	r.nodes = nodes
	return r
}

// exact is a run of Libra without noise.
func (m *measured) exact(workload string) run {
	r := m.static(workload, ours)
	r.noise = 0
	return r
}

// barred is the published skew where regions do not go to nodes with a replica.
func (m *measured) barred() run {
	r := m.exact(published)
	r.handover = false
	return r
}

// cells are all runs, each once.
func (m *measured) cells() []run {
	var all []run
	seen := make(map[run]bool)
	add := func(r run) {
		if !seen[r] {
			seen[r] = true
			all = append(all, r)
		}
	}
	for _, w := range []string{skewed, published} {
		for _, p := range lineup() {
			if !m.env.Quick || w == skewed || p == ours {
				add(m.static(w, p))
			}
		}
		add(m.exact(w))
	}
	add(m.barred())
	for _, l := range m.letters {
		for _, p := range []libralab.Policy{off, isolated, turns, weighted, ours} {
			add(m.static(l, p))
		}
	}
	for _, p := range splitPolicies {
		add(m.split(p))
	}
	for _, p := range []libralab.Policy{ours, eager} {
		add(m.round(p))
	}
	for _, d := range m.durations {
		for _, p := range durable() {
			add(m.duration(p, d))
		}
	}
	for _, l := range m.lambdas {
		add(m.tolerance(l))
	}
	for _, w := range weights {
		add(m.weight(w))
	}
	for _, n := range m.sizes {
		for _, p := range []libralab.Policy{ours, isolated, weighted} {
			add(m.scale(p, n))
		}
	}
	return all
}

// mean is the mean over the seeds, worst the largest and least the smallest; NaN if the run
// did not run.
func (m *measured) mean(r run, of func(*outcome) float64) float64 {
	sum := 0.
	for _, o := range m.runs[r] {
		sum += of(o)
	}
	return sum / float64(len(m.runs[r]))
}

func (m *measured) worst(r run, of func(*outcome) float64) float64 {
	most := math.Inf(-1)
	for _, o := range m.runs[r] {
		most = max(most, of(o))
	}
	return most
}

func (m *measured) least(r run, of func(*outcome) float64) float64 {
	return -m.worst(r, func(o *outcome) float64 { return -of(o) })
}

// in is the Max/Mean of a dimension.
func in(d libra.Dimension) func(*outcome) float64 {
	return func(o *outcome) float64 { return o.last[d] }
}

// reduction is by how much the Max/Mean of a run is below the Max/Mean of another, in %,
// of the means over the seeds.
func (m *measured) reduction(r, than run, of func(*outcome) float64) float64 {
	return 100 * (1 - m.mean(r, of)/m.mean(than, of))
}

// leastReduction is the same of the seed with the least.
func (m *measured) leastReduction(r, than run, of func(*outcome) float64) float64 {
	least := math.Inf(1)
	for i, o := range m.runs[r] {
		least = min(least, 100*(1-of(o)/of(m.runs[than][i])))
	}
	return least
}

// endsOf returns a number at the ends of the hot spots of a run.
func endsOf(o *outcome, r run, of func(*libralab.Point) float64) []float64 {
	all := make([]float64, r.minutes/r.shift)
	for i := range o.Points {
		p := &o.Points[i]
		after := p.Second - beginMinutes*60 + 10
		if k := after / (r.shift * 60); after > 0 && after%(r.shift*60) == 0 && k <= len(all) {
			all[k-1] = of(p)
		}
	}
	return all
}

// ends are the means of endsOf over the seeds.
func (m *measured) ends(r run, of func(*libralab.Point) float64) []float64 {
	all := make([]float64, r.minutes/r.shift)
	for _, o := range m.runs[r] {
		for k, v := range endsOf(o, r, of) {
			all[k] += v / float64(len(m.runs[r]))
		}
	}
	return all
}

// overTime is the mean Max/Mean of the worse dimension from the beginning on.
func overTime(o *outcome) float64 {
	sum, n := 0., 0.
	for i := range o.Points {
		if o.Points[i].Second > beginMinutes*60 {
			sum += worseOf(&o.Points[i])
			n++
		}
	}
	return sum / n
}

func worseOf(p *libralab.Point) float64 { return max(p.Served[libra.CPU], p.Served[libra.Disk]) }

// atEndOf is the mean over the hot spots of a run of the Max/Mean just before each ends;
// atEnd is its mean over the seeds.
func atEndOf(r run) func(*outcome) float64 {
	return func(o *outcome) float64 {
		sum, all := 0., endsOf(o, r, worseOf)
		for _, v := range all {
			sum += v / float64(len(all))
		}
		return sum
	}
}

func (m *measured) atEnd(r run) float64 { return m.mean(r, atEndOf(r)) }
