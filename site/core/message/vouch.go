package message

import (
	"github.com/samya-db/samya/avantan"
)

// Incarnation is the random id given to a site's data at its creation; never 0.
type Incarnation uint64

// Run is the random id of a start of a site; never 0 where a site is fenced.
type Run uint64

// Commits counts the transactions that have changed a site's data, over all runs on the
// same data. Changes of its memory of other sites do not count.
type Commits uint64

// Mark is the state of a site's data.
type Mark struct {
	Incarnation Incarnation
	Run         Run
	Commits     Commits
}

// VouchKind names the messages about a site's own data.
type VouchKind uint8

const (
	// VouchAsk: is Asked, the sender's data at its start, the latest?
	VouchAsk VouchKind = iota + 1
	// VouchYes: the sender remembers Asked, the receiver's data, and no later data.
	VouchYes
	// VouchNo: the sender remembers Known of the receiver, and Asked is not Known.
	VouchNo
	// VouchWho: the sender has not vouched for the receiver's run, and takes nothing from
	// the receiver before it is asked to vouch.
	VouchWho
	// VouchTell has only the mark that every message has.
	VouchTell
	// VouchNothing: the sender remembers nothing of Asked. It does not serve, or joined
	// later, so its word does not count.
	VouchNothing
)

// Vouch is a message about a site's own data.
type Vouch struct {
	Kind     VouchKind
	From, To avantan.SiteID
	Asked    Mark
	Known    Mark
	// Members is the number of members that the sender knows of, once it has changed; 0
	// before. An older copy of the receiver's data may know of fewer. In VouchNothing it is
	// 0 unless the sender is vouched for itself and joined later: 1 if the sender joins, and
	// does not know that it is a member.
	Members int
	// Out are the sites that have no place in the cluster any more, as the sender knows, in
	// the order of their names: with Members.
	Out []avantan.SiteID
}
