package samya

import (
	"fmt"
	"math"
	"slices"

	"github.com/samya-db/samya/lab/experiment"
)

// runs are what came of the runs of a study.
type runs struct {
	*setting
	outcomes map[play]*outcome
	// err is the first outcome that was asked for and is not there.
	err error
}

// at returns the outcome of a run of a seed.
func (r *runs) at(p play, seed uint64) *outcome {
	p.seed = seed
	if o := r.outcomes[p]; o != nil {
		return o
	}
	if r.err == nil {
		r.err = fmt.Errorf("no run of %v", p)
	}
	return &outcome{}
}

// figure is something that a run shows.
type figure func(*outcome) float64

// by is a figure of each seed that all runs have which it is drawn from.
func (r *runs) by(f func(of func(play) *outcome) float64) []float64 {
	var all []float64
	for _, seed := range r.longest() {
		shared := true
		v := f(func(p play) *outcome {
			if shared = shared && r.has(p, seed); !shared {
				return &outcome{}
			}
			return r.at(p, seed)
		})
		if shared {
			all = append(all, v)
		}
	}
	return all
}

// each is a figure of a run of each seed.
func (r *runs) each(p play, f figure) []float64 {
	return r.by(func(of func(play) *outcome) float64 { return f(of(p)) })
}

// median is that of a figure over the seeds.
func (r *runs) median(p play, f figure) float64 { return median(r.each(p, f)) }

// ratios are those of a figure of two runs, of each seed.
func (r *runs) ratios(a, b play, f figure) []float64 {
	return r.by(func(of func(play) *outcome) float64 { return ratio(f(of(a)), f(of(b))) })
}

// perMinute are the medians of what is told of each minute.
func (r *runs) perMinute(p play, f func(*outcome) []float64) []float64 {
	all := make([]float64, minutesOf(p.span))
	for m := range all {
		all[m] = r.median(p, func(o *outcome) float64 {
			if v := f(o); m < len(v) {
				return v[m]
			}
			return 0
		})
	}
	return all
}

// judged takes a goal back that was not measured: its runs were too short or too
// few, or it is of nothing.
func (r *runs) judged(g experiment.Goal) experiment.Goal {
	if !r.whole {
		return experiment.Unmeasured(g)
	}
	return always(g)
}

// always is a goal that a short run can be held against as well.
func always(g experiment.Goal) experiment.Goal {
	if math.IsNaN(g.Got) || math.IsInf(g.Got, 0) {
		return experiment.Unmeasured(g)
	}
	return g
}

// ratio is a of b; NaN of nothing.
func ratio(a, b float64) float64 {
	if b == 0 {
		return math.NaN()
	}
	return a / b
}

// share is a of b, where nothing of nothing is nothing.
func share(a, b float64) float64 {
	if a == 0 {
		return 0
	}
	return a / b
}

// median is the mean of the middle two of an even number.
func median(values []float64) float64 {
	if len(values) == 0 || slices.ContainsFunc(values, math.IsNaN) {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// most and least are those of the seeds: NaN if one is.
func most(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	m := values[0]
	for _, v := range values {
		m = max(m, v)
	}
	return m
}

func least(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	m := values[0]
	for _, v := range values {
		m = min(m, v)
	}
	return m
}

// moving is the moving average over the last so many.
func moving(values []float64, over int) []float64 {
	all := make([]float64, len(values))
	sum := 0.0
	for i, v := range values {
		sum += v
		if i >= over {
			sum -= values[i-over]
		}
		all[i] = sum / float64(min(i+1, over))
	}
	return all
}
