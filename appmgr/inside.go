package appmgr

import (
	"context"
	"fmt"

	quotav3 "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"

	"github.com/samya-db/samya/appmgr/limiter"
	"github.com/samya-db/samya/appmgr/route"
	"github.com/samya-db/samya/internal/membership"
)

// Inside serves Envoy's services in the process of a site, on the site's gRPC listener. It
// asks this site by calls, and other sites over the network where the site says so.
type Inside struct {
	front
	limiter *limiter.Limiter
	sites   *gossiped
}

// NewInside makes the services for the site of calls. Its listeners, guards and gossip are
// the site's, so cfg's are unused. The error names each fault of the settings and the rules.
func NewInside(cfg Config, calls route.Calls) (*Inside, error) {
	cfg = cfg.withDefaults()
	if err := cfg.RateLimits.Validate(); err != nil {
		return nil, err
	}
	i := &Inside{sites: new(gossiped)}
	cfg.Directory = i.sites
	var err error
	if i.limiter, err = limiter.New(cfg.MaxConcurrent, cfg.Registry, cfg.Logger); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	i.limiter.Trace(cfg.Traces)
	i.front, err = newFront(&cfg, i.limiter, &route.Local{Site: cfg.Name, Calls: calls})
	return i, err
}

// RateLimits is Envoy's rate limit service.
func (i *Inside) RateLimits() ratelimitv3.RateLimitServiceServer {
	return limited{RateLimitServiceServer: i.limits, limiter: i.limiter}
}

// Register adds Envoy's services to a server.
func (i *Inside) Register(to grpc.ServiceRegistrar) {
	ratelimitv3.RegisterRateLimitServiceServer(to, i.RateLimits())
	quotav3.RegisterRateLimitQuotaServiceServer(to, limitedQuotas{RateLimitQuotaServiceServer: i.shares, limiter: i.limiter})
}

// Run runs until ctx ends, and finds other sites by gossip.
func (i *Inside) Run(ctx context.Context, gossip *membership.Membership) {
	i.sites.Membership = gossip
	i.run(ctx)
}

// Close refuses further requests and ends the streams.
func (i *Inside) Close() { i.limiter.Close() }

// limited is the rate limit service behind a limiter.
type limited struct {
	ratelimitv3.RateLimitServiceServer
	limiter *limiter.Limiter
}

// ShouldRateLimit implements ratelimitv3.RateLimitServiceServer.
func (s limited) ShouldRateLimit(ctx context.Context, in *ratelimitv3.RateLimitRequest) (out *ratelimitv3.RateLimitResponse, err error) {
	err = s.limiter.Do(ctx, "grpc", "ShouldRateLimit", func() error {
		out, err = s.RateLimitServiceServer.ShouldRateLimit(ctx, in)
		return err
	})
	return out, err
}

// limitedQuotas is the rate limit quota service behind a limiter.
type limitedQuotas struct {
	quotav3.RateLimitQuotaServiceServer
	limiter *limiter.Limiter
}

// StreamRateLimitQuotas implements quotav3.RateLimitQuotaServiceServer.
func (s limitedQuotas) StreamRateLimitQuotas(stream quotav3.RateLimitQuotaService_StreamRateLimitQuotasServer) error {
	return s.limiter.DoStreaming(stream.Context(), "grpc", "StreamRateLimitQuotas", func() error {
		return s.RateLimitQuotaServiceServer.StreamRateLimitQuotas(stream)
	})
}
