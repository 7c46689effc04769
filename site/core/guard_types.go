package core

import (
	"fmt"
)

// Incarnation is the random id given to a site's data at its creation; never 0.
type Incarnation uint64

// Run is the random id of a start of a site; never 0 where a site is guarded.
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

// Remembered is a site's durable memory of another site's data.
type Remembered struct {
	Site SiteID
	// Mark is the latest mark that Site has told, in the last run vouched for.
	Mark Mark
	// Before is the run vouched for before that run; 0 for none. Its late messages are
	// still taken.
	Before Run
	// Served says that Site has told of a commit since: enough members vouched for that
	// incarnation, and it has something to lose. A site that never did is empty or was
	// started on the wrong data, and gives way to another incarnation.
	Served bool
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
	// VouchNothing: the sender remembers nothing of Asked and does not serve, so
	// its word does not count.
	VouchNothing
)

// Vouch is a message about a site's own data.
type Vouch struct {
	Kind     VouchKind
	From, To SiteID
	Asked    Mark
	Known    Mark
}

// StaleError says that a site was started on data that is not its latest.
type StaleError struct {
	// By is the member that remembers Known; Mine is the mark of the data.
	By          SiteID
	Mine, Known Mark
}

// Error describes the fault of the data.
func (e *StaleError) Error() string {
	if e.Mine.Incarnation != e.Known.Incarnation {
		return fmt.Sprintf("it is not the data that this site had: site %q remembers incarnation %016x at commit %d, this is %016x at commit %d",
			e.By, uint64(e.Known.Incarnation), e.Known.Commits, uint64(e.Mine.Incarnation), e.Mine.Commits)
	}
	return fmt.Sprintf("it is an older copy: site %q remembers commit %d of it, it stands at commit %d",
		e.By, e.Known.Commits, e.Mine.Commits)
}
