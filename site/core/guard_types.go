package core

import "fmt"

// Incarnation is the random id that a site's data was given when it was made;
// never 0.
type Incarnation uint64

// Run is the random id of one start of a site; never 0 where a site is guarded.
type Run uint64

// Commits counts the transactions that have changed what a site holds, over
// all runs on the same data. What it remembers of others does not count.
type Commits uint64

// Mark says how far a site's data has come.
type Mark struct {
	Incarnation Incarnation
	Run         Run
	Commits     Commits
}

// Remembered is what a site durably remembers of another's data.
type Remembered struct {
	Site SiteID
	// Mark is the latest that Site has told, in the last run vouched for.
	Mark Mark
	// Before is the run vouched for before that one; 0 for none. What is late of
	// it is still taken.
	Before Run
	// Served: it has told of a commit since, so enough members vouched for that
	// incarnation, and it has something to lose. One that never did is empty or was
	// started on the wrong data, and gives way to another.
	Served bool
}

// VouchKind names the messages about a site's own data.
type VouchKind uint8

const (
	// VouchAsk: is Asked, the sender's data at its start, the latest?
	VouchAsk VouchKind = iota + 1
	// VouchYes: the receiver's data, Asked, is remembered, and no later one.
	VouchYes
	// VouchNo: the sender remembers Known of the receiver, which Asked is not.
	VouchNo
	// VouchWho: the sender has not vouched for the receiver's run, and takes
	// nothing from it before it is asked to.
	VouchWho
	// VouchTell: nothing but the mark that goes with every message.
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
	// By is the member that remembers Known; Mine is what the data says.
	By          SiteID
	Mine, Known Mark
}

// Error says what is wrong with the data.
func (e *StaleError) Error() string {
	if e.Mine.Incarnation != e.Known.Incarnation {
		return fmt.Sprintf("it is not the data that this site had: site %q remembers incarnation %016x at commit %d, this is %016x at commit %d",
			e.By, uint64(e.Known.Incarnation), e.Known.Commits, uint64(e.Mine.Incarnation), e.Mine.Commits)
	}
	return fmt.Sprintf("it is an older copy: site %q remembers commit %d of it, it stands at commit %d",
		e.By, e.Known.Commits, e.Mine.Commits)
}
