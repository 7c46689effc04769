// Package books holds the balances of an entity at a site: the tokens available,
// outstanding and set aside. It is their only writer. This file tells why a site grants
// no more than it has.
//
// The escrow of a site is its part of the entity's tokens:
//
//	escrow = left + net + aside
//
// Requests and pledges move tokens between the three and leave the escrow as it is.
// Grants, debits and credits change the escrow by the tokens that other sites gave or
// got. The sites' escrows add up to the limit (docs/protocol.md, section 1). Books store
// no number for the tokens set aside: Aside is the escrow less the other two. The site
// compares Aside with the pledges of its protocols before it stores the books.
//
// Each operation states its bound. An operation beyond the bound changes no balance,
// closes the books and returns a brokenError: the calling code is wrong, and the books
// are no longer reliable. Closed books refuse everything.
//
// Package books refuses to know why tokens move: other code decides who may have them. It
// knows no time and no lock; only a Stripe's Left may be read while others change it.
package books

import (
	"fmt"
	"math"

	"github.com/samya-db/samya/avantan"
)

// Tokens counts tokens.
type Tokens = avantan.Tokens

// most bounds every balance, in tokens, above and below zero: sums over the largest
// possible number of sites stay far from overflow. Trusted releases could pile up as
// many.
const most Tokens = 1 << 56

// closed stands for the escrow of closed books.
const closed Tokens = math.MinInt64

// Books are the balances of an entity at a site. The zero Books hold nothing.
type Books struct{ left, net, escrow Tokens }

// Of returns books with balances of a new entity, or balances read from storage. It fails
// if a balance is out of bounds.
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

// Left is the number of tokens available, negative for a site that lacks tokens.
func (b *Books) Left() Tokens { return b.left }

// Net is the number of tokens outstanding by this site: acquired here less released here.
// It is negative where more tokens came back than were handed out.
func (b *Books) Net() Tokens { return b.net }

// Aside is the number of tokens set aside for instances under way; a negative offer
// counts as a negative number. It is 0 of closed books.
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

// Take hands out tokens: at least 1, at most the tokens left.
func (b *Books) Take(tokens Tokens) error {
	if b.Closed() || tokens < 1 || tokens > b.left || b.net > most-tokens {
		return b.fail("take", tokens)
	}
	b.left -= tokens
	b.net += tokens
	return nil
}

// Fits reports whether the books have room for the return of outstanding tokens.
func (b *Books) Fits(tokens Tokens) bool {
	return b.left <= most-tokens && b.net >= tokens-most
}

// Return takes back outstanding tokens, which must fit.
func (b *Books) Return(tokens Tokens) error {
	if b.Closed() || tokens < 0 || !b.Fits(tokens) {
		return b.fail("return", tokens)
	}
	b.left += tokens
	b.net -= tokens
	return nil
}

// Pledge sets an offer to an instance aside, at most the tokens left. A site that lacks
// tokens may offer its lack, a negative number.
func (b *Books) Pledge(offer Tokens) error {
	if b.Closed() || offer > max(0, b.left) || !within(b.left, -offer) || !within(b.Aside(), offer) {
		return b.fail("pledge", offer)
	}
	b.left -= offer
	return nil
}

// Withdraw takes back an offer that was set aside.
func (b *Books) Withdraw(offer Tokens) error {
	if b.Closed() || !within(b.left, offer) || !within(b.Aside(), -offer) {
		return b.fail("withdraw", offer)
	}
	b.left += offer
	return nil
}

// Grant ends an instance: the site gets a grant for its offer.
func (b *Books) Grant(offer, grant Tokens) error {
	if b.Closed() || !within(b.left, grant) || !within(b.Aside(), -offer) {
		return b.fail("grant", grant)
	}
	b.left += grant
	b.escrow += grant - offer
	return nil
}

// Recount takes tokens that are not in use out of the tokens outstanding; a negative
// number adds tokens in use that were not counted. The escrow changes along: other code
// hands the tokens to the sites.
func (b *Books) Recount(tokens Tokens) error {
	if b.Closed() || !within(b.net, -tokens) || !within(b.escrow, -tokens) {
		return b.fail("recount", tokens)
	}
	b.net -= tokens
	b.escrow -= tokens
	return nil
}

// Debit gives tokens to another site: at least 1, at most the tokens left.
func (b *Books) Debit(tokens Tokens) error {
	if b.Closed() || tokens < 1 || tokens > b.left {
		return b.fail("debit", tokens)
	}
	b.left -= tokens
	b.escrow -= tokens
	return nil
}

// Overdraw is Debit without a bound by the tokens left, which may become negative.
func (b *Books) Overdraw(tokens Tokens) error {
	if b.Closed() || tokens < 1 || !within(b.left, -tokens) || !within(b.escrow, -tokens) {
		return b.fail("overdraw", tokens)
	}
	b.left -= tokens
	b.escrow -= tokens
	return nil
}

// FitsEstate reports whether there is room for all that another site hands over: tokens
// left, or a debt if below zero, and tokens outstanding.
func (b *Books) FitsEstate(left, net Tokens) bool {
	for _, n := range []Tokens{left, net} {
		if n < -most || n > most {
			return false
		}
	}
	return within(b.left, left) && within(b.net, net) && within(b.escrow, left) && within(b.escrow, left+net)
}

// HasRoom reports whether tokens of another site may be credited.
func (b *Books) HasRoom(tokens Tokens) bool {
	return tokens <= most && within(b.left, tokens) && within(b.escrow, tokens)
}

// Credit takes in tokens of another site: at least 1, for which there must be room.
func (b *Books) Credit(tokens Tokens) error {
	if b.Closed() || tokens < 1 || !b.HasRoom(tokens) {
		return b.fail("credit", tokens)
	}
	b.left += tokens
	b.escrow += tokens
	return nil
}

// Shift moves outstanding tokens of entities below this entity into these books, or out
// of them if negative. It returns the number moved: tokens beyond the bounds are left
// out. The tokens left pay for the move, and may become negative.
func (b *Books) Shift(out Tokens) (Tokens, error) {
	if b.Closed() {
		return 0, b.fail("shift", out)
	}
	if out > 0 {
		out = max(0, min(out, most-b.net, most+b.left))
	} else {
		out = min(0, max(out, -most-b.net, b.left-most))
	}
	b.left -= out
	b.net += out
	return out, nil
}

// within reports whether a balance stays within bounds if it changes.
func within(balance, change Tokens) bool {
	return change >= -2*most && change <= 2*most && balance+change >= -most && balance+change <= most
}

// fail closes the books and returns the reason.
func (b *Books) fail(operation string, tokens Tokens) error {
	err := &brokenError{Operation: operation, Tokens: tokens, Left: b.left, Net: b.net, Aside: b.Aside(), Closed: b.Closed()}
	b.Close()
	return err
}

// brokenError names the operation that was beyond its bound, with the balances at that
// time.
type brokenError struct {
	Operation                string
	Tokens, Left, Net, Aside Tokens
	// Closed says that the books were closed before.
	Closed bool
}

// Error implements error.
func (e *brokenError) Error() string {
	if e.Closed {
		return fmt.Sprintf("cannot %s %d tokens: the books are closed", e.Operation, e.Tokens)
	}
	return fmt.Sprintf("broken balance: cannot %s %d tokens with %d left, %d outstanding and %d set aside",
		e.Operation, e.Tokens, e.Left, e.Net, e.Aside)
}
