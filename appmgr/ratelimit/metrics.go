package ratelimit

import (
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/samya-db/samya/internal/apierr"
)

// maxSeries bounds the rules that have metrics of their own: the rest counts as other.
const (
	maxSeries = 1000
	other     = "other"
	// maxLabel bounds the name of a rule in metrics, in bytes.
	maxLabel = 256
)

// metrics count the hits of rules, and the changes of the rules.
type metrics struct {
	hits      *prometheus.CounterVec
	decisions *prometheus.CounterVec
	// passed, refused and shadowed are decisions of the outcomes of decided requests.
	passed, refused, shadowed prometheus.Counter
	reloads                   *prometheus.CounterVec
	rules                     prometheus.Gauge

	mu sync.RWMutex
	of map[string]*series
}

// series are the counters of a rule.
type series struct{ within, over, shadow, unlimited prometheus.Counter }

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		of: make(map[string]*series),
		hits: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "samya_appmgr_ratelimit_hits_total",
			Help: "Hits of requests to the rate limit service, by rule and outcome: within_limit, over_limit, shadow_mode (over a limit in shadow mode), unlimited. From 1,000 rules on the rest is the rule other.",
		}, []string{"rule", "outcome"}),
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "samya_appmgr_ratelimit_decisions_total",
			Help: "Requests to the rate limit service, by outcome: ok, over_limit, shadow_mode (over a limit, and all limits are in shadow mode), or the reason of an error.",
		}, []string{"outcome"}),
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "samya_appmgr_ratelimit_reloads_total", Help: "Changes of the files with rate limits, by outcome: done, failed.",
		}, []string{"outcome"}),
		rules: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "samya_appmgr_ratelimit_descriptors", Help: "Descriptors in the files with rate limits.",
		}),
	}
	m.passed, m.refused, m.shadowed = m.decisions.WithLabelValues("ok"), m.decisions.WithLabelValues("over_limit"), m.decisions.WithLabelValues("shadow_mode")
	for _, c := range []prometheus.Collector{m.hits, m.decisions, m.reloads, m.rules} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// failed counts a request without a decision.
func (m *metrics) failed(err error) { m.decisions.WithLabelValues(string(apierr.ReasonOf(err))).Inc() }

// count counts the hits of a request that was decided. shadow: it passes only as all
// limits are in shadow mode.
func (m *metrics) count(all []decided, shadow bool) {
	switch {
	case shadow:
		m.shadowed.Inc()
	case denies(all):
		m.refused.Inc()
	default:
		m.passed.Inc()
	}
	for i := range all {
		d := &all[i]
		if d.match == nil {
			continue
		}
		s, n := m.series(d.match.Metric), float64(d.hits)
		switch {
		case d.match.Unlimited:
			s.unlimited.Add(n)
		case d.over && d.match.Shadow:
			s.shadow.Add(n)
		case d.over:
			s.over.Add(n)
		default:
			s.within.Add(n)
		}
	}
}

// series returns the counters of a rule.
func (m *metrics) series(rule string) *series {
	if len(rule) > maxLabel {
		rule = rule[:maxLabel]
	}
	rule = strings.ToValidUTF8(rule, "\uFFFD")
	m.mu.RLock()
	s := m.of[rule]
	m.mu.RUnlock()
	if s != nil {
		return s
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.of) >= maxSeries {
		rule = other
	}
	if s = m.of[rule]; s == nil {
		c := func(outcome string) prometheus.Counter { return m.hits.WithLabelValues(rule, outcome) }
		s = &series{c("within_limit"), c("over_limit"), c("shadow_mode"), c("unlimited")}
		m.of[rule] = s
	}
	return s
}

// taken counts that rules were taken up. If there is no room for further rules, all begin
// again: many may be rules of the past.
func (m *metrics) taken(descriptors int) {
	m.rules.Set(float64(descriptors))
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.of) > maxSeries {
		m.hits.Reset()
		clear(m.of)
	}
}
