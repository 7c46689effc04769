package ratelimit

import (
	"context"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

// Decision is a decision about a request.
type Decision struct {
	*ratelimitv3.RateLimitResponse
	// RetryAfter is the time until the windows of all limits that refuse have ended; 0 if
	// the request passes.
	RetryAfter time.Duration

	all []decided
	at  time.Time
}

// Fields are the header fields of the limits that count.
func (d *Decision) Fields() (f Fields) {
	for i := range d.all {
		if one := &d.all[i]; one.counted() {
			f.Add(one.match.Metric, one.match.Limit, &one.match.Terms, max(one.left, 0), d.at)
		}
	}
	return f
}

// Denied reports whether the request may not pass.
func (d *Decision) Denied() bool {
	return d.GetOverallCode() == ratelimitv3.RateLimitResponse_OVER_LIMIT
}

// Decide decides about a request. An error says that there is no decision.
func (s *Service) Decide(ctx context.Context, in *ratelimitv3.RateLimitRequest) (*Decision, error) {
	at := s.loaded.Load()
	if at == nil {
		return nil, errUnconfigured
	}
	asked, err := read(in)
	if err != nil {
		return nil, err
	}
	all := make([]decided, len(asked.descriptors))
	for i, m := range at.config.Match(asked.domain, asked.descriptors...) {
		all[i] = decided{match: m, hits: asked.hits[i], left: unknown}
	}
	denied, err := s.decide(ctx, all)
	if err != nil {
		s.metrics.failed(err)
		return nil, undecided(err)
	}
	s.metrics.count(all, denied && s.cfg.Shadow)
	now, denied := s.now(), denied && !s.cfg.Shadow
	d := &Decision{RateLimitResponse: s.answer(in, all, denied, now), all: all, at: now}
	for i := range all {
		if one := &all[i]; denied && one.counted() && one.refuses() {
			d.RetryAfter = max(d.RetryAfter, untilReset(&one.match.Terms, now))
		}
	}
	if s.cfg.Headers == draftHeaders {
		f := d.Fields()
		d.ResponseHeadersToAdd = f.values()
	}
	return d, nil
}
