package transfer

import "github.com/samya-db/samya/avantan"

// Ledger is the caller's books of one entity, as a Machine needs them. It is
// called from within Step, on the caller's goroutine, and must not block. What
// it changes becomes durable in the same transaction as the Machine's State.
type Ledger interface {
	// Left returns what the site may hand out now, negative in a debt, and its
	// target, what it would keep of it for its own clients. A target below zero
	// counts as zero. What is set aside elsewhere is in neither.
	Left() (left, target avantan.Tokens)
	// Debit takes tokens out: at least 1, at most what Left has just returned.
	Debit(receiver avantan.SiteID, amount avantan.Tokens)
	// Credit puts tokens in, at least 1. If it cannot, the sum does not fit for
	// one, it reports why and has changed nothing: the tokens stay under way, and
	// are brought again.
	Credit(donor avantan.SiteID, amount avantan.Tokens) error
}
