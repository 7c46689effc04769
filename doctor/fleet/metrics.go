package fleet

import (
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/samya-db/samya/doctor"
)

// maxMetrics bounds the metrics of a process, in bytes.
const maxMetrics = 32 << 20

// decode reads the metrics of a process in Prometheus' text format. Values that are no
// numbers are left out.
func decode(r io.Reader) ([]doctor.Sample, error) {
	limited := &io.LimitedReader{R: r, N: maxMetrics + 1}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(limited)
	if limited.N <= 0 {
		return nil, fmt.Errorf("metrics: more than %d bytes", maxMetrics)
	}
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	var all []doctor.Sample
	for name, f := range families {
		for _, m := range f.GetMetric() {
			all = append(all, samples(name, m)...)
		}
	}
	return all, nil
}

// gathered are the metrics of this process.
func gathered(from prometheus.Gatherer) (all []doctor.Sample, err error) {
	families, err := from.Gather()
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			all = append(all, samples(f.GetName(), m)...)
		}
	}
	return all, nil
}

// samples are the values of a metric, as Prometheus stores them.
func samples(name string, m *dto.Metric) (all []doctor.Sample) {
	add := func(suffix string, v float64, le string) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return
		}
		labels := make(map[string]string, len(m.GetLabel())+1)
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		if le != "" {
			labels["le"] = le
		}
		all = append(all, doctor.Sample{Metric: name + suffix, Labels: labels, Value: v})
	}
	switch h := m.GetHistogram(); {
	case h != nil:
		add("_sum", h.GetSampleSum(), "")
		add("_count", float64(h.GetSampleCount()), "")
		for _, b := range h.GetBucket() {
			add("_bucket", float64(b.GetCumulativeCount()), strconv.FormatFloat(b.GetUpperBound(), 'g', -1, 64))
		}
	case m.GetCounter() != nil:
		add("", m.GetCounter().GetValue(), "")
	case m.GetGauge() != nil:
		add("", m.GetGauge().GetValue(), "")
	case m.GetUntyped() != nil:
		add("", m.GetUntyped().GetValue(), "")
	}
	return all
}
