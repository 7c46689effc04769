package input

import (
	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/site/core/attempt"
)

// LeaseTerms ask for a lease.
type LeaseTerms struct {
	// ID is the acquire's request id, which names the lease: KeyOf it must be the
	// acquire's Request.
	ID string
	// TTL is the time in milliseconds for which the tokens are held.
	TTL avantan.Tick
	// Holder names the holder, as the caller says.
	Holder string
}

// LeaseRef names a lease.
type LeaseRef struct {
	// Home is the site that granted the lease, Request the id of the acquire.
	Home    avantan.SiteID
	Request attempt.Key
}

// MaxTTL bounds the time to live of a lease, in milliseconds: 7 days.
const MaxTTL avantan.Tick = 7 * 24 * 60 * 60 * 1000
