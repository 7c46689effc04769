package appmgr

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/samya-db/samya/appmgr/ratelimit"
	"github.com/samya-db/samya/appmgr/route"
	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/node"
	"github.com/samya-db/samya/internal/preset"
	"github.com/samya-db/samya/internal/tlsconf"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// The defaults of Config.
const (
	defaultMaxBody       = 64 << 10
	DefaultMaxConcurrent = 8192
	defaultMaxPerSite    = 4096
	defaultStopTimeout   = 15 * time.Second
	DefaultRepeatTime    = time.Minute
)

// Config describes an app manager and bounds the load it takes.
type Config struct {
	// Gossip is unused where Directory is set.
	node.Config
	// Directory finds the sites instead of gossip.
	Directory route.Directory
	// Dial connects to a site; nil: TCP.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
	// MaxBody bounds a request body, in bytes; 0: 64 KiB. The body of a batch may be 16
	// times as long, as may any message.
	MaxBody int64
	// MaxConcurrent bounds the requests under way; any more are refused with OVERLOADED.
	// 0: 8192.
	MaxConcurrent int
	// MaxPerSite bounds the calls under way to each site; a site with as many is skipped.
	// 0: 4096.
	MaxPerSite int
	// ProbeInterval is how often each site's round trip is measured, and ProbeTimeout
	// bounds the measurement. TryTime is how long a site may take for a request, beyond
	// its wait, before another site is asked. 0: as Preset says.
	ProbeInterval, ProbeTimeout, TryTime time.Duration
	// StopTimeout bounds how long Run lets requests finish once told to stop;
	// 0: 15s.
	StopTimeout time.Duration
	// RepeatTime is how long an acquire or release may be repeated beyond its wait where
	// its caller gives no not_after; 0: 1m. RepeatTime and a wait together must stay
	// below the sites' retention less their clock skew, or the sites refuse.
	RepeatTime time.Duration

	// Doctor makes the doctor of /v1/doctor from what the app manager sees; nil for none.
	Doctor func(Sight) Doctor

	// Console has the HTTP listener serve the web console at /console/.
	Console bool

	// RateLimits are the settings of Envoy's rate limit service.
	RateLimits ratelimit.Settings

	// Registry gets the metrics, and /metrics shows it; nil: a new one.
	Registry *prometheus.Registry
}

// Doctor returns a report on the cluster, to be told as JSON.
type Doctor func(context.Context) (report any, err error)

// Sight is what a doctor sees through an app manager.
type Sight struct {
	// Sites lists the member sites.
	Sites func(context.Context) (*samyav1.ListSitesResponse, error)
	// Metrics are the app manager's own, and Address is the host:port that serves them.
	Metrics prometheus.Gatherer
	Address func() string
}

// Validate checks c; the error names every field at fault.
func (c Config) Validate() error {
	errs := []error{c.Config.Validate(tlsconf.AppManager, c.Directory == nil), c.RateLimits.Validate()}
	for _, f := range []struct {
		field string
		n     int64
	}{
		{"max-body", c.MaxBody},
		{"max-concurrent", int64(c.MaxConcurrent)},
		{"max-per-site", int64(c.MaxPerSite)},
		{"stop-timeout", int64(c.StopTimeout)},
		{"repeat-time", int64(c.RepeatTime)},
	} {
		if f.n < 0 {
			errs = append(errs, &name.Error{Field: f.field, Problem: "negative, at least 0 (the default)"})
		}
	}
	return errors.Join(append(errs, preset.Between("probe-interval", c.ProbeInterval),
		preset.Between("probe-timeout", c.ProbeTimeout), preset.Between("try-time", c.TryTime))...)
}

// maxBulk bounds the body of a batch, and messages.
func (c Config) maxBulk() int64 { return 16 * c.MaxBody }

// withDefaults returns c with every zero that stands for a default replaced.
func (c Config) withDefaults() Config {
	c.MaxBody = cmp.Or(c.MaxBody, defaultMaxBody)
	c.MaxConcurrent = cmp.Or(c.MaxConcurrent, DefaultMaxConcurrent)
	c.MaxPerSite = cmp.Or(c.MaxPerSite, defaultMaxPerSite)
	c.MaxConns = cmp.Or(c.MaxConns, node.DefaultMaxConns)
	t, _ := preset.Of(c.Preset) // which Validate has checked
	c.ProbeInterval = cmp.Or(c.ProbeInterval, t.ProbeInterval)
	c.ProbeTimeout = cmp.Or(c.ProbeTimeout, t.ProbeTimeout)
	c.TryTime = cmp.Or(c.TryTime, t.TryTime)
	c.StopTimeout = cmp.Or(c.StopTimeout, defaultStopTimeout)
	c.RepeatTime = cmp.Or(c.RepeatTime, DefaultRepeatTime)
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
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c
}
