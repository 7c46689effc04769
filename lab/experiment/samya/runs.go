package samya

import (
	"fmt"
	"math"
	"slices"

	"github.com/samya-db/samya/lab/experiment"
)

// runs are the outcomes of the runs of a study.
type runs struct {
	*setting
	outcomes map[play]*outcome
	// err names the first outcome asked for and missing.
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

// figure is a figure of a run.
type figure func(*outcome) float64

// by returns a figure for each seed shared by all runs in f.
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

// each returns a figure of a run for each seed.
func (r *runs) each(p play, f figure) []float64 {
	return r.by(func(of func(play) *outcome) float64 { return f(of(p)) })
}

// median returns the median of a figure over the seeds.
func (r *runs) median(p play, f figure) float64 { return median(r.each(p, f)) }

// ratios returns the ratio of a figure of two runs for each seed.
func (r *runs) ratios(a, b play, f figure) []float64 {
	return r.by(func(of func(play) *outcome) float64 { return ratio(f(of(a)), f(of(b))) })
}

// perMinute returns the median over the seeds for each minute.
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

// judged marks a goal as unmeasured if its runs were too short or too few, or if
// its figure is NaN or infinite.
func (r *runs) judged(g experiment.Goal) experiment.Goal {
	if !r.whole {
		return experiment.Unmeasured(g)
	}
	return always(g)
}

// always judges a goal that a short run can meet as well.
func always(g experiment.Goal) experiment.Goal {
	if math.IsNaN(g.Got) || math.IsInf(g.Got, 0) {
		return experiment.Unmeasured(g)
	}
	return g
}

// ratio returns a/b; NaN if b is 0.
func ratio(a, b float64) float64 {
	if b == 0 {
		return math.NaN()
	}
	return a / b
}

// share returns a/b; 0 if a is 0.
func share(a, b float64) float64 {
	if a == 0 {
		return 0
	}
	return a / b
}

// median returns the median, for an even number the mean of the middle two. It is
// NaN if any value is.
func median(values []float64) float64 {
	if len(values) == 0 || slices.ContainsFunc(values, math.IsNaN) {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// most and least return the extreme values; NaN if any value is.
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

// moving returns the moving average over the last values, at most over of them.
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
