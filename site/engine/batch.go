package engine

// A commit costs a sync of the disk, however many requests are in it. This file has the
// rules of batching: when a commit begins, and who does the work beside a commit. Figures
// are medians of four rounds on two busy processors, accurate to about 5 %: processor time
// of a request of 64 callers (BenchmarkEngineOne) and in 8 batches of 100
// (BenchmarkEngineStart), 10,000 entities, against the value here.

const (
	// mostGathered bounds the inputs handled beside a single commit. Later inputs wait in
	// the inbox, which is bounded. 1,024: the same, 5 % more in batches.
	mostGathered = 1 << 14 // inputs
	// mostYields bounds how often the committer puts off a commit for others to join. 0:
	// 47 % more and half the requests a commit, 10 % more in batches. 10: the same.
	mostYields = 3 // yields of the processor
	// worthACommit is the number of served requests that do not wait for others. A
	// single partition serves nothing: no figures.
	worthACommit = 1024 // requests
	// worthATurn is the number of waiting inputs that the goroutine which hands over the
	// last of them handles, so that little is left to do between two commits. 256: 10 %
	// more. Never: 3 % more in batches, and 7 % fewer requests a second.
	worthATurn = 32 // inputs
	// mostFinished bounds the replies that the committer itself gives. 0 or 4,096: no
	// difference beyond noise.
	mostFinished = 256 // replies
)

// load is the work of an engine at a moment, in inputs.
type load struct {
	// waiting are in the inbox, atParts at the partitions.
	waiting, atParts int
	// handled were handled since the last commit began, served are those of them that the
	// partitions served.
	handled, served int
	// answered is the number of replies of the last commit.
	answered int
}

// step is the committer's next step on the way to a commit.
type step uint8

const (
	// begin: the commit begins.
	begin step = iota
	// awaitParts: the inputs at the partitions are to be in the commit.
	awaitParts
	// yield: answered callers get the processor, to ask again.
	yield
)

// next is the committer's next step after some yields. Callers with a fresh answer ask
// again before the next commit begins, so that closed-loop callers share commits instead
// of taking turns in many. While fewer inputs have come than were answered last, the
// committer yields as long as new inputs come: more tells that some came since the last
// yield.
func (l *load) next(yields int, more bool) step {
	switch {
	case l.handled >= l.answered && l.atParts == 0, yields >= mostYields, yields > 0 && !more:
		return begin
	case l.unserved():
		return awaitParts
	default:
		return yield
	}
}

// unserved reports whether inputs at the partitions are worth to be waited for.
func (l *load) unserved() bool { return l.atParts > 0 && l.served < worthACommit }

// helps reports whether a goroutine that hands over inputs handles them beside a commit.
func (l *load) helps() bool { return l.waiting >= worthATurn }

// itself reports whether the committer lets the effects of its commit leave before it goes
// on, which saves waking the finisher. The batch must be small, and no earlier batch may
// still be leaving. Few inputs may wait for the next commit, so that it better begins
// after the answered callers have asked again.
func (l *load) itself(unfinished int) bool {
	return l.answered <= mostFinished && 2*(l.handled+l.waiting) < l.answered && unfinished == 0
}
