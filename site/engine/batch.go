package engine

import "time"

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
	// worthACommit is the number of served requests that do not wait for others. At two
	// partitions (BenchmarkEngineParted) 0: 21 % more in batches, and 8 % fewer requests a
	// second. No bound: the same.
	worthACommit = 1024 // requests
	// worthATurn is the number of waiting inputs that the goroutine which hands over the
	// last of them handles, so that little is left to do between two commits. 256: 10 %
	// more. Never: 3 % more in batches, and 7 % fewer requests a second.
	worthATurn = 32 // inputs
	// mostFinished bounds the replies that the committer itself gives. 0 or 4,096: no
	// difference beyond noise.
	mostFinished = 256 // replies
	// mostFlushed bounds the streams whose answers are sent by the goroutine that finishes a
	// commit. It takes about 20 µs for each, in which the next commit may wait. With a single
	// stream of 64 callers, 0: 12 % more at the site and at the client.
	mostFlushed = 2 // streams
	// worthHolding is the shortest commit worth a wait for answered callers: with a log in
	// etcd, or a slow disk. A fast disk is done before a caller of another process has asked
	// again. In requests a second (BenchmarkEngineSlow): 0: 26 % fewer over commits of 0.5 and
	// 1 ms. Never: 25 % fewer over 4 ms, 41 % over 32 ms.
	worthHolding = 2 * time.Millisecond
	// mostHeld bounds the wait after a commit of a store that stalled: the next commit may
	// be a usual one. 4 ms: 8 to 15 % more requests a second over commits of 16 and 32 ms, but
	// over 4 ms 18 % fewer if callers are back after 1.5 ms and not 0.2. 64 ms: 9 % fewer.
	mostHeld = 16 * time.Millisecond
	// looks is how often the committer looks at most, in the time of a commit, whether
	// answered callers come back. With a log in etcd, in turns with no wait at all: 64
	// callers ask 40 % more a second, and 1,024, who keep the processors busy, 0 to 15 %
	// more. 16: the same.
	looks = 8
	// firstLook is the time until the first look: answers and new requests are on their
	// way. 1: 64 callers ask 5 % less, 1,024 ask 4 % less.
	firstLook = 2 // looks
)

// committed is a commit that is over.
type committed struct {
	// answered is the number of its replies, beside the number of inputs that came while
	// it was under way.
	answered, beside int
	took             time.Duration
	ended            time.Time
}

// load is the work of an engine at a moment, in inputs.
type load struct {
	// waiting are in the inbox, atParts at the partitions.
	waiting, atParts int
	// handled were handled since the last commit began, served are those of them that the
	// partitions served.
	handled, served int
	// committed is the last commit.
	committed
}

// all are the inputs that the next commit may have.
func (l *load) all() int { return l.handled + l.waiting }

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

// hold is how long the committer puts off a commit from now on; 0: the commit begins.
// Answered callers ask again at once. A commit without them costs them two commits, and
// closed-loop callers fall into two halves that wait for each other. While answered callers
// come back, inputs come faster than during the last commit. At the same rate as then,
// nobody waits for answers, and a delay gains nothing. since is the time since the end of
// the last commit. before are all inputs at the last look, -1 if there was none.
func (l *load) hold(since time.Duration, before int) time.Duration {
	all, most := l.all(), min(l.took, mostHeld)
	came, look := all-before, most/looks
	switch {
	case l.took < worthHolding, all == 0, since >= most, all-l.beside >= l.answered:
		return 0
	case before >= 0 && (came == 0 || time.Duration(came)*l.took < time.Duration(l.beside)*look):
		return 0
	}
	if before < 0 {
		return firstLook * look
	}
	return look
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
