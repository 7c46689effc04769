package transfer

import "github.com/samya-db/samya/avantan"

// Debit is this site's side, as a donor, of the pair with a receiver.
type Debit struct {
	Receiver avantan.SiteID
	// Asked is the highest number of the receiver's asks that this site has answered.
	Asked uint64
	// Seq is the number of the last transfer to the receiver: 1, 2, 3, … Zero before
	// the first, never above Asked, and never reset.
	Seq uint64
	// Amount is the number of tokens that the last transfer moves, until it is
	// acknowledged, or the receiver is written off; zero after that. Before, the tokens are
	// in no site's books, or in the receiver's. Tokens on their way to a site that is written
	// off are retired: this site never has them again.
	Amount avantan.Tokens
}

// Credit is this site's side, as a receiver, of the pair with a donor.
type Credit struct {
	Donor avantan.SiteID
	// Seq is the number of the last transfer credited. At least 1.
	Seq uint64
}

// State is the part of a Machine that must survive a crash. The caller stores it in one
// transaction with its own books whenever an Output says so, and hands it back to New
// after a restart.
type State struct {
	// Reserved is the last number this site may have given to an ask. After a
	// restart it goes on above.
	Reserved uint64
	// Debits hold the tokens that this site owes to receivers, ordered by receiver,
	// each once.
	Debits []Debit
	// Credits hold the last transfers that this site has received, ordered by donor,
	// each once.
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
	// Ack tells a donor that all transfers up to Message.Seq are durably credited.
	Ack
)

// Message is a message between the machines of two sites for the same entity. The
// caller names the entity and its generation on the wire.
type Message struct {
	Kind     Kind
	From, To avantan.SiteID
	// Ask: the number of an ask, at least 1. In an Ask its own number; in a Transfer or
	// Refuse the number of the last ask answered so.
	Ask uint64
	// Seq: in a Transfer its number. In an Ask or Ack the last transfer of the receiver
	// of the message that the sender has durably credited, zero in an Ask for none.
	Seq uint64
	// Amount: in an Ask the tokens asked for, in a Transfer the tokens moved; at least
	// 1.
	Amount avantan.Tokens
	// Left: in a Refuse the tokens that the donor holds, for the asker's estimates.
	// Negative if the donor is in debt.
	Left avantan.Tokens
}
