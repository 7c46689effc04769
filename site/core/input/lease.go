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
	// Share has the holder grant tokens of a rate quota in place of the site: as many in each
	// period as the lease has tokens.
	Share bool
}

// LeaseRef names a lease.
type LeaseRef struct {
	// Home is the site that granted the lease, Request the id of the acquire.
	Home    avantan.SiteID
	Request attempt.Key
}

// MaxTTL bounds the time to live of a lease, in milliseconds: 7 days.
const MaxTTL avantan.Tick = 7 * 24 * 60 * 60 * 1000

// MaxShareTTL bounds the time to live of a lease of share, in milliseconds: 10 minutes. Once a
// site is lost, its leases of share end within this time.
const MaxShareTTL avantan.Tick = 10 * 60 * 1000

// valid reports whether the time to live is within its bounds.
func (t *LeaseTerms) valid() bool { return t.TTL >= 1 && t.TTL <= t.most() }

func (t *LeaseTerms) most() avantan.Tick {
	if t.Share {
		return MaxShareTTL
	}
	return MaxTTL
}
