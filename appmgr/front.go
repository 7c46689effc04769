package appmgr

import (
	"context"
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/samya-db/samya/appmgr/grpcapi"
	"github.com/samya-db/samya/appmgr/limiter"
	"github.com/samya-db/samya/appmgr/ratelimit"
	"github.com/samya-db/samya/appmgr/ratelimit/quota"
	"github.com/samya-db/samya/appmgr/reads"
	"github.com/samya-db/samya/appmgr/route"
)

// front is the part of an app manager between its listeners and the sites.
type front struct {
	router  *route.Router
	service *grpcapi.Service
	limits  *ratelimit.Service
	shares  *quota.Service
}

// newFront makes a front. All defaults of c are set, and its directory is. local is the site
// in whose process the front is; nil for none.
func newFront(c *Config, l *limiter.Limiter, local *route.Local) (f front, err error) {
	f.router, err = route.New(route.Config{
		Region: c.Region, Cluster: c.Cluster, Directory: c.Directory, Dial: c.Dial, Local: local, Latency: c.Latency, Hold: c.Hold, MaxPerSite: c.MaxPerSite,
		ProbeInterval: c.ProbeInterval, ProbeTimeout: c.ProbeTimeout, TryTime: c.TryTime, RepeatTime: c.RepeatTime, TLS: c.TLS, Registry: c.Registry, Logger: c.Logger,
		Traces: c.Traces,
	})
	if err != nil {
		return f, fmt.Errorf("register metrics: %w", err)
	}
	var reg prometheus.Registerer = c.Registry
	if local != nil {
		reg = prometheus.NewRegistry() // nobody reads through the front of a site
	}
	r, err := reads.New(c.Name, c.Cluster, f.router, l, reg)
	if err != nil {
		return f, fmt.Errorf("register metrics: %w", err)
	}
	f.service = grpcapi.New(r, f.router, l, c.MaxConcurrent)
	f.service.Traces = c.Traces
	entities := ratelimit.NewEntities(f.service, c.RateLimits)
	f.limits, err = ratelimit.New(ratelimit.Config{Settings: c.RateLimits, Backend: entities, Registry: c.Registry, Logger: c.Logger})
	if err != nil {
		return f, err
	}
	f.shares, err = quota.New(quota.Settings{
		Config: c.RateLimits.Quota(), Leases: ratelimit.NewShares(entities, f.service), Rules: f.limits.Rules, Shadow: c.RateLimits.Shadow, Closing: l.Closing(),
		Registry: c.Registry, Logger: c.Logger,
	})
	return f, err
}

// run runs the front until ctx ends.
func (f *front) run(ctx context.Context) {
	var loops sync.WaitGroup
	defer loops.Wait()
	loops.Go(func() { f.router.Run(ctx) })
	loops.Go(func() { f.limits.Run(ctx) })
	loops.Go(func() { f.shares.Run(ctx) })
}
