package star

import (
	"cmp"
	"fmt"

	"github.com/samya-db/samya/avantan"
)

// ID names an instance, for ever: the site that leads it, and a number that the leader
// gives to no other instance of the sequence.
type ID struct {
	Leader  avantan.SiteID
	Counter uint64
}

// IsZero reports whether id is the zero ID, which no instance has.
func (id ID) IsZero() bool { return id == ID{} }

// Compare orders by leader, then by counter.
func (id ID) Compare(other ID) int {
	return cmp.Or(cmp.Compare(id.Leader, other.Leader), cmp.Compare(id.Counter, other.Counter))
}

// outranks reports whether the leader of other yields to the leader of id while both
// are in their first phase. The leader that has led less goes first.
func (id ID) outranks(other ID) bool {
	return cmp.Or(cmp.Compare(id.Counter, other.Counter), cmp.Compare(id.Leader, other.Leader)) < 0
}

// String returns the ID as "leader.counter".
func (id ID) String() string { return fmt.Sprintf("%s.%d", id.Leader, id.Counter) }

// Slice is this site's part in a single instance: the offer set aside, and the vote. A
// site votes once: none, then accepted or aborted. The slice of an aborted instance is
// gone, and Floors say that it was there.
type Slice struct {
	ID ID
	// Pledge is the own contribution. Its offer stays set aside until the instance is
	// committed or aborted.
	Pledge avantan.Contribution
	// Value is the value this site has accepted; nil before the vote. Its contributions
	// are R, fixed by the leader. A leader's own slice begins with a value.
	Value *avantan.Value
	// Committed is set once the instance has ended here with the value: the offer is gone.
	// The slice stays until all of R are known to have ended it.
	Committed bool
	// Concluded is set, with Committed, if the instance ended here without its outcome: a
	// member of R was written off, and no member left knew its vote. The lower of offer and
	// grant was credited.
	Concluded bool
}

// undecided reports whether the offer is still set aside.
func (s *Slice) undecided() bool { return !s.Committed }

// unvoted reports whether this site has yet to vote.
func (s *Slice) unvoted() bool { return s.Value == nil }

// hasInR reports whether a site is in R, as far as this site knows R.
func (s *Slice) hasInR(site avantan.SiteID) bool {
	if s.Value == nil {
		return false
	}
	_, in := s.Value.Of(site)
	return in
}

// State is the part of a Machine that must survive a crash. The caller stores it in one
// transaction with its own books whenever an Output says so, and hands it back to New
// after a restart.
type State struct {
	// Reserved is the last counter this site may have used as a leader. After a
	// restart it goes on above.
	Reserved uint64
	// Slices are the instances this site takes part in, ordered by ID, at most
	// Config.MaxSlices. At most one slice is without a vote.
	Slices []Slice
	// Floors hold, for each leader this site has ever pledged to, the last such
	// instance: a single tombstone a leader. An instance at or below its floor without
	// a slice is over here. Either this site has not accepted it and never will, or it
	// was aborted, or all of its R that are not written off have durably ended it. Ordered by
	// leader.
	Floors []ID
}

// Kind names a message.
type Kind uint8

const (
	// Election is a leader's Election-GetValue.
	Election Kind = iota + 1
	// ElectionOk offers a contribution, ElectionOk-Value, or declines to.
	ElectionOk
	// Busy says that the sender has yet to vote in another instance.
	Busy
	// Discard says that no value of the instance, or of any earlier instance of the
	// sender, holds the receiver, unless the receiver has accepted it already.
	Discard
	// Accept carries the value. The leader sends it as Accept-Value. A member of R that
	// has accepted the value sends it to ask for the outcome.
	Accept
	// AcceptOk says that the sender has accepted: Accept-ok.
	AcceptOk
	// Abort says that a member of R has voted aborted, so that no member may commit. A
	// site may also say it after it has forgotten an instance that all of R have
	// applied; no site is left that would act on it.
	Abort
	// Commit says that all of R have accepted: the paper's Decision. The receiver has
	// the value.
	Commit
	// Applied tells the leader that the sender has durably applied the value.
	Applied
	// Settled says that all of R have durably applied the value.
	Settled
	// Undecided answers a member of R that asks. The sender has accepted and knows no outcome.
	// Message.Lost are all members of R that it knows to be written off. It does not know the
	// votes of all of them, and never will.
	Undecided
	// Concluded says that all members of R that are not written off have said Undecided. Each
	// of them ends with the lower of its offer and its grant, as the sender has.
	Concluded
	// Ended says that the sender has durably ended the instance: it never asks about it.
	Ended
)

// Message is a message between the machines of two sites for the same sequence. The
// caller names the sequence (entity and generation) on the wire.
type Message struct {
	Kind     Kind
	From, To avantan.SiteID
	ID       ID
	// Press: Election.
	Press avantan.Press
	// Contribution: ElectionOk; nil if the sender takes no part.
	Contribution *avantan.Contribution
	// Value: Accept.
	Value *avantan.Value
	// Lost: Undecided. Ordered, each once, at least one.
	Lost []avantan.SiteID
}
