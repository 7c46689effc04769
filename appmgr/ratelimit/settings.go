package ratelimit

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/samya-db/samya/appmgr/ratelimit/quota"
	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/ratelimit/rules"
	"github.com/samya-db/samya/internal/rates"
)

// Settings are the settings of a user.
type Settings struct {
	// Dir has the rules: all its files *.yaml and *.yml. Empty: the service is not served.
	Dir string
	// Headers is the style of the fields that a proxy adds to its answers, in
	// [HeaderStyles].
	Headers string
	// Shadow: every request passes. All is counted as ever.
	Shadow bool
	// Drain: a refused request of several hits uses up the rest of the limits that it
	// exceeds.
	Drain bool
	// Kind is the kind of the rate quotas that are made for rules, in [Kinds]: "window", also
	// if empty, or "bucket" for all periods but months and years.
	Kind string
	// Wait is how long a decision may wait for tokens of other sites; never longer than its
	// caller waits.
	Wait time.Duration
	// MaxEntities bounds the entities that this process creates.
	MaxEntities int
	// QuotaTTL is how long a proxy may go by an assignment of the rate limit quota service,
	// and QuotaBuckets bounds the buckets of all proxies.
	QuotaTTL     time.Duration
	QuotaBuckets int
}

// The defaults of Settings.
const (
	DefaultWait     = 100 * time.Millisecond
	DefaultEntities = 10_000
	DefaultQuotaTTL = 20 * time.Second
	DefaultBuckets  = 10_000
)

// maxWait bounds Settings.Wait, and mostEntities bounds Settings.MaxEntities.
const (
	maxWait      = 10 * time.Second
	mostEntities = 1_000_000
)

// The bounds of Settings.QuotaTTL.
const (
	leastTTL = 4 * time.Second
	mostTTL  = 5 * time.Minute
)

// The styles of header fields.
const (
	noHeaders    = "none"
	draftHeaders = "ratelimit"
	xHeaders     = "x-ratelimit"
	theirHeaders = "envoyproxy"
)

// HeaderStyles returns the values of Settings.Headers: none; ratelimit for RateLimit and
// RateLimit-Policy; x-ratelimit for X-RateLimit-Limit and two more; envoyproxy for
// RateLimit-Limit and two more.
func HeaderStyles() []string { return []string{noHeaders, draftHeaders, xHeaders, theirHeaders} }

// Kinds returns the values of Settings.Kind.
func Kinds() []string { return []string{string(rates.Window), string(rates.Bucket)} }

// termsOf are the terms of the rate quota that is made for a rule.
func (s *Settings) termsOf(m *rules.Match) rates.Terms {
	if s.Kind != string(rates.Bucket) || m.Terms.Unit == rates.Month {
		return m.Terms
	}
	t, err := rates.Parse(s.Kind, m.Terms.Per(), "", nil)
	if err != nil {
		return m.Terms
	}
	t.Keys = m.Terms.Keys
	return t
}

// Validate checks s; the error names every field at fault.
func (s *Settings) Validate() error {
	var errs []error
	bad := func(field, problem string) { errs = append(errs, &name.Error{Field: field, Problem: problem}) }
	if s.Headers != "" && !slices.Contains(HeaderStyles(), s.Headers) {
		bad("ratelimit-headers", "must be one of "+strings.Join(HeaderStyles(), ", "))
	}
	if s.Kind != "" && !slices.Contains(Kinds(), s.Kind) {
		bad("ratelimit-kind", "must be one of "+strings.Join(Kinds(), ", "))
	}
	if s.Wait < 0 || s.Wait > maxWait {
		bad("ratelimit-wait", s.Wait.String()+", at least 0s and at most 10s")
	}
	if s.MaxEntities < 0 || s.MaxEntities > mostEntities {
		bad("ratelimit-entities", "at least 0 (the default) and at most 1000000")
	}
	if t := s.QuotaTTL; t != 0 && (t < leastTTL || t > mostTTL || t%time.Second != 0) {
		bad("ratelimit-quota-ttl", t.String()+", must be whole seconds, at least 4s and at most 5m")
	}
	if s.QuotaBuckets < 0 || s.QuotaBuckets > mostEntities {
		bad("ratelimit-quota-buckets", "at least 0 (the default) and at most 1000000")
	}
	return errors.Join(errs...)
}

// Quota are the settings of the rate limit quota service.
func (s *Settings) Quota() quota.Config {
	n := cmp.Or(s.QuotaBuckets, DefaultBuckets)
	return quota.Config{TTL: cmp.Or(s.QuotaTTL, DefaultQuotaTTL), MaxBuckets: n, MaxOfStream: min(n, mostOfStream)}
}

// mostOfStream bounds the buckets of a proxy.
const mostOfStream = 2000
