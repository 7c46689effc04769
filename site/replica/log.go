package replica

import (
	"errors"
	"fmt"
	"sync"

	"github.com/samya-db/samya/site/journal"
)

// Errors of a log. They wrap more detail.
var (
	// ErrFenced: another node is active. The commit under way may be in the log or not.
	ErrFenced = errors.New("another node of the site is active")
	// ErrBehind: the log was trimmed beyond the node's data. The node needs a copy of
	// another node's base.
	ErrBehind = errors.New("the log does not reach back to the data of this node")
	// ErrLost: the store lacks commits that this node has. It was restored from an older
	// copy, or is another store.
	ErrLost = errors.New("the store of the log lacks commits that this node has")
	// errClosed: the log is closed.
	errClosed = errors.New("the log is closed")
	// errFollows: the node is not active, and appends nothing of its own.
	errFollows = errors.New("this node is not active")
)

// Options of a log. All fields up to Wait are needed.
type Options struct {
	KV   KV
	Keys Keys
	// Node is the name of the node, unique among the nodes of the site.
	Node string
	// Origin is the origin of the log; see Found.
	Origin Origin
	// Wait is called before each repetition of a call to the store. It returns an error if
	// the log is to be given up. attempt counts the repetitions from 1.
	Wait func(attempt int, failure error) error
	// Spans keeps the runs of the node's commits. Without it, the node does not notice
	// another commit in the place of its last commit in the store.
	Spans Spans
	// PartBytes is the longest piece of a commit in a key; 0: 1 MiB. etcd takes 1.5 MiB a
	// request.
	PartBytes int
	// Stalled, if not nil, is told when a call has to be repeated, with its error, and with
	// nil once the store has answered again.
	Stalled func(failure error)
}

// partBytes is the default of Options.PartBytes, maxParts the most parts of a commit.
const (
	partBytes = 1 << 20
	maxParts  = 1 << 10
)

// Log is the log of a site at one of its nodes, with the node's own log and base behind it.
// It follows the commits of another node, or appends commits of its own once it leads.
//
// Append, Sync, Confirm, Follow and Lead may not be concurrent with each other, but with
// all else.
type Log struct {
	o     Options
	local *journal.Journal

	// pending are commits that are appended and not in the store. Their memory is used again.
	pending []journal.Batch
	waiting int
	buf     []byte
	spans   []Span
	// lastRun is the run of the last commit; 0 if it is not known.
	lastRun uint64
	copied  journal.Batch

	mu     sync.Mutex
	term   int64
	run    uint64
	last   journal.Number // the last commit known to be in the store
	bytes  int64          // length of the commits since the log was opened
	failed error
	// cause is why the present call is being repeated; nil if the store answers.
	cause error
}

var _ journal.Log = (*Log)(nil)

// New returns the log of a node that follows. The local log may hold no commit that the
// store did not have. Its error is that of Options.Spans.
func New(local *journal.Journal, o Options) (*Log, error) {
	if o.PartBytes == 0 {
		o.PartBytes = partBytes
	}
	l := &Log{o: o, local: local, last: local.Stats().Number}
	if o.Spans != nil {
		var err error
		if l.spans, err = o.Spans.Load(); err != nil {
			return nil, fmt.Errorf("reading the runs of the node's commits: %w", err)
		}
		l.lastRun = runOf(l.spans, l.last)
	}
	return l, nil
}

// Append keeps a commit for Sync.
func (l *Log) Append(b *journal.Batch) (journal.Number, error) {
	l.mu.Lock()
	term, last, failed := l.term, l.last, l.failed
	l.mu.Unlock()
	switch {
	case failed != nil:
		return 0, failed
	case term == 0:
		return 0, l.fail(errFollows)
	}
	if err := b.Err(); err != nil {
		return 0, fmt.Errorf("appending to the log: %w", err)
	}
	if most := l.o.PartBytes * maxParts; b.Len() > most {
		return 0, fmt.Errorf("appending to the log: a commit has %d bytes, at most %d are possible", b.Len(), most)
	}
	if l.waiting == len(l.pending) {
		l.pending = append(l.pending, journal.Batch{})
	}
	if err := l.pending[l.waiting].Set(b.Payload()); err != nil {
		return 0, fmt.Errorf("appending to the log: %w", err)
	}
	l.waiting++
	return last + journal.Number(l.waiting), nil
}

// Sync puts all appended commits into the store, one after the other. It returns once they
// are there, or never can be.
func (l *Log) Sync() error {
	for i := range l.waiting {
		if err := l.put(&l.pending[i]); err != nil {
			l.waiting = 0
			return l.fail(err)
		}
	}
	l.waiting = 0
	return l.Failed()
}

// put puts a commit into the store, and then into the local log.
func (l *Log) put(b *journal.Batch) error {
	l.mu.Lock()
	r, n := record{term: l.term, run: l.run}, l.last+1
	l.mu.Unlock()
	payload := b.Payload()
	r.before, r.length = l.lastRun, len(payload)
	r.sum = r.sumOf(n, payload)
	if len(payload) <= l.o.PartBytes {
		r.payload = payload
	} else {
		for from := 0; from < len(payload); from += l.o.PartBytes {
			if err := l.putPart(n, r.term, r.parts, payload[from:min(from+l.o.PartBytes, len(payload))]); err != nil {
				return err
			}
			r.parts++
		}
	}
	l.buf = r.encode(l.buf[:0])
	done, err := l.do(&Txn{
		If:   []Guard{{l.o.Keys.leader(), r.term}, {l.o.Keys.commit(n - 1), Present}, {l.o.Keys.commit(n), Absent}},
		Then: []Change{{Key: l.o.Keys.commit(n), Value: l.buf}},
		Else: []string{l.o.Keys.leader(), l.o.Keys.commit(n)},
	})
	if err != nil {
		return err
	}
	if !done.Held {
		if err := l.taken(done, n, &r); err != nil {
			return err
		}
	}
	return l.keep(n, r.run, b)
}

// taken judges a commit that a guard refused: an earlier repetition has put it, or the node
// is not active any more.
func (l *Log) taken(done *Done, n journal.Number, r *record) error {
	if leader, _ := done.found(l.o.Keys.leader()); leader.Rev != r.term {
		return fmt.Errorf("%w: its term is %d, that of this node %d", ErrFenced, leader.Rev, r.term)
	}
	e, ok := done.found(l.o.Keys.commit(n))
	if !ok {
		return fmt.Errorf("%w: commit %d has no predecessor there", ErrLost, n)
	}
	there, err := decode(n, e.Value)
	if err != nil {
		return err
	}
	if there.term != r.term || there.run != r.run || there.sum != r.sum || there.length != r.length {
		return fmt.Errorf("%w: commit %d of term %d is another", ErrLost, n, there.term)
	}
	return nil
}

// putPart puts a piece of a long commit into the store. It counts only once the commit has.
func (l *Log) putPart(n journal.Number, term int64, i int, piece []byte) error {
	done, err := l.do(&Txn{
		If:   []Guard{{l.o.Keys.leader(), term}},
		Then: []Change{{Key: l.o.Keys.part(n, term, i), Value: piece}},
		Else: []string{l.o.Keys.leader()},
	})
	if err == nil && !done.Held {
		leader, _ := done.found(l.o.Keys.leader())
		err = fmt.Errorf("%w: its term is %d, that of this node %d", ErrFenced, leader.Rev, term)
	}
	return err
}

// keep appends a commit of a run that is in the store to the local log. Nobody waits for the
// disk.
func (l *Log) keep(n journal.Number, run uint64, b *journal.Batch) error {
	if err := l.span(n, run); err != nil {
		return err
	}
	length := int64(b.Len())
	got, err := l.local.Append(b)
	if err != nil {
		return err
	}
	if got != n {
		return fmt.Errorf("%w: commit %d is number %d in the local log", ErrLost, n, got)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last, l.lastRun = n, run
	l.bytes += length
	return nil
}

// Commit makes a commit durable.
func (l *Log) Commit(b *journal.Batch) error {
	if _, err := l.Append(b); err != nil {
		return err
	}
	return l.Sync()
}

// Confirm returns nil if the node was active at a moment after the call. What a node says
// without a commit rests on it.
func (l *Log) Confirm() error {
	term := l.Term()
	if err := l.Failed(); err != nil || term == 0 {
		return errors.Join(err, l.following(term))
	}
	// A transaction without changes is a linearizable read. The last commit is there, unless
	// the store was restored from an older copy.
	last := l.Last()
	done, err := l.do(&Txn{
		If:   []Guard{{l.o.Keys.leader(), term}, {l.o.Keys.commit(last), Present}},
		Else: []string{l.o.Keys.leader()},
	})
	if err == nil && !done.Held {
		err = fmt.Errorf("%w: it lacks commit %d", ErrLost, last)
		if leader, _ := done.found(l.o.Keys.leader()); leader.Rev != term {
			err = fmt.Errorf("%w: its term is %d, that of this node %d", ErrFenced, leader.Rev, term)
		}
	}
	if err != nil {
		return l.fail(err)
	}
	return nil
}

func (l *Log) following(term int64) error {
	if term == 0 {
		return errFollows
	}
	return nil
}

// do carries out a transaction, and repeats it until the store answers. Every transaction
// of this package is harmless if it is repeated.
func (l *Log) do(t *Txn) (*Done, error) {
	for attempt := 1; ; attempt++ {
		done, err := l.o.KV.Do(t)
		if err == nil {
			l.answered()
			return done, nil
		}
		if err := l.again(attempt, err); err != nil {
			return nil, err
		}
	}
}

// read is KV.Read, repeated until the store answers.
func (l *Log) read(from, to string, limit int) ([]Entry, error) {
	for attempt := 1; ; attempt++ {
		entries, err := l.o.KV.Read(from, to, limit)
		if err == nil {
			l.answered()
			return entries, nil
		}
		if err := l.again(attempt, err); err != nil {
			return nil, err
		}
	}
}

// again waits before a call is repeated.
func (l *Log) again(attempt int, failure error) error {
	l.mu.Lock()
	l.cause = failure
	failed := l.failed
	l.mu.Unlock()
	if failed != nil {
		return failed
	}
	if l.o.Stalled != nil {
		l.o.Stalled(failure)
	}
	if err := l.o.Wait(attempt, failure); err != nil {
		return fmt.Errorf("waiting for the store of the log (%w): %w", failure, err)
	}
	return nil
}

func (l *Log) answered() {
	l.mu.Lock()
	stalled := l.cause != nil
	l.cause = nil
	l.mu.Unlock()
	if stalled && l.o.Stalled != nil {
		l.o.Stalled(nil)
	}
}

// fail notes the first error; only Close may follow.
func (l *Log) fail(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed == nil {
		l.failed = err
	}
	return l.failed
}

// Failed returns the error after which only Close may follow; nil for none.
func (l *Log) Failed() error {
	l.mu.Lock()
	err := l.failed
	l.mu.Unlock()
	if err != nil {
		return err
	}
	return l.local.Failed()
}

// Term returns the node's term; 0 while it follows.
func (l *Log) Term() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.term
}

// Last returns the number of the last commit that is known to be in the store.
func (l *Log) Last() journal.Number {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// Step carries the local log over to the base; see [journal.Journal.Step].
func (l *Log) Step() (more bool, err error) { return l.local.Step() }

// Backlog returns the length of the local log that is not in the base, in bytes.
func (l *Log) Backlog() int64 { return l.local.Backlog() }

// Stats returns the local log's Stats. Commits in the store are durable: Durable is the
// last of them.
func (l *Log) Stats() journal.Stats {
	s := l.local.Stats()
	s.Durable = max(s.Durable, l.Last())
	return s
}

// Close closes the local log. A call to the store that is being repeated ends.
func (l *Log) Close() error {
	_ = l.fail(errClosed)
	return l.local.Close()
}
