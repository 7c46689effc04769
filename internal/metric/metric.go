// Package metric makes metrics of Prometheus and registers them, so that the metrics of a
// package are a table of names and helps. It has no metrics of its own, and does not name
// or serve any.
package metric

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Maker makes metrics of a registry.
type Maker struct {
	registry prometheus.Registerer
	err      error
}

// To returns a maker for a registry; with nil it registers nothing.
func To(registry prometheus.Registerer) *Maker { return &Maker{registry: registry} }

// Err returns why metrics could not be registered, or nil.
func (m *Maker) Err() error { return m.err }

// Register registers collectors that are made elsewhere.
func (m *Maker) Register(all ...prometheus.Collector) {
	for _, c := range all {
		if m.registry != nil {
			m.err = errors.Join(m.err, m.registry.Register(c))
		}
	}
}

func made[C prometheus.Collector](m *Maker, c C) C {
	m.Register(c)
	return c
}

// Counter makes a counter.
func (m *Maker) Counter(name, help string) prometheus.Counter {
	return made(m, prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help}))
}

// Counters makes counters with labels.
func (m *Maker) Counters(name, help string, labels ...string) *prometheus.CounterVec {
	return made(m, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels))
}

// CountersOf makes counters with a label, of which the counters of some values exist from
// the start: the rates over a series' first event would miss a series that appears with
// the event.
func (m *Maker) CountersOf(name, help, label string, values ...string) *prometheus.CounterVec {
	vec := m.Counters(name, help, label)
	for _, v := range values {
		vec.WithLabelValues(v)
	}
	return vec
}

// Gauge makes a gauge.
func (m *Maker) Gauge(name, help string) prometheus.Gauge {
	return made(m, prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help}))
}

// Gauges makes gauges with labels.
func (m *Maker) Gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return made(m, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels))
}

// Histogram makes a histogram of as many buckets, of which each is twice as wide as the
// one before; the first goes up to least.
func (m *Maker) Histogram(name, help string, least float64, buckets int) prometheus.Histogram {
	return made(m, prometheus.NewHistogram(histogram(name, help, least, buckets)))
}

// Histograms makes such histograms with labels.
func (m *Maker) Histograms(name, help string, least float64, buckets int, labels ...string) *prometheus.HistogramVec {
	return made(m, prometheus.NewHistogramVec(histogram(name, help, least, buckets), labels))
}

func histogram(name, help string, least float64, buckets int) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(least, 2, buckets)}
}
