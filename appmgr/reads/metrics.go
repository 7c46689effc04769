package reads

import (
	"github.com/prometheus/client_golang/prometheus"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// metrics are the metrics of reads and watches.
type metrics struct {
	// exact counts exact reads by outcome; rounds is how often each exact read asked
	// sites. watches counts watches under way; resumed counts watches that went on at
	// another site, or anew at the same site.
	exact   *prometheus.CounterVec
	rounds  prometheus.Histogram
	watches prometheus.Gauge
	resumed prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{}
	m.exact = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "samya_appmgr_exact_reads_total",
		Help: "Exact reads by outcome: consistent, inconsistent (tokens moved too fast), incomplete (a site did not answer).",
	}, []string{"outcome"})
	m.rounds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "samya_appmgr_exact_read_rounds", Help: "How often an exact read asked sites.",
		Buckets: prometheus.ExponentialBuckets(1, 2, 6),
	})
	m.watches = prometheus.NewGauge(prometheus.GaugeOpts{Name: "samya_appmgr_watches", Help: "Watches under way."})
	m.resumed = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "samya_appmgr_watches_resumed_total", Help: "Watches that went on at another site, or anew at the same.",
	})
	// A series that appears with its first event would be missed by the rates over it.
	for _, outcome := range []string{"consistent", "inconsistent", "incomplete"} {
		m.exact.WithLabelValues(outcome)
	}
	for _, c := range []prometheus.Collector{m.exact, m.rounds, m.watches, m.resumed} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// exactRead counts an exact read that asked sites in rounds rounds.
func (m *metrics) exactRead(u *samyav1.Usage, rounds int) {
	outcome := "inconsistent"
	switch {
	case u.GetConsistent():
		outcome = "consistent"
	case !u.GetComplete():
		outcome = "incomplete"
	}
	m.exact.WithLabelValues(outcome).Inc()
	m.rounds.Observe(float64(rounds))
}
