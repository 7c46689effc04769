package standby

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/samya-db/samya/site/replica"
	"github.com/samya-db/samya/site/replica/etcd"
)

// The metrics of the active node about the others.
var (
	descStandbys = prometheus.NewDesc("samya_node_standbys", "Other nodes of the site that follow, as the active node sees.", []string{"node"}, nil)
	descLag      = prometheus.NewDesc("samya_node_standby_lag_commits", "By how many commits the other node that follows best is behind.", []string{"node"}, nil)
	descCopies   = prometheus.NewDesc("samya_node_copying", "Other nodes of the site that copy the base of a node.", []string{"node"}, nil)
	descFull     = prometheus.NewDesc("samya_node_etcd_full", "1 while etcd refuses commits as its space quota is used up.", []string{"node"}, nil)
)

// others is what the active node knows of the other nodes.
type others struct{ standbys, copying, lag int }

// sawOthers notes how far the other nodes are. A node that has told nothing for a while
// does not count.
func (n *node) sawOthers(nodes []replica.Standing, log *replica.Log, now time.Time) {
	var o others
	last := log.Last()
	for _, s := range nodes {
		switch {
		case s.Node == n.cfg.Node || now.Sub(time.UnixMilli(s.Time)) > 3*freshly:
		case s.Copies:
			o.copying++
		default:
			lag := int(last - min(s.Last, last)) //nolint:gosec // no site commits that often
			if o.standbys == 0 || lag < o.lag {
				o.lag = lag
			}
			o.standbys++
		}
	}
	n.state.others.Store(&o)
}

// collectOthers tells of the other nodes while this node is active, and of etcd's space.
func (n *node) collectOthers(gauge func(d *prometheus.Desc, v float64, labels ...string)) {
	full := 0.
	if failure := n.state.failure.Load(); failure != nil && etcd.NoSpace(*failure) {
		full = 1
	}
	gauge(descFull, full)
	o := n.state.others.Load()
	if o == nil {
		return
	}
	gauge(descStandbys, float64(o.standbys))
	gauge(descCopies, float64(o.copying))
	if o.standbys > 0 {
		gauge(descLag, float64(o.lag))
	}
}

// Metrics has the metrics of an active node of a site, for checks of the rules that read
// them.
func Metrics() prometheus.Collector {
	n := &node{cfg: Config{Node: "a"}}
	n.state.role.Store(&roleActive)
	n.state.others.Store(&others{standbys: 1})
	return n
}
