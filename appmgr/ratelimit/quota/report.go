package quota

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	quotav3 "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/ratelimit/rules"
)

// The bounds of a report. The bound on messages bounds its texts.
const (
	maxUsages  = 4096
	maxEntries = 16
)

// read checks a report and finds the rules of its buckets. ids gets the ids by the names of
// buckets.
func (s *Service) read(in *quotav3.RateLimitQuotaUsageReports, domain string, config *rules.Config, ids map[string]*quotav3.BucketId) ([]usage, error) {
	if n := len(in.GetBucketQuotaUsages()); n > maxUsages {
		return nil, apierr.Invalid("bucket_quota_usages", fmt.Sprintf("%d, at most %d", n, maxUsages))
	}
	usages := make([]usage, 0, len(in.GetBucketQuotaUsages()))
	for i, u := range in.GetBucketQuotaUsages() {
		field := fmt.Sprintf("bucket_quota_usages[%d]", i)
		id := u.GetBucketId().GetBucket()
		switch {
		case len(id) == 0:
			return nil, apierr.Invalid(field+".bucket_id", "missing")
		case len(id) > maxEntries:
			return nil, apierr.Invalid(field+".bucket_id", fmt.Sprintf("%d entries, at most %d", len(id), maxEntries))
		case u.GetNumRequestsAllowed() > name.MaxTokens || u.GetNumRequestsDenied() > name.MaxTokens:
			return nil, apierr.Invalid(field, "numbers of requests out of range")
		}
		bucket := nameOf(id)
		if ids[bucket] == nil {
			ids[bucket] = u.GetBucketId()
		}
		rule := config.MatchSet(domain, id)
		if rule != nil && s.cfg.Shadow {
			rule.Shadow = true
		}
		usages = append(usages, usage{
			Bucket: bucket, Rule: rule,
			Requests: int64(u.GetNumRequestsAllowed() + u.GetNumRequestsDenied()), //nolint:gosec // checked above
		})
	}
	return usages, nil
}

// nameOf is the same text for the same id, and another for any other.
func nameOf(id map[string]string) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(id)) {
		for _, s := range []string{key, id[key]} {
			b.WriteString(strconv.Itoa(len(s)))
			b.WriteByte(':')
			b.WriteString(s)
		}
	}
	return b.String()
}
