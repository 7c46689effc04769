package handoff

import "github.com/samya-db/samya/avantan"

// Item is something that holds tokens by itself, a lease.
type Item struct {
	// Data is the item in the caller's encoding, 1 to 4,096 bytes. Nobody reads or
	// changes the bytes here.
	Data []byte
	// Tokens are the tokens of the item, at least 0, a part of the site's net.
	Tokens avantan.Tokens
}

// Estate is all that a bequest moves.
type Estate struct {
	// Left are tokens left, which the leaver no longer has; at least 0.
	Left avantan.Tokens
	// Owed is a debt that the leaver still has; at least 0, and 0 if Left is not.
	Owed avantan.Tokens
	// Net are the tokens out, without the tokens of items. Above zero the leaver still
	// counts these tokens. Below zero the leaver counts zero instead.
	Net avantan.Tokens
	// Items are items of the leaver that it has frozen, at most MaxItems.
	Items []Item
}

// Bequest is an Estate on its way, at its leaver.
type Bequest struct {
	Heir avantan.SiteID
	// Number counts the bequests to the heir from 1.
	Number uint64
	Estate Estate
}

// Given is this site's side, as a leaver, of the pair with an heir.
type Given struct {
	Heir avantan.SiteID
	// Number is the number of the last bequest to the heir. At least 1.
	Number uint64
}

// Taken is this site's side, as an heir, of the pair with a leaver.
type Taken struct {
	Leaver avantan.SiteID
	// Number is the number of the last bequest taken. At least 1.
	Number uint64
}

// State is the part of a Machine that must survive a crash. The caller stores it in one
// transaction with its own books whenever an Output says so, and hands it back to New
// after a restart.
type State struct {
	// Open is the bequest that is not closed yet; nil for none.
	Open *Bequest
	// Given hold the last bequests of this site, ordered by heir, each once.
	Given []Given
	// Taken hold the last bequests that this site has taken, ordered by leaver, each
	// once.
	Taken []Taken
}

// Kind names a message.
type Kind uint8

const (
	// Bequeath brings a bequest to the heir.
	Bequeath Kind = iota + 1
	// Ack tells a leaver that the heir has durably taken a bequest.
	Ack
)

// Message is a message between the machines of two sites for the same entity. The
// caller names the entity and its generation on the wire.
type Message struct {
	Kind     Kind
	From, To avantan.SiteID
	// Number: in a Bequeath the number of the bequest, from 1.
	Number uint64
	// Estate: in a Bequeath the tokens and items moved, not empty.
	Estate Estate
	// Taken is the last bequest of the receiver of the message that the sender has durably
	// taken; in a Bequeath 0 for none.
	Taken uint64
}
