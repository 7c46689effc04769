package promql

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Labels are a series' labels, without its name.
type Labels map[string]string

// Key returns a text that is the same for equal labels, and no others.
func (l Labels) Key() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(l)) {
		if l[name] != "" {
			b.WriteString(name + "=" + strconv.Quote(l[name]) + ",")
		}
	}
	return b.String()
}

// pick returns the labels of the given names, or, with without, all others.
func (l Labels) pick(names []string, without bool) Labels {
	out := make(Labels)
	for name, v := range l {
		if slices.Contains(names, name) != without {
			out[name] = v
		}
	}
	return out
}

// Point is a value of a series at an instant.
type Point struct {
	Labels Labels
	Value  float64
}

// sample is a value with its time.
type sample struct {
	at    time.Time
	value float64
}

// series is a series with its samples, the oldest first.
type series struct {
	labels Labels
	// born is when the series began, at zero; the zero time if that is not known.
	born    time.Time
	samples []sample
}

// History holds the samples of looks. The zero value is not usable; see NewHistory.
type History struct {
	lookback, keep time.Duration
	metrics        map[string]map[string]*series
}

// NewHistory returns an empty history. A value counts at an instant if it is younger
// than lookback. Samples older than keep are forgotten.
func NewHistory(lookback, keep time.Duration) *History {
	return &History{lookback: lookback, keep: keep, metrics: make(map[string]map[string]*series)}
}

// Add adds a sample of a metric. Samples of a series come in the order of time; a sample
// that is not later than the one before is left out.
func (h *History) Add(metric string, labels Labels, at time.Time, value float64) {
	s := h.one(metric, labels)
	if n := len(s.samples); n > 0 && !at.After(s.samples[n-1].at) {
		return
	}
	old := 0
	for old < len(s.samples) && at.Sub(s.samples[old].at) > h.keep {
		old++
	}
	s.samples = append(s.samples[old:], sample{at, value})
}

// Born tells that a series, if it is a counter, began at zero at a time. Increases over
// ranges that hold the time then go by it.
func (h *History) Born(metric string, labels Labels, at time.Time) {
	h.one(metric, labels).born = at
}

// one returns a series, and makes it if necessary.
func (h *History) one(metric string, labels Labels) *series {
	all := h.metrics[metric]
	if all == nil {
		all = make(map[string]*series)
		h.metrics[metric] = all
	}
	key := labels.Key()
	s := all[key]
	if s == nil {
		s = &series{labels: maps.Clone(labels)}
		all[key] = s
	}
	return s
}

// of returns the series of a metric in a fixed order.
func (h *History) of(metric string) []*series {
	all := h.metrics[metric]
	out := make([]*series, 0, len(all))
	for _, key := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[key])
	}
	return out
}

// at returns the value at an instant.
func (s *series) at(now time.Time, lookback time.Duration) (float64, bool) {
	for _, one := range slices.Backward(s.samples) {
		if !one.at.After(now) {
			return one.value, now.Sub(one.at) < lookback
		}
	}
	return 0, false
}

// within returns the samples of a range that ends now, without its begin.
func (s *series) within(now time.Time, span time.Duration) []sample {
	from, to := 0, len(s.samples)
	for from < to && now.Sub(s.samples[from].at) >= span {
		from++
	}
	for to > from && s.samples[to-1].at.After(now) {
		to--
	}
	return s.samples[from:to]
}
