package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/samya-db/samya/internal/tlsconf"
)

// Defaults of Config.
const (
	defaultTimeout       = 10 * time.Second
	defaultRepeatTime    = time.Minute
	defaultTryTime       = 2 * time.Second
	defaultProbeInterval = 2 * time.Second
)

// maxTargets bounds Config.Targets.
const maxTargets = 128

// siteWait is the wait of an acquire that gives none, at sites with the default setting.
const siteWait = 5 * time.Second

// Config has the targets of a client and bounds its patience. Only Targets must be set.
type Config struct {
	// Targets are the app managers or sites that calls may go to: 1 to 128. If all are
	// sites, they are the beginning only; see FixedTargets.
	Targets []Target
	// FixedTargets keeps the client to Targets. Without it, a client of sites alone learns
	// the members of the cluster from them: the addresses of other sites, as gossip tells
	// them, become targets, and sites that have left are targets no more.
	FixedTargets bool
	// Region is where this program runs. Targets of this region are preferred; empty:
	// targets are ordered by round trip alone.
	Region string
	// Timeout bounds calls with a context without a deadline; 0: 10s. The wait of an
	// acquire for tokens is added.
	Timeout time.Duration
	// RepeatTime is how long beyond its deadline a call of unknown outcome can be
	// resumed; 0: 1m. Deadline and RepeatTime together must stay below the sites'
	// --request-retention less --clock-skew, 4m50s by default.
	RepeatTime time.Duration
	// TryTime is how long a target may be silent before the next target is asked; 0: 2s.
	// The wait of an acquire for tokens is added.
	TryTime time.Duration
	// ProbeInterval is the time between two probes of the round trip to each target; 0:
	// 2s.
	ProbeInterval time.Duration
	// Security authenticates the targets, and this program to them; nil: connections are
	// not encrypted. See TLSFiles.
	Security credentials.TransportCredentials
	// Token returns the bearer token shown with every call, such as a token from
	// TokenFile; nil: none. It needs Security, unless all targets are on this machine.
	Token func(context.Context) (string, error)
	// DialOptions are added to the client's own options of connections.
	DialOptions []grpc.DialOption
	// Random returns a number in [0, 1) by which pauses vary; nil: random numbers. It may
	// be called from several goroutines at once.
	Random func() float64

	// dial, if set, makes connections instead of gRPC, for tests.
	dial func(Target) (connection, error)
}

// Target is an app manager or a site.
type Target struct {
	// Address is the address of its gRPC API, as grpc.NewClient takes it: "host:port", or
	// a URI such as "dns:///host:port".
	Address string
	// Region is where the target stands.
	Region string
}

// complete checks c and fills in the defaults.
func (c Config) complete() (Config, error) {
	var errs []error
	if n := len(c.Targets); n < 1 || n > maxTargets {
		errs = append(errs, fmt.Errorf("%d targets, at least 1 and at most %d", n, maxTargets))
	}
	seen := map[string]bool{}
	for i, t := range c.Targets {
		switch {
		case t.Address == "":
			errs = append(errs, fmt.Errorf("target %d has no address", i))
		case seen[t.Address]:
			errs = append(errs, fmt.Errorf("target %s is given twice", t.Address))
		}
		seen[t.Address] = true
	}
	for _, f := range []struct {
		name string
		d    *time.Duration
		def  time.Duration
	}{
		{"timeout", &c.Timeout, defaultTimeout},
		{"repeat time", &c.RepeatTime, defaultRepeatTime},
		{"try time", &c.TryTime, defaultTryTime},
		{"probe interval", &c.ProbeInterval, defaultProbeInterval},
	} {
		if *f.d < 0 {
			errs = append(errs, fmt.Errorf("%s %v, at least 0", f.name, *f.d))
		}
		*f.d = cmp.Or(*f.d, f.def)
	}
	if c.Token != nil {
		for _, t := range c.Targets {
			if c.Security == nil && !tlsconf.Loopback(t.Address) {
				errs = append(errs, fmt.Errorf("target %s: a token is not sent to another machine in clear", t.Address))
			}
		}
	}
	if c.Random == nil {
		c.Random = rand.Float64
	}
	if err := errors.Join(errs...); err != nil {
		return c, fmt.Errorf("configuration of a client: %w", err)
	}
	return c, nil
}
