package quota

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/samya-db/samya/internal/apierr"
)

type metrics struct {
	streams, buckets prometheus.Gauge
	beyond           prometheus.Counter
	assigned         map[verdict]prometheus.Counter
	leases           *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	verdicts := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "samya_appmgr_ratelimit_quota_assignments_total",
		Help: "Assignments to proxies by the rate limit quota service, by verdict: share, allow, deny, abandon.",
	}, []string{"verdict"})
	m := &metrics{
		streams: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "samya_appmgr_ratelimit_quota_streams", Help: "Streams of proxies to the rate limit quota service.",
		}),
		buckets: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "samya_appmgr_ratelimit_quota_buckets", Help: "Buckets that proxies report to the rate limit quota service.",
		}),
		beyond: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "samya_appmgr_ratelimit_quota_beyond_total", Help: "Reports of buckets beyond the bounds, which get no assignment.",
		}),
		assigned: make(map[verdict]prometheus.Counter),
		leases: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "samya_appmgr_ratelimit_quota_leases_total",
			Help: "Calls about leases of share by the rate limit quota service, by call (acquire, renew, return) and outcome: ok, or the reason of an error.",
		}, []string{"call", "outcome"}),
	}
	for v := share; v <= abandon; v++ {
		m.assigned[v] = verdicts.WithLabelValues(v.String())
	}
	for _, c := range []prometheus.Collector{m.streams, m.buckets, m.beyond, verdicts, m.leases} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// leased counts a call about a lease.
func (m *metrics) leased(call string, err error) {
	outcome := "ok"
	if err != nil {
		outcome = string(apierr.ReasonOf(err))
	}
	m.leases.WithLabelValues(call, outcome).Inc()
}
