package quota

import (
	"time"

	quotav3 "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

type (
	action          = quotav3.RateLimitQuotaResponse_BucketAction
	quotaAssignment = quotav3.RateLimitQuotaResponse_BucketAction_QuotaAssignmentAction
	assignedAction  = quotav3.RateLimitQuotaResponse_BucketAction_QuotaAssignmentAction_
)

// actionOf is an assignment as a proxy is told it. Envoy knows no other strategies than a
// blanket rule and a token bucket, and times in whole seconds.
func actionOf(a *assignment, id *quotav3.BucketId) *action {
	if a.Verdict == abandon {
		return &action{BucketId: id, BucketAction: &quotav3.RateLimitQuotaResponse_BucketAction_AbandonAction_{
			AbandonAction: &quotav3.RateLimitQuotaResponse_BucketAction_AbandonAction{},
		}}
	}
	s := &typev3.RateLimitStrategy{}
	switch a.Verdict {
	case share:
		s.Strategy = &typev3.RateLimitStrategy_TokenBucket{TokenBucket: &typev3.TokenBucket{
			MaxTokens:     uint32(a.Tokens.Max),                     //nolint:gosec // bounded by tokenBucket
			TokensPerFill: wrapperspb.UInt32(uint32(a.Tokens.Fill)), //nolint:gosec // as above
			FillInterval:  interval(a.Tokens.Interval),
		}}
	case allow:
		s.Strategy = &typev3.RateLimitStrategy_BlanketRule_{BlanketRule: typev3.RateLimitStrategy_ALLOW_ALL}
	default:
		s.Strategy = &typev3.RateLimitStrategy_BlanketRule_{BlanketRule: typev3.RateLimitStrategy_DENY_ALL}
	}
	return &action{BucketId: id, BucketAction: &assignedAction{QuotaAssignmentAction: &quotaAssignment{
		AssignmentTimeToLive: durationpb.New(a.TTL), RateLimitStrategy: s,
	}}}
}

// interval is the time between two fills. Envoy compares two token buckets by their tokens and
// the nanoseconds of their intervals, and keeps its own if they seem equal. So each
// interval has as many nanoseconds as seconds, which changes no rate that matters.
func interval(d time.Duration) *durationpb.Duration {
	seconds := int64(d / time.Second)
	return &durationpb.Duration{Seconds: seconds, Nanos: int32(seconds % 999_999_999)} //nolint:gosec // bounded
}
