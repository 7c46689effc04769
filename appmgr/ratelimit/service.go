package ratelimit

import (
	"cmp"
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/ratelimit/rules"
)

// Config configures a Service.
type Config struct {
	Settings
	// Backend counts.
	Backend Backend
	// Registry gets the metrics.
	Registry prometheus.Registerer
	// Logger gets the log; nil: none.
	Logger *slog.Logger
	// Now returns the time; nil: time.Now.
	Now func() time.Time
}

// Service is the rate limit service. Every error it returns is an *apierr.Error.
type Service struct {
	ratelimitv3.UnimplementedRateLimitServiceServer
	cfg     Config
	log     *slog.Logger
	now     func() time.Time
	backend Backend
	metrics *metrics
	loaded  atomic.Pointer[loaded]
}

// New makes a service and reads its rules. Its error names each fault of a file.
func New(cfg Config) (*Service, error) {
	s := &Service{cfg: cfg, log: cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)), now: cfg.Now, backend: cfg.Backend}
	if s.now == nil {
		s.now = time.Now
	}
	s.cfg.Headers = cmp.Or(cfg.Headers, noHeaders)
	var err error
	if s.metrics, err = newMetrics(cfg.Registry); err != nil {
		return nil, err
	}
	if cfg.Dir == "" {
		return s, nil
	}
	first, err := load(cfg.Dir, nil)
	if err != nil {
		return nil, err
	}
	s.take(first)
	return s, nil
}

// Rules returns the rules in force; nil for none.
func (s *Service) Rules() *rules.Config {
	if at := s.loaded.Load(); at != nil {
		return at.config
	}
	return nil
}

// errUnconfigured refuses requests to a process without rules.
var errUnconfigured = apierr.New(apierr.RouteNotFound, "this process has no rate limits: it was started without --ratelimit-config")

// ShouldRateLimit implements ratelimitv3.RateLimitServiceServer. An error says that there
// is no decision, and Envoy goes by its failure_mode_deny.
func (s *Service) ShouldRateLimit(ctx context.Context, in *ratelimitv3.RateLimitRequest) (*ratelimitv3.RateLimitResponse, error) {
	d, err := s.Decide(ctx, in)
	if err != nil {
		return nil, err
	}
	return d.RateLimitResponse, nil
}

// undecided is the error of a request without a decision. A fault of the request and an
// error that says why there is none stay as they are. All others are failures of the
// service: an entity that does not exist is not the caller's doing.
func undecided(err error) error {
	switch e := apierr.From(err); e.Reason {
	case apierr.InvalidField, apierr.Overloaded, apierr.SiteUnavailable, apierr.SiteDraining, apierr.NoQuorum, apierr.ShuttingDown,
		apierr.DeadlineExceeded, apierr.Canceled, apierr.OutcomeUnknown, apierr.Internal:
		return e
	default:
		u := apierr.Wrap(apierr.SiteUnavailable, e)
		u.Message = "no decision: " + e.Reason.Title()
		return u
	}
}
