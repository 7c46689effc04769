package handoff

import "github.com/samya-db/samya/avantan"

// Ledger is the caller's books of an entity with its items, as a Machine needs them. A
// Machine calls a Ledger from within Step, on the caller's goroutine. No call may block.
// Its changes become durable in the same transaction as the Machine's State.
type Ledger interface {
	// Holds returns the tokens that the site has left, negative in a debt, and its net:
	// the tokens acquired here less the tokens released here, the tokens of all items
	// included. Neither includes tokens set aside elsewhere.
	Holds() (left, net avantan.Tokens)
	// Items returns items to hand over, at most limit, always in the same order, and the
	// tokens of all items that the site has, also beyond the limit. The items that a
	// bequest takes along are in State().Open after the step.
	Items(limit int) (items []Item, held avantan.Tokens)
	// Fits returns an error if the books cannot take an estate of a leaver as a whole, or
	// if an item is frozen here: the item may come back by a third site before the site's
	// own bequest is closed. The estate then stays where it was, and the leaver sends the
	// bequest again.
	Fits(leaver avantan.SiteID, e *Estate) error

	// Debit takes tokens left out of the books, for an heir or of a leaver; at least 1.
	// Left may become negative.
	Debit(peer avantan.SiteID, tokens avantan.Tokens)
	// Credit puts tokens left into the books, of a leaver or of an heir; at least 1.
	Credit(peer avantan.SiteID, tokens avantan.Tokens)
	// Count adds tokens to the net, of the entity and of all entities above; a negative
	// number takes tokens out. Left does not change.
	Count(tokens avantan.Tokens)
	// TakeItem stores an item of a leaver, and counts its tokens. A site that has an item of
	// that name, of another attempt of the same request, puts the two together.
	TakeItem(leaver avantan.SiteID, item Item)
	// DropItem forgets an item that the heir has taken, and takes its tokens out of the net.
	DropItem(heir avantan.SiteID, item Item)
	// LoseItem forgets an item that an heir may have taken before the heir was lost. The
	// item's tokens stay in the net, but see LoseNet.
	LoseItem(heir avantan.SiteID, item Item)
	// LoseNet says that an heir may have counted tokens out of the leaver, at least 1, before
	// the heir was lost. They stay in the net, unless tokens out come back by themselves: the
	// heir may have them again.
	LoseNet(heir avantan.SiteID, tokens avantan.Tokens)
}
