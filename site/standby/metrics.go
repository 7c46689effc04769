package standby

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The metrics of a node, active or not.
var (
	descRole = prometheus.NewDesc("samya_node_role", "1 for the role of this node of a site: starting, standby or active.",
		[]string{"node", "role"}, nil)
	descLast    = prometheus.NewDesc("samya_node_commit", "The last commit of the site that this node knows.", []string{"node"}, nil)
	descThrough = prometheus.NewDesc("samya_node_durable_commit", "The last commit that this node has durably in its own log.",
		[]string{"node"}, nil)
	descTakeOvers = prometheus.NewDesc("samya_node_take_overs_total", "How often this node became the active one.", []string{"node"}, nil)
	descTook      = prometheus.NewDesc("samya_node_take_over_seconds", "How long the site took to start at the last take-over.",
		[]string{"node"}, nil)
	descStalls = prometheus.NewDesc("samya_node_etcd_stalls_total", "How often etcd stopped answering this node.", []string{"node"}, nil)
	descStall  = prometheus.NewDesc("samya_node_etcd_stalled", "1 while etcd does not answer this node.", []string{"node"}, nil)
)

// Describe implements prometheus.Collector.
func (n *node) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(n, to) }

// Collect implements prometheus.Collector.
func (n *node) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, append([]string{n.cfg.Node}, labels...)...)
	}
	count := func(d *prometheus.Desc, v int64) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), n.cfg.Node)
	}
	if role := n.state.role.Load(); role != nil {
		gauge(descRole, 1, *role)
	}
	if log := n.state.log.Load(); log != nil {
		gauge(descLast, float64(log.Last()))
		gauge(descThrough, float64(log.Stats().Through))
	}
	count(descTakeOvers, n.state.takeOvers.Load())
	count(descStalls, n.state.stalls.Load())
	gauge(descTook, time.Duration(n.state.takeOver.Load()).Seconds())
	stalled := 0.
	if n.state.failure.Load() != nil {
		stalled = 1
	}
	gauge(descStall, stalled)
	n.collectOthers(gauge)
}
