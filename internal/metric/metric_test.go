package metric_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/samya-db/samya/internal/metric"
)

// TestRegistered: all metrics are in the registry, CountersOf's from the start, and a name
// that is taken is an error.
func TestRegistered(t *testing.T) {
	registry := prometheus.NewRegistry()
	to := metric.To(registry)
	to.Counter("a_total", "A.")
	to.Counters("b_total", "B.", "x")
	to.CountersOf("c_total", "C.", "x", "one", "two")
	to.Gauge("d", "D.")
	to.Gauges("e", "E.", "x").WithLabelValues("one")
	to.Histogram("f", "F.", 1, 3)
	to.Histograms("g", "G.", 1, 3, "x").WithLabelValues("one")
	if err := to.Err(); err != nil {
		t.Fatal(err)
	}
	all, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]int{}
	for _, f := range all {
		series[f.GetName()] = len(f.GetMetric())
		if h := f.GetMetric()[0].GetHistogram(); h != nil && h.GetBucket()[2].GetUpperBound() != 4 {
			t.Errorf("%s has the buckets %v, want the third up to 4", f.GetName(), h.GetBucket())
		}
	}
	for name, want := range map[string]int{"a_total": 1, "b_total": 0, "c_total": 2, "d": 1, "e": 1, "f": 1, "g": 1} {
		if series[name] != want {
			t.Errorf("%s has %d series, want %d", name, series[name], want)
		}
	}
	to.Gauge("a_total", "Another.")
	if to.Err() == nil {
		t.Error("a name was registered twice")
	}
}

// TestUnregistered: a maker without a registry makes metrics all the same.
func TestUnregistered(t *testing.T) {
	to := metric.To(nil)
	to.Counter("a_total", "A.").Inc()
	to.Counter("a_total", "A.").Inc()
	if err := to.Err(); err != nil {
		t.Error(err)
	}
}
