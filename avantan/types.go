package avantan

import (
	"cmp"
	"fmt"
)

// SiteID is the name of a site, unique in its cluster. Sites are ordered by it.
type SiteID string

// Tokens counts tokens. It is signed: a site is in debt if a limit was lowered below
// the tokens in use.
type Tokens int64

// Tick is the caller's logical time in milliseconds. It must not run backwards within a
// life of a Machine. It serves time-outs only, never safety.
type Tick uint64

// Instance numbers the instances of one sequence: 1, 2, 3, … Zero stands
// before the first.
type Instance uint64

// Ballot orders the leaders of one instance: by Number, then by Site. The zero
// Ballot is below every ballot in use.
type Ballot struct {
	Number uint64
	Site   SiteID
}

// IsZero reports whether b is the zero Ballot, which no leader uses.
func (b Ballot) IsZero() bool { return b == Ballot{} }

// Compare returns -1, 0 or +1 as b is below, equal to or above c.
func (b Ballot) Compare(c Ballot) int {
	return cmp.Or(cmp.Compare(b.Number, c.Number), cmp.Compare(b.Site, c.Site))
}

// String returns the ballot as "number.site".
func (b Ballot) String() string {
	if b.IsZero() {
		return "-"
	}
	return fmt.Sprintf("%d.%s", b.Number, b.Site)
}

// Contribution is the part of a single site in an instance: the paper's InitVal (Table
// 1), as decided in the value it becomes part of.
type Contribution struct {
	Site SiteID
	// Offered is the slice set aside for the instance: the paper's TokensLeft.
	// Negative where the site is in debt.
	Offered Tokens
	// Wanted is the number of tokens that the site wants out of the pool, its offer
	// included, never negative. The paper's TokensWanted is max(0, Wanted-Offered).
	Wanted Tokens
	// Queued is the part of Wanted that waiting requests ask for.
	Queued Tokens
	// Median is the part of Wanted that the site needs at even odds, Queued
	// included. It is a hint that need not be within Queued and Wanted.
	Median Tokens
	// Kept is the number of tokens that the site kept for itself beside the offer,
	// never negative. Where all sites kept nothing, there are no more tokens to be had.
	Kept Tokens
	// Window is, of a rate quota, the number of the site's window in which the offer was set
	// aside; else 0. It is opaque to this package.
	Window int64
}

// Value is the decision of an instance: the paper's list L_t, the reallocation policy
// that shares out the pool, and a change that the leader proposed along with it. The
// policy is part of the value so that sites configured differently still agree. A Value
// never changes once it was handed to a Machine or by a Machine.
type Value struct {
	// Contributions holds at most one contribution a site, ordered by site. Its sites
	// are R_t: the sites whose tokens move.
	Contributions []Contribution
	// Policy names the reallocation policy.
	Policy string
	// Change is opaque to this package; empty for none.
	Change []byte
}

// Of returns the contribution of a site, and whether the value holds one.
func (v *Value) Of(site SiteID) (Contribution, bool) {
	for _, c := range v.Contributions {
		if c.Site == site {
			return c, true
		}
	}
	return Contribution{}, false
}

// Press says how hard a leader presses for tokens. It grows with each instance in a row
// that leaves waiting requests unserved.
type Press uint8

const (
	// PressSpare asks for the tokens that sites can spare.
	PressSpare Press = iota
	// PressAll asks for all tokens that no waiting request needs.
	PressAll
	// PressHold is PressAll, and announces a value that may leave less than nothing: a
	// site that answers must not use tokens that come back to it before the instance
	// ends.
	PressHold
	// PressNone asks for no tokens: the members take part as acceptors only. An instance
	// that only changes something needs none.
	PressNone
)

// Known is the press itself, or PressHold for a press that this build does not know.
func (p Press) Known() Press {
	if p > PressNone {
		return PressHold
	}
	return p
}

// Kept is a decision kept for a peer in its R, until the peer acknowledges to have
// applied it.
type Kept struct {
	Peer     SiteID
	Instance Instance
	Value    Value
}

// State is the part of a Machine that must survive a crash. The caller stores it in one
// transaction with its own books whenever an Output says so, and hands it back to New
// after a restart.
type State struct {
	// Applied is the last instance applied here. All fields below up to Built
	// are about instance Applied+1.
	Applied Instance
	// Promised is the highest ballot promised; never below AcceptedAt.
	Promised Ballot
	// AcceptedAt is the ballot at which Accepted was accepted; zero for none.
	AcceptedAt Ballot
	// Accepted is the value accepted; nil for none.
	Accepted *Value
	// Pledge is the own contribution whose offer is set aside; nil for none.
	// It is fixed while Exposures is not empty.
	Pledge *Contribution
	// Exposures are the ballots that Pledge is exposed to: the pledge was sent to the
	// ballot's leader, or this site built a value with it at that ballot. At most two a
	// leader, the first and the last; ordered by leader, then by number. Empty without
	// a Pledge.
	Exposures []Ballot
	// Built is set once this site has built a fresh value as a leader.
	Built bool
	// Kept is the retention table: at most one decision a peer, ordered by peer.
	Kept []Kept
}

// Kind names a message.
type Kind uint8

const (
	// Election is a leader's Election-GetValue.
	Election Kind = iota + 1
	// ElectionOk is a promise with a contribution: ElectionOk-Value.
	ElectionOk
	// Refuse answers with a higher promise.
	Refuse
	// Accept is a leader's Accept-Value.
	Accept
	// AcceptOk is a cohort's Accept-ok.
	AcceptOk
	// Decision carries a decided value to all.
	Decision
	// Applied acknowledges that all instances up to Message.Applied are durably
	// applied.
	Applied
	// Abandon says that the leader built no value in the instance at its ballots up to
	// Message.Ballot, and never will.
	Abandon
	// Status asks a leader for the outcome of its ballot.
	Status
	// CatchUpAsk asks for all decisions that the sender has missed.
	CatchUpAsk
	// CatchUp is the answer to a site that is behind.
	CatchUp
)

// Message is a message between the machines of two sites for the same sequence. The
// caller names the sequence (entity and generation) on the wire.
type Message struct {
	Kind     Kind
	From, To SiteID
	Instance Instance
	Ballot   Ballot
	// Promised: Refuse.
	Promised Ballot
	// Press: Election.
	Press Press
	// Contribution: ElectionOk; nil if the sender takes part as an acceptor only.
	Contribution *Contribution
	// AcceptedAt: ElectionOk.
	AcceptedAt Ballot
	// Value: Accept, Decision; ElectionOk carries the accepted value, if any.
	Value *Value
	// Applied: the last instance the sender has durably applied (Refuse,
	// Applied, CatchUpAsk, CatchUp).
	Applied Instance
	// Kept, Snapshot: CatchUp. Kept is the sender's whole retention table, the
	// receiver's own entry included.
	Kept     []Kept
	Snapshot []byte
}
