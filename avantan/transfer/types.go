package transfer

import "github.com/samya-db/samya/avantan"

// Debit is this site's side, as a donor, of the pair with one receiver.
type Debit struct {
	Receiver avantan.SiteID
	// Asked is the highest number of an ask of the receiver that was answered.
	Asked uint64
	// Seq numbers the transfers to the receiver: 1, 2, 3, … It is that of the
	// last one; zero before the first, never above Asked, and never reset.
	Seq uint64
	// Amount is what the last transfer moves, while it is not acknowledged: the
	// tokens are in no site's books, or in the receiver's. Zero once it is.
	Amount avantan.Tokens
}

// Credit is this site's side, as a receiver, of the pair with one donor.
type Credit struct {
	Donor avantan.SiteID
	// Seq is the last transfer that was credited. At least 1.
	Seq uint64
}

// State is all of a Machine that must survive a crash. The caller stores it in
// one transaction with its own books whenever an Output says so, and hands it
// back to New after a restart.
type State struct {
	// Reserved is the last number this site may have given to an ask. After a
	// restart it goes on above.
	Reserved uint64
	// Debits hold what this site owes to receivers, ordered by them, one each.
	Debits []Debit
	// Credits hold what this site has received, ordered by donor, one each.
	Credits []Credit
}

// Kind names a message.
type Kind uint8

const (
	// Ask asks a donor for tokens.
	Ask Kind = iota + 1
	// Transfer brings tokens to a receiver.
	Transfer
	// Refuse tells a receiver that the donor has nothing to give for its ask.
	Refuse
	// Ack tells a donor that all transfers up to one are durably credited.
	Ack
)

// Message is one message between two sites' machines of the same entity. Which
// entity and generation is the caller's to say on the wire.
type Message struct {
	Kind     Kind
	From, To avantan.SiteID
	// Ask: the number of an ask, at least 1. With Ask its own; with Transfer and
	// Refuse the last one that is answered so.
	Ask uint64
	// Seq: with Transfer its number; with Ask and Ack the last transfer of the
	// receiver of the message that the sender has durably credited, zero in an
	// Ask for none.
	Seq uint64
	// Amount: with Ask the tokens asked for, with Transfer those moved; at least 1.
	Amount avantan.Tokens
	// Left: with Refuse what the donor holds, for the asker's picture of others.
	// Negative where it is in debt.
	Left avantan.Tokens
}
