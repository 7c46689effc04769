package ratelimit

import (
	"math"
	"strconv"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/internal/ratelimit/rules"
	"github.com/samya-db/samya/internal/rates"
)

// answer is the answer to a request.
func (s *Service) answer(in *ratelimitv3.RateLimitRequest, all []decided, denied bool, now time.Time) *ratelimitv3.RateLimitResponse {
	out := &ratelimitv3.RateLimitResponse{
		OverallCode: code(denied), Statuses: make([]*ratelimitv3.RateLimitResponse_DescriptorStatus, len(all)),
	}
	told := make([]status, len(all))
	for i := range all {
		told[i].tell(&all[i], now)
		out.Statuses[i] = &told[i].RateLimitResponse_DescriptorStatus
	}
	out.ResponseHeadersToAdd = headersOf(s.cfg.Headers, all, now)
	out.DynamicMetadata = metadataOf(in, all)
	return out
}

func code(over bool) ratelimitv3.RateLimitResponse_Code {
	if over {
		return ratelimitv3.RateLimitResponse_OVER_LIMIT
	}
	return ratelimitv3.RateLimitResponse_OK
}

// status is the status of a descriptor, with the memory of its parts.
type status struct {
	ratelimitv3.RateLimitResponse_DescriptorStatus
	limit ratelimitv3.RateLimitResponse_RateLimit
	reset durationpb.Duration
}

// tell fills the status in.
func (s *status) tell(d *decided, now time.Time) {
	s.Code = ratelimitv3.RateLimitResponse_OK
	switch {
	case d.match == nil:
		return
	case d.match.Unlimited:
		s.LimitRemaining = math.MaxUint32
		return
	}
	s.Code, s.LimitRemaining = code(d.refuses()), clamp(d.left)
	s.limit.Name, s.limit.RequestsPerUnit, s.limit.Unit = d.match.Name, clamp(d.match.Limit), unitsOf[d.match.Unit]
	rest := untilReset(&d.match.Terms, now)
	s.reset.Seconds, s.reset.Nanos = int64(rest/time.Second), int32(rest%time.Second) //nolint:gosec // below a second
	s.CurrentLimit, s.DurationUntilReset = &s.limit, &s.reset
}

// clamp is a number of tokens as Envoy counts; 0 if it is unknown.
func clamp(n int64) uint32 { return uint32(min(max(n, 0), math.MaxUint32)) } //nolint:gosec // bounded

// unitsOf are the units of Envoy.
var unitsOf = map[rules.Unit]ratelimitv3.RateLimitResponse_RateLimit_Unit{
	rules.Second: ratelimitv3.RateLimitResponse_RateLimit_SECOND, rules.Minute: ratelimitv3.RateLimitResponse_RateLimit_MINUTE,
	rules.Hour: ratelimitv3.RateLimitResponse_RateLimit_HOUR, rules.Day: ratelimitv3.RateLimitResponse_RateLimit_DAY,
	rules.Week: ratelimitv3.RateLimitResponse_RateLimit_WEEK, rules.Month: ratelimitv3.RateLimitResponse_RateLimit_MONTH,
	rules.Year: ratelimitv3.RateLimitResponse_RateLimit_YEAR,
}

// untilReset is the time until the end of the window.
func untilReset(terms *rates.Terms, now time.Time) time.Duration {
	_, rest := terms.Around(now)
	return rest
}

// seconds is a duration in whole seconds, rounded up.
func seconds(d time.Duration) int64 { return int64((max(d, 0) + time.Second - 1) / time.Second) }

// headersOf are the header fields of a style with room for a single limit.
func headersOf(style string, all []decided, now time.Time) []*corev3.HeaderValue {
	d := closest(all)
	if d == nil || style != xHeaders && style != theirHeaders {
		return nil
	}
	prefix := "RateLimit-"
	if style == xHeaders {
		prefix = "X-RateLimit-"
	}
	return []*corev3.HeaderValue{
		{Key: prefix + "Limit", Value: strconv.FormatInt(d.match.Limit, 10)},
		{Key: prefix + "Remaining", Value: strconv.FormatInt(max(d.left, 0), 10)},
		{Key: prefix + "Reset", Value: strconv.FormatInt(seconds(untilReset(&d.match.Terms, now)), 10)},
	}
}

// closest is the descriptor for fields with room for a single limit: a descriptor that
// refuses, or else the descriptor with the fewest tokens left; nil if nothing counts.
func closest(all []decided) *decided {
	var best *decided
	for i := range all {
		d := &all[i]
		if !d.counted() {
			continue
		}
		if best == nil || d.refuses() && !best.refuses() || d.refuses() == best.refuses() && d.left < best.left {
			best = d
		}
	}
	return best
}
