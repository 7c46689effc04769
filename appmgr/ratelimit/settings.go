package ratelimit

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/samya-db/samya/internal/name"
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
	// Wait is how long a decision may wait for tokens of other sites; never longer than its
	// caller waits.
	Wait time.Duration
	// MaxEntities bounds the entities that this process creates.
	MaxEntities int
}

// The defaults of Settings.
const (
	DefaultWait     = 100 * time.Millisecond
	DefaultEntities = 10_000
)

// maxWait bounds Settings.Wait, and mostEntities bounds Settings.MaxEntities.
const (
	maxWait      = 10 * time.Second
	mostEntities = 1_000_000
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

// Validate checks s; the error names every field at fault.
func (s *Settings) Validate() error {
	var errs []error
	bad := func(field, problem string) { errs = append(errs, &name.Error{Field: field, Problem: problem}) }
	if s.Headers != "" && !slices.Contains(HeaderStyles(), s.Headers) {
		bad("ratelimit-headers", "must be one of "+strings.Join(HeaderStyles(), ", "))
	}
	if s.Wait < 0 || s.Wait > maxWait {
		bad("ratelimit-wait", s.Wait.String()+", at least 0s and at most 10s")
	}
	if s.MaxEntities < 0 || s.MaxEntities > mostEntities {
		bad("ratelimit-entities", "at least 0 (the default) and at most 1000000")
	}
	return errors.Join(errs...)
}
