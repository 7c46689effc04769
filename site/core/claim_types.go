package core

// ClaimNumber names one of a site's claims; none is used twice. Later ones are
// greater.
type ClaimNumber uint64

// ClaimKind says what is asked of the site of an earlier attempt.
type ClaimKind uint8

const (
	// UndoAcquire: undo the acquire, if it ran, and never run it.
	UndoAcquire ClaimKind = iota + 1
	// SettleRelease: say whether the release ran, and if not never run it.
	SettleRelease
	// ReturnLease: give back what a lease of the asked site holds, up to Tokens.
	ReturnLease
)

// ClaimAsk asks another site about a request of which attempts may have run
// there.
type ClaimAsk struct {
	// Number is the claim's at the asking site.
	Number ClaimNumber
	Kind   ClaimKind
	// Key, Body, Entity and Tokens are the request's.
	Key    RequestKey
	Body   uint64
	Entity string
	Tokens Tokens
	// Attempt is the last of those meant.
	Attempt Attempt
	// NotAfter is the wall time in milliseconds after which no site runs the
	// request.
	NotAfter int64
	// Lease names the lease: ReturnLease.
	Lease RequestKey
}

// ClaimVerdict answers a claim. All are final and durable where they were given.
type ClaimVerdict uint8

const (
	// NeverRan: no such attempt ran, and none will.
	NeverRan ClaimVerdict = iota + 1
	// DidRun: an attempt ran. An acquire is undone; a lease has given back.
	DidRun
	// Forgotten: the records that would tell are no longer kept.
	Forgotten
)

// ClaimAnswer answers one ask.
type ClaimAnswer struct {
	Number  ClaimNumber
	Verdict ClaimVerdict
}

// Claims is a message about requests that two sites were asked.
type Claims struct {
	From, To SiteID
	Asks     []ClaimAsk
	Answers  []ClaimAnswer
}

// ClaimRecord is what the site has to find out with other sites about one
// request. It is stored by its number, until all have answered.
type ClaimRecord struct {
	ClaimAsk
	// Generation is the entity's here.
	Generation uint64
	// Sites have not answered.
	Sites []SiteID
}
