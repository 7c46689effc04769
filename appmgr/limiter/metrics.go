package limiter

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/metric"
	"github.com/samya-db/samya/internal/spanctx"
	"github.com/samya-db/samya/internal/tracing"
)

// metrics are the metrics of requests. Labels are bounded: methods and reasons are fixed
// sets.
type metrics struct {
	requests    *prometheus.CounterVec
	seconds     *prometheus.HistogramVec
	outstanding prometheus.Gauge

	// traces may be nil.
	traces *tracing.Traces

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
	to := metric.To(reg)
	return &metrics{
		methods:     map[[2]string]methodMetrics{},
		requests:    to.Counters("samya_appmgr_requests_total", "Requests answered, by API, method and reason (OK if done).", "api", "method", "reason"),
		seconds:     to.Histograms("samya_appmgr_request_seconds", "Time from a request to its answer.", 0.0005, 17, "api", "method"),
		outstanding: to.Gauge("samya_appmgr_outstanding_requests", "Requests under way."),
	}, to.Err()
}

// request counts an answered request. method must come from a fixed set. traced is nil unless
// the request's trace is recorded.
func (m *metrics) request(api, method string, began time.Time, err error, traced *spanctx.Context) {
	of := m.of(api, method)
	m.traces.Observe(of.seconds, time.Since(began).Seconds(), traced)
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
