package appmgr

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/health"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// metrics are the app manager's own metrics. Labels are bounded: methods and reasons are
// fixed sets. Sites are at most maxSites, and are dropped when they go.
type metrics struct {
	requests    *prometheus.CounterVec
	seconds     *prometheus.HistogramVec
	outstanding prometheus.Gauge
	siteCalls   *prometheus.CounterVec
	siteRTT     *prometheus.GaugeVec
	siteUp      *prometheus.GaugeVec
	siteSkew    *prometheus.GaugeVec
	// exact counts exact reads by outcome; rounds is how often each exact read asked
	// sites. watches counts watches under way; resumed counts watches that went on at
	// another site, or anew at the same site.
	exact   *prometheus.CounterVec
	rounds  prometheus.Histogram
	watches prometheus.Gauge
	resumed prometheus.Counter

	mu sync.RWMutex
	// methods are the metrics of each method, looked up once.
	methods map[[2]string]methodMetrics // by API and method
}

// methodMetrics are the metrics of a method of an API: requests done, and seconds.
type methodMetrics struct {
	done    prometheus.Counter
	seconds prometheus.Observer
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		methods: map[[2]string]methodMetrics{},
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "samya_appmgr_requests_total", Help: "Requests answered, by API, method and reason (OK if done).",
		}, []string{"api", "method", "reason"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "samya_appmgr_request_seconds", Help: "Time from a request to its answer.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 17),
		}, []string{"api", "method"}),
		outstanding: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "samya_appmgr_outstanding_requests", Help: "Requests under way.",
		}),
		siteCalls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "samya_appmgr_site_calls_total", Help: "Calls relayed, by site and fate: answered, unsent, or lost (may have been executed).",
		}, []string{"site", "fate"}),
		siteRTT: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "samya_appmgr_site_round_trip_seconds", Help: "Moving average of the round trip to a site.",
		}, []string{"site"}),
		siteUp: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "samya_appmgr_site_up", Help: "1 if the site answers probes.",
		}, []string{"site"}),
		siteSkew: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "samya_appmgr_site_clock_skew_seconds", Help: "By how much the clock of a site is ahead of this app manager's, negative if behind.",
		}, []string{"site"}),
	}
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
	for _, c := range []prometheus.Collector{
		m.exact, m.rounds, m.watches, m.resumed,
		m.requests, m.seconds, m.outstanding, m.siteCalls, m.siteRTT, m.siteUp, m.siteSkew,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// request counts an answered request. method must come from a fixed set.
func (m *metrics) request(api, method string, began time.Time, err error) {
	of := m.of(api, method)
	of.seconds.Observe(time.Since(began).Seconds())
	if err != nil {
		m.requests.WithLabelValues(api, method, string(apierr.ReasonOf(err))).Inc()
		return
	}
	of.done.Inc()
}

// of returns the metrics of a method.
func (m *metrics) of(api, method string) methodMetrics {
	key := [2]string{api, method}
	m.mu.RLock()
	found, ok := m.methods[key]
	m.mu.RUnlock()
	if ok {
		return found
	}
	made := methodMetrics{m.requests.WithLabelValues(api, method, "OK"), m.seconds.WithLabelValues(api, method)}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.methods[key] = made
	return made
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
