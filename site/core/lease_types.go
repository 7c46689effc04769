package core

// LeaseTerms ask for a lease.
type LeaseTerms struct {
	// ID is the acquire's request id, which names the lease: KeyOf it must be the
	// acquire's Request.
	ID string
	// TTL is the time in milliseconds for which the tokens are held.
	TTL Tick
	// Holder names the holder, as the caller says.
	Holder string
}

// LeaseRef names a lease.
type LeaseRef struct {
	// Home is the site that granted the lease, Request the id of the acquire.
	Home    SiteID
	Request RequestKey
}

// LeaseRecord is a lease. It is stored by its number, until it has ended.
type LeaseRecord struct {
	// Number counts the site's leases from 1.
	Number uint64
	// ID is the acquire's request id.
	ID         string
	Entity     string
	Generation uint64
	// Tokens is the number of tokens it still holds; they are part of the entity's net.
	Tokens Tokens
	// Expires is the end by the site's own time, see ClockRecord, in milliseconds since
	// the Unix epoch. Within a life of the core the lease ends by the monotonic clock.
	Expires int64
	TTL     Tick
	Holder  string
}

// LeaseView describes a lease to clients.
type LeaseView struct {
	Number uint64
	ID     string
	Entity string
	Tokens Tokens
	// Remaining is the time in milliseconds until it ends.
	Remaining Tick
	Holder    string
}
