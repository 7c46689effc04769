package message

import (
	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/site/core/attempt"
)

// ClaimNumber names a site's claim. No number is used twice, and later claims have
// greater numbers.
type ClaimNumber uint64

// ClaimKind is the kind of an ask to the site of an earlier attempt.
type ClaimKind uint8

const (
	// UndoAcquire: undo the acquire, if it ran, and never run it.
	UndoAcquire ClaimKind = iota + 1
	// SettleRelease: say whether the release ran, and if not never run it.
	SettleRelease
	// ReturnLease: give back the tokens of a lease of the asked site, up to Tokens.
	ReturnLease
)

// ClaimAsk asks another site about a request with attempts that may have run there.
type ClaimAsk struct {
	// Number is the claim's number at the asking site.
	Number ClaimNumber
	Kind   ClaimKind
	// Key, Body, Entity and Tokens are the request's.
	Key    attempt.Key
	Body   uint64
	Entity string
	Tokens avantan.Tokens
	// attempt.Number is the last attempt asked about.
	Attempt attempt.Number
	// NotAfter is the wall time in milliseconds after which no site runs the
	// request.
	NotAfter int64
	// Lease names the lease: ReturnLease.
	Lease attempt.Key
}

// ClaimVerdict answers a claim. A verdict is final, and durable at its site.
type ClaimVerdict uint8

const (
	// NeverRan: no such attempt ran, and none will.
	NeverRan ClaimVerdict = iota + 1
	// DidRun: an attempt ran. An acquire is undone; a lease has given back its tokens.
	DidRun
	// Forgotten: the records that would tell are no longer kept.
	Forgotten
)

// ClaimAnswer answers an ask.
type ClaimAnswer struct {
	Number  ClaimNumber
	Verdict ClaimVerdict
}

// Claims is a message about requests between two sites.
type Claims struct {
	From, To avantan.SiteID
	Asks     []ClaimAsk
	Answers  []ClaimAnswer
}
