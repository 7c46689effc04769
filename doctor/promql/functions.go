package promql

import (
	"math"
	"slices"
	"strconv"
	"time"
)

// function is a function of a rule.
type function struct {
	takes []shape
	// over is the value of a series from the samples in the range, for functions of a
	// range; ok is false for none.
	over func(samples []sample) (v float64, ok bool)
	// fromBirth is set for a function that goes by the birth of a series.
	fromBirth bool
	// of is the value of all arguments, for other functions.
	of func(args [][]Point) []Point
}

var functions = map[string]function{
	"rate":               {takes: []shape{ranged}, over: rate},
	"increase":           {takes: []shape{ranged}, over: increase, fromBirth: true},
	"changes":            {takes: []shape{ranged}, over: changes},
	"min_over_time":      {takes: []shape{ranged}, over: least},
	"clamp_min":          {takes: []shape{vector, single}, of: clampMin},
	"histogram_quantile": {takes: []shape{single, vector}, of: quantile},
}

// call is a function with arguments.
type call struct {
	name string
	function
	args []node
}

func (*call) shape() shape { return vector }

func (c *call) each(f func(node)) {
	for _, a := range c.args {
		f(a)
	}
}

func (c *call) eval(h *History, now time.Time) ([]Point, error) {
	if c.over != nil {
		s := c.args[0].(*selector) // the only node that is a range
		var out []Point
		for _, one := range s.series(h) {
			samples := one.within(now, s.span)
			if c.fromBirth && len(samples) > 0 && !one.born.IsZero() && now.Sub(one.born) < s.span && one.born.Before(samples[0].at) {
				samples = append([]sample{{at: one.born}}, samples...)
			}
			if v, ok := c.over(samples); ok {
				out = append(out, Point{one.labels, v})
			}
		}
		return out, nil
	}
	values := make([][]Point, len(c.args))
	for i, a := range c.args {
		var err error
		if values[i], err = a.eval(h, now); err != nil {
			return nil, err
		}
	}
	return c.of(values), nil
}

// increase is by how much a counter grew. A counter that is lower than before began anew
// at zero.
func increase(samples []sample) (v float64, ok bool) {
	if len(samples) < 2 {
		return 0, false
	}
	for i, s := range samples[1:] {
		grown := s.value - samples[i].value
		if grown < 0 {
			grown = s.value
		}
		v += grown
	}
	return v, true
}

func rate(samples []sample) (float64, bool) {
	v, ok := increase(samples)
	if !ok {
		return 0, false
	}
	return v / samples[len(samples)-1].at.Sub(samples[0].at).Seconds(), true
}

func changes(samples []sample) (v float64, ok bool) {
	for i := range samples {
		if i > 0 && samples[i].value != samples[i-1].value {
			v++
		}
	}
	return v, len(samples) > 0
}

func least(samples []sample) (float64, bool) {
	if len(samples) == 0 {
		return 0, false
	}
	v := math.Inf(1)
	for _, s := range samples {
		v = math.Min(v, s.value)
	}
	return v, true
}

func clampMin(args [][]Point) []Point {
	var out []Point
	for _, p := range args[0] {
		out = append(out, Point{p.Labels, math.Max(p.Value, args[1][0].Value)})
	}
	return out
}

// bucket is a bucket of a histogram: how many values are at most le.
type bucket struct{ le, count float64 }

// quantile estimates a quantile of each histogram, as Prometheus does: evenly within a
// bucket. A histogram without values has none.
func quantile(args [][]Point) []Point {
	q := args[0][0].Value
	histograms := make(map[string][]bucket)
	var out []Point
	for _, p := range args[1] {
		le, err := strconv.ParseFloat(p.Labels["le"], 64)
		if err != nil || math.IsNaN(p.Value) {
			continue
		}
		l := p.Labels.pick([]string{"le"}, true)
		key := l.Key()
		if histograms[key] == nil {
			out = append(out, Point{Labels: l})
		}
		histograms[key] = append(histograms[key], bucket{le, p.Value})
	}
	kept := out[:0]
	for _, p := range out {
		if v, ok := quantileOf(q, histograms[p.Labels.Key()]); ok {
			kept = append(kept, Point{p.Labels, v})
		}
	}
	return kept
}

func quantileOf(q float64, all []bucket) (float64, bool) {
	slices.SortFunc(all, func(a, b bucket) int {
		switch {
		case a.le < b.le:
			return -1
		case a.le > b.le:
			return 1
		}
		return 0
	})
	last := len(all) - 1
	if last < 1 || !math.IsInf(all[last].le, 1) || !(all[last].count > 0) {
		return 0, false
	}
	rank := q * all[last].count
	i := slices.IndexFunc(all, func(b bucket) bool { return b.count >= rank })
	switch {
	case i < 0 || i == last:
		return all[last-1].le, finite(all[last-1].le)
	case i == 0:
		if all[0].le <= 0 {
			return all[0].le, finite(all[0].le)
		}
		return all[0].le * rank / all[0].count, true
	}
	low, high := all[i-1], all[i]
	v := low.le + (high.le-low.le)*(rank-low.count)/(high.count-low.count)
	return v, finite(v)
}
