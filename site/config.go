package site

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/samya-db/samya/internal/membership"
	"github.com/samya-db/samya/internal/wan"
	"github.com/samya-db/samya/site/core"
)

// Config says who a site is, where it listens and keeps its data, and how it
// decides.
type Config struct {
	// Cluster is the cluster's name; data and peers of another are refused.
	Cluster string
	// Name is the site's name, unique in the cluster.
	Name string
	// Region is where it stands; app managers and latency matrices go by it.
	Region string
	// DataDir is the directory of its state. It is made if it does not exist,
	// belongs to this site for ever after, and is locked while it runs.
	DataDir string
	// Members is the member set of the cluster: needed for a new DataDir, and
	// fixed by it. For an existing one it may be left empty.
	Members []string

	// Listen is the host:port of the gRPC listener, for clients and peers.
	Listen string
	// HTTP is the host:port of /livez, /readyz and /metrics.
	HTTP string

	// Gossip is the host:port for membership gossip, Join the seeds.
	Gossip string
	Join   []string
	// GossipPreset is local, lan or wan; empty: wan.
	GossipPreset string
	// GossipKey encrypts gossip: 16, 24 or 32 bytes, or none.
	GossipKey []byte
	// WAN holds back messages to other regions; nil for none.
	WAN *wan.Matrix

	// Protocol, Policy, Offer, Trigger, Forecast and Admission choose the
	// site's modules by name; empty for the defaults.
	Protocol, Policy, Offer, Trigger, Forecast, Admission string
	// RequestRetention is how long the answer to a request is remembered for
	// repeats of its id; 0: 5 minutes. At least 1 second.
	RequestRetention time.Duration
	// MaxRequests bounds the requests remembered; 0: 4,000,000.
	MaxRequests int

	// Fault drops messages to a member while it returns true: the hook of
	// tests that cut sites off. Nil never drops.
	Fault func(to string) bool
	// Logger gets the log; nil: none.
	Logger *slog.Logger
}

// Validate names every field at fault.
func (c *Config) Validate() error {
	var errs []error
	need := func(field, value string) {
		if value == "" {
			errs = append(errs, fmt.Errorf("%s: missing", field))
		}
	}
	need("data", c.DataDir)
	need("listen", c.Listen)
	need("http", c.HTTP)
	need("gossip", c.Gossip)
	if c.RequestRetention != 0 && c.RequestRetention < time.Second {
		errs = append(errs, fmt.Errorf("request-retention: %v, at least 1s", c.RequestRetention))
	}
	if c.MaxRequests < 0 {
		errs = append(errs, fmt.Errorf("max-requests: %d, at least 0", c.MaxRequests))
	}
	// The addresses are known once the listeners are bound.
	if err := c.node("127.0.0.1:1", "127.0.0.1:1").Validate(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// node is what this site says of itself in gossip.
func (c *Config) node(grpcAddr, httpAddr string) membership.Node {
	return membership.Node{
		Name: c.Name, Region: c.Region, Role: membership.RoleSite, Cluster: c.Cluster, GRPC: grpcAddr, HTTP: httpAddr,
	}
}

func (c *Config) members() []core.SiteID {
	sites := make([]core.SiteID, len(c.Members))
	for i, m := range c.Members {
		sites[i] = core.SiteID(m)
	}
	return sites
}
