// Package books holds the balances of one entity at one site: how many of its tokens are
// available, outstanding and set aside. It is their only writer. Whoever wants to know why
// a site grants no more than it has reads this file.
//
// The escrow of a site is its part of the entity's tokens:
//
//	escrow = left + net + aside
//
// Requests and pledges move tokens between the three and leave the escrow as it is.
// Grants, debits and credits change the escrow by what other sites gave or got, and the
// sites' escrows add up to the limit (docs/protocol.md, section 1). What is set aside is
// not kept as a number of its own: Aside is what the escrow has beyond the other two, and
// the site compares it with what its protocols have pledged before it stores the books.
//
// Each operation states its bound. An operation beyond the bound changes no balance,
// closes the books and returns a BrokenError: the code that called it is wrong, and
// whatever the books would say next cannot be relied on. Closed books refuse everything.
//
// Package books refuses to know why tokens move: who may have them is decided elsewhere.
// It knows no time and no lock; only a Stripe's Left may be read while others change it.
package books

import (
	"fmt"
	"math"

	"github.com/samya-db/samya/avantan"
)

// Tokens counts tokens.
type Tokens = avantan.Tokens

// Most bounds every balance, in tokens, above and below zero: far from where sums over
// the most sites there can be would overflow. Trusted releases could pile up as many.
const Most Tokens = 1 << 56

// closed stands for the escrow of books that are closed.
const closed Tokens = math.MinInt64

// Books are the balances of one entity at one site. The zero Books hold nothing.
type Books struct{ left, net, escrow Tokens }

// Of returns books with balances: of a new entity, or as they were stored. It fails if one
// of them is out of bounds.
func Of(left, net, aside Tokens) (Books, error) {
	b := Books{left: left, net: net, escrow: left + net + aside}
	if !within(left, 0) || !within(net, 0) || !within(aside, 0) {
		return Books{}, b.fail("restore", aside)
	}
	return b, nil
}

// Close closes the books: they refuse all operations from then on.
func (b *Books) Close() { b.escrow = closed }

// Closed reports whether the books are closed.
func (b *Books) Closed() bool { return b.escrow == closed }

// Left is what is available, negative for a site that lacks tokens.
func (b *Books) Left() Tokens { return b.left }

// Net is what is outstanding by this site: acquired less released here. It is negative
// where more came back here than was handed out here.
func (b *Books) Net() Tokens { return b.net }

// Aside is what is set aside for instances under way; offers of less than nothing count
// as they are. Closed books have nothing to tell of that.
func (b *Books) Aside() Tokens {
	if b.Closed() {
		return 0
	}
	return b.escrow - b.left - b.net
}

// Escrow is the site's part of the entity's tokens; 0 of closed books.
func (b *Books) Escrow() Tokens {
	if b.Closed() {
		return 0
	}
	return b.escrow
}

// Take hands out tokens: at least 1, and no more than are left.
func (b *Books) Take(tokens Tokens) error {
	if b.Closed() || tokens < 1 || tokens > b.left || b.net > Most-tokens {
		return b.fail("take", tokens)
	}
	b.left -= tokens
	b.net += tokens
	return nil
}

// Fits reports whether tokens that were outstanding may be returned: the books have room.
func (b *Books) Fits(tokens Tokens) bool {
	return b.left <= Most-tokens && b.net >= tokens-Most
}

// Return takes back tokens that were outstanding; they fit.
func (b *Books) Return(tokens Tokens) error {
	if b.Closed() || tokens < 0 || !b.Fits(tokens) {
		return b.fail("return", tokens)
	}
	b.left += tokens
	b.net -= tokens
	return nil
}

// Pledge sets an offer to an instance aside: no more than is left. A site that lacks
// tokens may offer what it lacks, a negative number.
func (b *Books) Pledge(offer Tokens) error {
	if b.Closed() || offer > max(0, b.left) || !within(b.left, -offer) || !within(b.Aside(), offer) {
		return b.fail("pledge", offer)
	}
	b.left -= offer
	return nil
}

// Withdraw takes an offer back that was set aside.
func (b *Books) Withdraw(offer Tokens) error {
	if b.Closed() || !within(b.left, offer) || !within(b.Aside(), -offer) {
		return b.fail("withdraw", offer)
	}
	b.left += offer
	return nil
}

// Grant ends an instance: for what was offered to it, the site gets a grant.
func (b *Books) Grant(offer, grant Tokens) error {
	if b.Closed() || !within(b.left, grant) || !within(b.Aside(), -offer) {
		return b.fail("grant", grant)
	}
	b.left += grant
	b.escrow += grant - offer
	return nil
}

// Debit gives tokens to another site: at least 1, and no more than are left.
func (b *Books) Debit(tokens Tokens) error {
	if b.Closed() || tokens < 1 || tokens > b.left {
		return b.fail("debit", tokens)
	}
	b.left -= tokens
	b.escrow -= tokens
	return nil
}

// HasRoom reports whether tokens of another site may be credited.
func (b *Books) HasRoom(tokens Tokens) bool {
	return tokens <= Most && within(b.left, tokens) && within(b.escrow, tokens)
}

// Credit takes tokens of another site in: at least 1, and there is room.
func (b *Books) Credit(tokens Tokens) error {
	if b.Closed() || tokens < 1 || !b.HasRoom(tokens) {
		return b.fail("credit", tokens)
	}
	b.left += tokens
	b.escrow += tokens
	return nil
}

// Shift moves tokens that are outstanding of entities below this one into these books, or
// out of them if negative, and returns how many: those beyond the bounds are left out.
// What is left pays for them, and may become negative.
func (b *Books) Shift(out Tokens) (Tokens, error) {
	if b.Closed() {
		return 0, b.fail("shift", out)
	}
	if out > 0 {
		out = max(0, min(out, Most-b.net, Most+b.left))
	} else {
		out = min(0, max(out, -Most-b.net, b.left-Most))
	}
	b.left -= out
	b.net += out
	return out, nil
}

// within reports whether a balance stays within bounds if it changes.
func within(balance, change Tokens) bool {
	return change >= -2*Most && change <= 2*Most && balance+change >= -Most && balance+change <= Most
}

// fail closes the books, and says why they were.
func (b *Books) fail(operation string, tokens Tokens) error {
	err := &BrokenError{Operation: operation, Tokens: tokens, Left: b.left, Net: b.net, Aside: b.Aside(), Closed: b.Closed()}
	b.Close()
	return err
}

// BrokenError says which operation was beyond its bound, and what the books said then.
type BrokenError struct {
	Operation                string
	Tokens, Left, Net, Aside Tokens
	// Closed says that the books were closed before.
	Closed bool
}

// Error implements error.
func (e *BrokenError) Error() string {
	if e.Closed {
		return fmt.Sprintf("cannot %s %d tokens: the books are closed", e.Operation, e.Tokens)
	}
	return fmt.Sprintf("broken balance: cannot %s %d tokens with %d left, %d outstanding and %d set aside",
		e.Operation, e.Tokens, e.Left, e.Net, e.Aside)
}
