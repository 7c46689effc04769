// Package node has the settings that sites and app managers share, each with a single name and a single
// type for each: the name of a process, its listeners, its gossip and its guards. It
// checks settings, and starts nothing.
package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/samya-db/samya/internal/access"
	"github.com/samya-db/samya/internal/buildinfo"
	"github.com/samya-db/samya/internal/membership"
	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/preset"
	"github.com/samya-db/samya/internal/tlsconf"
	"github.com/samya-db/samya/internal/tracing"
	"github.com/samya-db/samya/internal/versions"
)

// DefaultMaxConns is the default of Config.MaxConns.
const DefaultMaxConns = 16384

// Config is the shared part of the configuration of a site and of an app manager.
type Config struct {
	// Name is unique among the sites, or the app managers, of Cluster. App managers and
	// latency matrices go by Region. Processes of other clusters are refused. Each name
	// has 1 to 63 lower-case letters, digits and '-'.
	Name, Region, Cluster string
	// Instance is the name of this process among the nodes of its site, with the same
	// bounds; empty for a site of a single process and for an app manager. Term is the number of
	// this process's take-over of the site, at least 0; 0 for a site of a single process.
	Instance string
	Term     int64
	// GRPC and HTTP are the host:port of the two listeners; port 0 picks a free port.
	GRPC, HTTP string
	// Gossip finds the other processes of the cluster.
	Gossip Gossip
	// Preset sets the timings that depend on the distance between the processes and have
	// no value of their own here.
	Preset preset.Name

	// TLS encrypts both listeners and the links to sites; nil: in clear. The process
	// rereads it while it runs.
	TLS *tlsconf.Store
	// Access judges which calls a caller may make; nil: everybody may call everything.
	// The process rereads it while it runs.
	Access *access.Guard
	// Restricted reports that Access has an access file.
	Restricted bool
	// Insecure lets listeners be reached from other machines without TLS, an access file
	// or a key of gossip.
	Insecure bool
	// MaxConns bounds the connections of each listener; further connections wait to be
	// accepted. 0: 16384.
	MaxConns int

	// Latency returns the one-way delay between two regions, which holds back messages
	// and calls to other processes; nil: no delay. It simulates a wide-area network on a
	// single machine.
	Latency func(fromRegion, toRegion string) time.Duration
	// Hold waits for a short delay between an app manager and a site, or until the context
	// ends; nil: by a timer of the Go runtime, which may fire a millisecond late.
	Hold func(ctx context.Context, d time.Duration) error
	// Build describes the program's build, for its metrics.
	Build buildinfo.Info
	// Logger gets the log; nil: none.
	Logger *slog.Logger
	// Traces makes spans; nil: none.
	Traces *tracing.Traces
}

// Gossip configures the part of a process in gossip. See membership.Config.
type Gossip struct {
	Bind, Advertise string
	Join            []string
	KeyFile         string
}

// Validate checks c without touching disk or network. The certificate of a
// site must name the site, that of an app manager any app manager. A process with a
// directory of sites in the place of gossip has gossips false. The error names every
// field at fault.
func (c *Config) Validate(kind tlsconf.Kind, gossips bool) error {
	errs := []error{
		name.Site("cluster", c.Cluster), name.Site("name", c.Name), name.Site("region", c.Region),
		listenAddr("grpc", c.GRPC), listenAddr("http", c.HTTP), c.exposure(kind, gossips), c.Preset.Check(),
	}
	if c.Instance != "" {
		errs = append(errs, name.Site("instance", c.Instance))
	}
	if c.Term < 0 {
		errs = append(errs, &name.Error{Field: "term", Problem: fmt.Sprintf("%d, at least 0", c.Term)})
	}
	if gossips {
		gossip := c.Membership(membership.RoleSite, "", "")
		// The preset and the names are checked above.
		gossip.Preset, gossip.Self.Name, gossip.Self.Region, gossip.Self.Cluster = "", "x", "x", "x"
		gossip.Self.Instance, gossip.Self.Term = "", 0
		if err := gossip.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("gossip: %w", err))
		}
	}
	if c.MaxConns < 0 {
		errs = append(errs, &name.Error{Field: "max-conns", Problem: fmt.Sprintf("%d, at least 0 (the default)", c.MaxConns)})
	}
	return errors.Join(errs...)
}

// exposure refuses settings that let others reach the listeners or listen in.
func (c *Config) exposure(kind tlsconf.Kind, gossips bool) error {
	if c.TLS != nil {
		want := "an app manager"
		if kind == tlsconf.Site {
			want = tlsconf.Identity{Kind: kind, Name: c.Name}.String()
		}
		if id, ok := c.TLS.Own(); !ok || id.Kind != kind || kind == tlsconf.Site && id.Name != c.Name {
			return &name.Error{Field: "tls-cert", Problem: fmt.Sprintf("is the certificate of %.128s, must be that of %s", id, want)}
		}
	}
	if c.Insecure {
		return nil
	}
	return access.Exposure{
		Calls: map[string]string{"grpc": c.GRPC, "http": c.HTTP}, Gossip: c.Gossip.Bind,
		TLS: c.TLS != nil, Access: c.Restricted, GossipKey: c.Gossip.KeyFile != "" || !gossips,
	}.Check()
}

// Membership returns the part of the process in gossip, with the addresses of its
// listeners.
func (c *Config) Membership(role membership.Role, grpc, http string) membership.Config {
	return membership.Config{
		Self: membership.Node{
			Name: c.Name, Instance: c.Instance, Term: c.Term, Region: c.Region, Role: role, Cluster: c.Cluster,
			GRPC: grpc, HTTP: http, Versions: versions.Own(),
		},
		Bind: c.Gossip.Bind, Advertise: c.Gossip.Advertise, Join: c.Gossip.Join,
		Preset: c.Preset, KeyFile: c.Gossip.KeyFile, Logger: c.Logger,
	}
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
