package reads

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/samya-db/samya/internal/metric"
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
	to := metric.To(reg)
	return &metrics{
		exact: to.CountersOf("samya_appmgr_exact_reads_total",
			"Exact reads by outcome: consistent, inconsistent (tokens moved too fast), incomplete (a site did not answer).",
			"outcome", "consistent", "inconsistent", "incomplete"),
		rounds:  to.Histogram("samya_appmgr_exact_read_rounds", "How often an exact read asked sites.", 1, 6),
		watches: to.Gauge("samya_appmgr_watches", "Watches under way."),
		resumed: to.Counter("samya_appmgr_watches_resumed_total", "Watches that went on at another site, or anew at the same."),
	}, to.Err()
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
