package route

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/samya-db/samya/internal/health"
)

// probe measures l's round trip until ctx ends.
func (r *Router) probe(ctx context.Context, l *link) {
	for {
		r.probeOnce(ctx, l)
		// Jitter keeps the probes of many app managers apart.
		if Pause(ctx, r.cfg.ProbeInterval*3/4+rand.N(r.cfg.ProbeInterval/2+1)) != nil {
			return
		}
	}
}

func (r *Router) probeOnce(ctx context.Context, l *link) {
	pctx, cancel := context.WithTimeout(ctx, r.cfg.ProbeTimeout)
	defer cancel()
	resp := &healthpb.HealthCheckResponse{}
	began := time.Now()
	var told metadata.MD
	f, err := l.invoke(pctx, healthpb.Health_Check_FullMethodName, &healthpb.HealthCheckRequest{}, resp, grpc.Header(&told))
	rtt := time.Since(began)
	serving := resp.GetStatus() == healthpb.HealthCheckResponse_SERVING
	if status.Code(err) == codes.Unimplemented {
		// A site without the health service still answers.
		serving, err = true, nil
	}
	before := l.state().Reach
	switch {
	case ctx.Err() != nil:
		return
	case f == answered && err == nil && serving:
		l.update(func(h *health.Health) { h.Answered(rtt) })
	case f == answered && err == nil:
		l.update((*health.Health).NotServing)
	case pctx.Err() != nil:
		l.update((*health.Health).Late)
	default:
		l.update((*health.Health).Broken)
	}
	after := l.state()
	r.metrics.siteHealth(l.info.Name, after)
	if skew, known := health.Skew(told.Get(health.ClockHeader), began, rtt); known && err == nil {
		if clockOff(skew) && !clockOff(l.ahead()) {
			r.log.WarnContext(ctx, "the clock of a site differs", slog.String("site", l.info.Name), slog.Duration("ahead_by", skew))
		}
		l.skewed(skew)
		r.metrics.siteSkew.WithLabelValues(l.info.Name).Set(skew.Seconds())
	}
	switch {
	case before == after.Reach:
	case after.Reach == health.Up:
		r.log.InfoContext(ctx, "a site is up", slog.String("site", l.info.Name), slog.Duration("round_trip", rtt))
		r.meet(ctx, l.info.Name)
	default:
		r.log.InfoContext(ctx, "a site does not answer", slog.String("site", l.info.Name), slog.Any("error", err))
	}
}

func (l *link) state() health.Health {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.health
}
