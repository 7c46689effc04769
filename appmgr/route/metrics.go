package route

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/samya-db/samya/internal/health"
	"github.com/samya-db/samya/internal/metric"
)

// metrics are the metrics of sites. Sites are at most maxSites, and are dropped when
// they go.
type metrics struct {
	siteCalls *prometheus.CounterVec
	siteRTT   *prometheus.GaugeVec
	siteUp    *prometheus.GaugeVec
	siteSkew  *prometheus.GaugeVec
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	to := metric.To(reg)
	return &metrics{
		siteCalls: to.Counters("samya_appmgr_site_calls_total", "Calls relayed, by site and fate: answered, unsent, or lost (may have been executed).", "site", "fate"),
		siteRTT:   to.Gauges("samya_appmgr_site_round_trip_seconds", "Moving average of the round trip to a site.", "site"),
		siteUp:    to.Gauges("samya_appmgr_site_up", "1 if the site answers probes.", "site"),
		siteSkew:  to.Gauges("samya_appmgr_site_clock_skew_seconds", "By how much the clock of a site is ahead of this app manager's, negative if behind.", "site"),
	}, to.Err()
}

// fateCounters count the calls to a site, by fate.
type fateCounters [answered + 1]prometheus.Counter

func (m *metrics) siteFates(site string) (c fateCounters) {
	for f := range c {
		c[f] = m.siteCalls.WithLabelValues(site, fate(f).String())
	}
	return c
}

func (m *metrics) siteHealth(site string, h health.Health) {
	if h.Reach == health.Up {
		m.siteUp.WithLabelValues(site).Set(1)
		m.siteRTT.WithLabelValues(site).Set(h.RTT.Seconds())
		return
	}
	m.siteUp.WithLabelValues(site).Set(0)
	m.siteRTT.DeleteLabelValues(site)
}

// forget drops the gauges of a site that is gone.
func (m *metrics) forget(site string) {
	m.siteUp.DeleteLabelValues(site)
	m.siteSkew.DeleteLabelValues(site)
	m.siteRTT.DeleteLabelValues(site)
	m.siteCalls.DeletePartialMatch(prometheus.Labels{"site": site})
}
