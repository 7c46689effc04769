// Package message has the messages between sites: an Envelope with a message of a
// protocol, gossip, claims about requests, audits, and fencing for data. It refuses to
// know how messages are encoded; see package wire.
package message

import (
	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/handoff"
	"github.com/samya-db/samya/avantan/star"
	"github.com/samya-db/samya/avantan/transfer"
	"github.com/samya-db/samya/internal/spanctx"
)

// Envelope is a protocol message with its sequence, or a message about the sender's own
// data.
type Envelope struct {
	// Entity and Generation name the sequence; empty and 0 for the catalogue's sequence.
	Entity     string
	Generation uint64
	// Message is a message of the majority variant, unless Star is set.
	Message avantan.Message
	// Star is a message of the star variant.
	Star *star.Message
	// Transfer is a message of a direct transfer.
	Transfer *transfer.Message
	// Handoff is a message of a handoff.
	Handoff *handoff.Message
	// Audit is a step of an audit.
	Audit *Audit
	// Gossip, if set, reports the sender's tokens, and all fields above are empty.
	Gossip *Gossip
	// Claims, if set, is about requests, and all fields above are empty.
	Claims *Claims
	// Leave, if set, is about a site that leaves, and all fields above are empty.
	Leave *Leave
	// Vouch, if set, is about data, and all other fields but Mark are empty.
	Vouch *Vouch
	// Window is, with a Transfer or Handoff of a rate quota, the number of the sender's window
	// when the message left; else 0. The tokens were set aside in that window, or before.
	Window int64
	// Mark is the state of the sender's data when the message left: the message rests on
	// nothing later.
	Mark Mark
	// Trace is the span that the message belongs to, if the trace is recorded; else nil.
	Trace *spanctx.Context
}

// From returns the sender.
func (e *Envelope) From() avantan.SiteID {
	switch {
	case e.Vouch != nil:
		return e.Vouch.From
	case e.Star != nil:
		return e.Star.From
	case e.Transfer != nil:
		return e.Transfer.From
	case e.Handoff != nil:
		return e.Handoff.From
	case e.Gossip != nil:
		return e.Gossip.From
	case e.Claims != nil:
		return e.Claims.From
	case e.Audit != nil:
		return e.Audit.From
	case e.Leave != nil:
		return e.Leave.From
	}
	return e.Message.From
}

// To returns the receiver.
func (e *Envelope) To() avantan.SiteID {
	switch {
	case e.Vouch != nil:
		return e.Vouch.To
	case e.Star != nil:
		return e.Star.To
	case e.Transfer != nil:
		return e.Transfer.To
	case e.Handoff != nil:
		return e.Handoff.To
	case e.Gossip != nil:
		return e.Gossip.To
	case e.Claims != nil:
		return e.Claims.To
	case e.Audit != nil:
		return e.Audit.To
	case e.Leave != nil:
		return e.Leave.To
	}
	return e.Message.To
}
