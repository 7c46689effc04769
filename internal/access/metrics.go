package access

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/samya-db/samya/internal/metric"
)

var (
	descExpiry = prometheus.NewDesc("samya_tls_expiry_seconds",
		"Seconds until a certificate ends, below 0 if it has: own, ca, or crl (until the next revocation list is due).",
		[]string{"certificate", "subject"}, nil)
	descReloads = prometheus.NewDesc("samya_tls_reloads_total",
		"How often changed certificates were found, by outcome: done, or failed (what was read before stands).",
		[]string{"outcome"}, nil)
)

// metrics are the guard's metrics. Their labels are bounded: no label names callers.
type metrics struct {
	refused, reloads *prometheus.CounterVec
	changes          *prometheus.CounterVec
	unrecorded       prometheus.Counter
}

func newMetrics() *metrics {
	to := metric.To(nil)
	return &metrics{
		refused: to.CountersOf("samya_access_refused_total", "Calls and operations refused, by reason: who asked is not known, may not, or asks for too much.",
			"reason", "UNAUTHENTICATED", "PERMISSION_DENIED", "RATE_LIMITED", "OVERLOADED"),
		reloads: to.CountersOf("samya_access_reloads_total", "How often a changed access file was found, by outcome: done, or failed (what was read before stands).",
			"outcome", "done", "failed"),
		changes: to.CountersOf("samya_access_changes_total", "Administrative changes asked for, by outcome: done, failed, or unwritten (refused, for want of the audit log).",
			"outcome", "done", "failed", "unwritten"),
		unrecorded: to.Counter("samya_access_refusals_unrecorded_total",
			"Refused administrative changes without a line in the audit log: too many in a second, or the log failed."),
	}
}

// Describe implements prometheus.Collector.
func (g *Guard) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range g.collectors() {
		c.Describe(ch)
	}
	if g.cfg.TLS != nil {
		ch <- descExpiry
		ch <- descReloads
	}
}

// Collect implements prometheus.Collector.
func (g *Guard) Collect(ch chan<- prometheus.Metric) {
	for _, c := range g.collectors() {
		c.Collect(ch)
	}
	if g.cfg.TLS == nil {
		return
	}
	st := g.cfg.TLS.Stats()
	for _, e := range st.Expiries {
		ch <- prometheus.MustNewConstMetric(descExpiry, prometheus.GaugeValue, e.Left.Seconds(), e.What, e.Subject)
	}
	ch <- prometheus.MustNewConstMetric(descReloads, prometheus.CounterValue, float64(st.Reloaded), "done")
	ch <- prometheus.MustNewConstMetric(descReloads, prometheus.CounterValue, float64(st.Failed), "failed")
}

func (g *Guard) collectors() []prometheus.Collector {
	return []prometheus.Collector{g.metrics.refused, g.metrics.reloads, g.metrics.changes, g.metrics.unrecorded}
}
