package core

// LeaseTerms ask for a lease.
type LeaseTerms struct {
	// ID is the acquire's request id, which names the lease: KeyOf it must be the
	// acquire's Request.
	ID string
	// TTL is for how long the tokens are held.
	TTL Tick
	// Holder is whose it is, as the caller says.
	Holder string
}

// LeaseRef names a lease.
type LeaseRef struct {
	// Home is the site that granted it, Request the id of the acquire.
	Home    SiteID
	Request RequestKey
}

// LeaseRecord is one lease. It is stored by its number, until it has ended.
type LeaseRecord struct {
	// Number counts the site's leases from 1.
	Number uint64
	// ID is the acquire's request id.
	ID         string
	Entity     string
	Generation uint64
	// Tokens are those that it still holds; they are part of the entity's net.
	Tokens Tokens
	// Expires is when it ends by the site's own time, see ClockRecord, in milliseconds since the Unix
	// epoch. Within a life of the core the lease ends by the monotonic clock.
	Expires int64
	TTL     Tick
	Holder  string
}

// LeaseView is a lease as it is told.
type LeaseView struct {
	Number uint64
	ID     string
	Entity string
	Tokens Tokens
	// Remaining is for how long it still holds.
	Remaining Tick
	Holder    string
}
