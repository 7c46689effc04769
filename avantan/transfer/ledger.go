package transfer

import "github.com/samya-db/samya/avantan"

// Ledger is the caller's books of an entity, as a Machine needs them. A Machine calls
// it from within Step, on the caller's goroutine, and it must not block. Its changes
// become durable in the same transaction as the Machine's State.
type Ledger interface {
	// Left returns the tokens that the site may hand out now, negative in a debt, and
	// its target, the tokens it would keep for its own clients. A target below zero
	// counts as zero. Neither includes tokens set aside elsewhere.
	Left() (left, target avantan.Tokens)
	// Debit takes tokens out of the books: at least 1, at most the last result of Left.
	Debit(receiver avantan.SiteID, amount avantan.Tokens)
	// Credit puts tokens into the books, at least 1. If it cannot, for example because
	// the sum does not fit, it returns an error and changes nothing. The tokens then
	// stay under way, and the donor sends them again.
	Credit(donor avantan.SiteID, amount avantan.Tokens) error
}
