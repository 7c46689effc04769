package appmgr

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/samya-db/samya/appmgr/route"
	"github.com/samya-db/samya/internal/access"
	"github.com/samya-db/samya/internal/buildinfo"
	"github.com/samya-db/samya/internal/membership"
	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/tlsconf"
)

// The defaults of Config.
const (
	defaultMaxBody       = 64 << 10
	DefaultMaxConcurrent = 8192
	defaultMaxPerSite    = 4096
	DefaultMaxConns      = 16384
	defaultProbeInterval = time.Second
	defaultStopTimeout   = 15 * time.Second
	DefaultRepeatTime    = time.Minute
)

// Config describes an app manager and bounds the load it takes.
type Config struct {
	// Name, Region and Cluster name this app manager: 1 to 63 lower-case
	// letters, digits and '-' each.
	Name, Region, Cluster string
	// HTTPAddr and GRPCAddr are the host:port to serve at; port 0 picks a free port.
	HTTPAddr, GRPCAddr string
	// Gossip finds the sites; unused where Directory is set.
	Gossip Gossip
	// Directory finds the sites instead of gossip.
	Directory route.Directory
	// Dial connects to a site; nil: TCP.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
	// Latency, if set, returns a one-way delay. Every call to a site waits this long
	// before it is sent, and its answer before it is given. This simulates a wide-area
	// network on a single machine.
	Latency func(fromRegion, toRegion string) time.Duration

	// MaxBody bounds a request body, in bytes; 0: 64 KiB. The body of a batch may be 16
	// times as long, as may any message.
	MaxBody int64
	// MaxConcurrent bounds the requests under way; any more are refused with OVERLOADED.
	// 0: 8192.
	MaxConcurrent int
	// MaxPerSite bounds the calls under way to each site; a site with as many is skipped.
	// 0: 4096.
	MaxPerSite int
	// Build is the build of the program, for its metrics.
	Build buildinfo.Info
	// MaxConns bounds the connections of each listener; any more wait to be accepted. 0:
	// 16384.
	MaxConns int
	// ProbeInterval is how often each site's round trip is measured; 0: 1s.
	ProbeInterval time.Duration
	// StopTimeout bounds how long Run lets requests finish once told to stop;
	// 0: 15s.
	StopTimeout time.Duration
	// RepeatTime is how long an acquire or release may be repeated beyond its wait where
	// its caller gives no not_after; 0: 1m. RepeatTime and a wait together must stay
	// below the sites' retention less their clock skew, or the sites refuse.
	RepeatTime time.Duration

	// TLS encrypts both listeners and the links to sites; nil: in clear. Run has it read
	// again.
	TLS *tlsconf.Store
	// Access judges which calls a caller may make; nil: everybody may call everything.
	// Run has it read again.
	Access *access.Guard
	// Restricted reports that Access has an access file.
	Restricted bool
	// Insecure lets listeners be reached from other machines without TLS, an access
	// file or a key of gossip.
	Insecure bool

	// Registry gets the metrics, and /metrics shows it; nil: a new one.
	Registry *prometheus.Registry
	// Logger gets the log; nil: none.
	Logger *slog.Logger
}

// Gossip configures how sites are found. See membership.Config.
type Gossip struct {
	Bind, Advertise string
	Join            []string
	Preset          membership.Preset
	KeyFile         string
}

// Validate checks c; the error names every field at fault.
func (c Config) Validate() error {
	errs := []error{
		name.Site("name", c.Name), name.Site("region", c.Region), name.Site("cluster", c.Cluster),
		listenAddr("http", c.HTTPAddr), listenAddr("grpc", c.GRPCAddr),
	}
	for _, f := range []struct {
		field string
		n     int64
	}{
		{"max_body", c.MaxBody},
		{"max_concurrent", int64(c.MaxConcurrent)},
		{"max_per_site", int64(c.MaxPerSite)},
		{"max_conns", int64(c.MaxConns)},
		{"probe_interval", int64(c.ProbeInterval)},
		{"stop_timeout", int64(c.StopTimeout)},
		{"repeat_time", int64(c.RepeatTime)},
	} {
		if f.n < 0 {
			errs = append(errs, &name.Error{Field: f.field, Problem: "negative, at least 0 (the default)"})
		}
	}
	if err := c.exposure(); err != nil {
		errs = append(errs, err)
	}
	if c.Directory == nil {
		gossip := c.membership("", "")
		// The names are checked above.
		gossip.Self.Name, gossip.Self.Region, gossip.Self.Cluster = "x", "x", "x"
		if err := gossip.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("gossip: %w", err))
		}
	}
	return errors.Join(errs...)
}

// exposure returns an error if others could reach a listener or listen in.
func (c Config) exposure() error {
	if c.TLS != nil {
		if id, ok := c.TLS.Own(); !ok || id.Kind != tlsconf.AppManager {
			return &name.Error{Field: "tls-cert", Problem: fmt.Sprintf("is the certificate of %.128s, must be that of an app manager", id)}
		}
	}
	if c.Insecure {
		return nil
	}
	e := access.Exposure{
		Calls: map[string]string{"http": c.HTTPAddr, "grpc": c.GRPCAddr}, Gossip: c.Gossip.Bind,
		TLS: c.TLS != nil, Access: c.Restricted, GossipKey: c.Gossip.KeyFile != "" || c.Directory != nil,
	}
	return e.Check()
}

func (c Config) membership(httpAddr, grpcAddr string) membership.Config {
	return membership.Config{
		Self: membership.Node{
			Name: c.Name, Region: c.Region, Cluster: c.Cluster, Role: membership.RoleAppMgr,
			HTTP: httpAddr, GRPC: grpcAddr,
		},
		Bind: c.Gossip.Bind, Advertise: c.Gossip.Advertise, Join: c.Gossip.Join,
		Preset: c.Gossip.Preset, KeyFile: c.Gossip.KeyFile, Logger: c.Logger,
	}
}

// maxBulk bounds the body of a batch, and messages.
func (c Config) maxBulk() int64 { return 16 * c.MaxBody }

// withDefaults returns c with every zero that stands for a default replaced.
func (c Config) withDefaults() Config {
	c.MaxBody = orDefault(c.MaxBody, defaultMaxBody)
	c.MaxConcurrent = orDefault(c.MaxConcurrent, DefaultMaxConcurrent)
	c.MaxPerSite = orDefault(c.MaxPerSite, defaultMaxPerSite)
	c.MaxConns = orDefault(c.MaxConns, DefaultMaxConns)
	c.ProbeInterval = orDefault(c.ProbeInterval, defaultProbeInterval)
	c.StopTimeout = orDefault(c.StopTimeout, defaultStopTimeout)
	c.RepeatTime = orDefault(c.RepeatTime, DefaultRepeatTime)
	if c.Dial == nil {
		c.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", addr)
		}
	}
	if c.Latency == nil {
		c.Latency = func(string, string) time.Duration { return 0 }
	}
	if c.Registry == nil {
		c.Registry = prometheus.NewRegistry()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

func listenAddr(field, s string) error {
	host, port, err := net.SplitHostPort(s)
	if err != nil || host == "" {
		return &name.Error{Field: field, Problem: "must be host:port"}
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return &name.Error{Field: field, Problem: "port must be 0 to 65535"}
	}
	return nil
}
