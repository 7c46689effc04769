package quota

import (
	"time"

	"github.com/samya-db/samya/internal/ratelimit/rules"
	"github.com/samya-db/samya/internal/rates"
)

// streamID numbers a stream of a proxy.
type streamID uint64

// opID numbers a call of a site that the core waits for.
type opID uint64

// usage is a report of a bucket.
type usage struct {
	// Bucket names the bucket within its stream.
	Bucket string
	// Rule is the limit of the bucket; nil for none.
	Rule *rules.Match
	// Requests is how many requests the proxy saw since its last report, let through or not.
	Requests int64
}

// Granted is the answer of a site that leased a share.
type Granted struct {
	Lease  string
	Tokens int64
	// Remaining is how long the lease still lasts, as the site told.
	Remaining time.Duration
	// Terms are the terms of the quota.
	Terms rates.Terms
}

// effects are tasks of the shell.
type effects struct {
	Acquires []acquisition
	Renewals []renewal
	Returns  []Return
	Assigned []assignment
}

// acquisition asks for a lease of share. The shell answers with Acquired.
type acquisition struct {
	Op     opID
	Rule   *rules.Match
	Tokens int64
}

// renewal asks for another time to live of a lease. The shell answers with Renewed.
type renewal struct {
	Op    opID
	Lease string
}

// Return gives back tokens of a lease of an entity; 0 for all. Nobody waits for it: if it
// fails, the lease ends by itself.
type Return struct {
	Lease, Entity string
	Tokens        int64
}

// verdict is the kind of an assignment.
type verdict int

// The verdicts: share assigns a token bucket, abandon has the proxy forget the bucket.
const (
	share verdict = iota
	allow
	deny
	abandon
)

// String returns the verdict in lower case.
func (v verdict) String() string { return [...]string{"share", "allow", "deny", "abandon"}[v] }

// tokenBucket is a bucket of Max tokens at most, full at first, with Fill more in each
// Interval of whole seconds.
type tokenBucket struct {
	Max, Fill int64
	Interval  time.Duration
}

// assignment tells a proxy which requests of a bucket may pass, for a time of whole
// seconds.
type assignment struct {
	Stream  streamID
	Bucket  string
	Verdict verdict
	Tokens  tokenBucket
	TTL     time.Duration
}

// outcome is why a site leased nothing.
type outcome int

// The outcomes: no tokens are left, or nobody knows.
const (
	noTokens outcome = iota
	noAnswer
)
