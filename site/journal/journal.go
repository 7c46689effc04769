package journal

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
)

// Options of a journal.
type Options struct {
	// Owner names the data for ever; segments of another owner are refused.
	Owner uint64
	// First are the operations for a base for which the log is begun.
	First []Op
	// ChunkBytes is about how many bytes a transaction of a checkpoint writes to the
	// base; 0: 256 KiB.
	ChunkBytes int
	// ReplayBytes is about how many bytes a transaction of Open writes to the base; 0:
	// 16 MiB.
	ReplayBytes int
	// MaxEntries is about how many keys the overlay of a replay may hold; at that bound
	// the replay writes it to the base. 0: 1,000,000. A key takes about 100 bytes.
	MaxEntries int
	// MaxCommit is the longest commit, in bytes; 0, or more than 1 GiB: 1 GiB.
	// Commits that are logged already may be longer.
	MaxCommit int
}

func (o Options) withDefaults() Options {
	o.ChunkBytes = cmp.Or(o.ChunkBytes, 256<<10)
	o.ReplayBytes = cmp.Or(o.ReplayBytes, 16<<20)
	o.MaxEntries = cmp.Or(o.MaxEntries, 1_000_000)
	if o.MaxCommit == 0 || o.MaxCommit > maxCommit {
		o.MaxCommit = maxCommit
	}
	return o
}

// Log is a log with its base: a Journal, or a log that other nodes of a site read as well
// (package replica). After an error of any method, only Close may follow.
type Log interface {
	// Append adds a commit and returns its number. It is durable once Sync has returned.
	Append(b *Batch) (Number, error)
	Sync() error
	// Confirm returns nil if nobody else can have appended to the log before the call.
	Confirm() error
	// Step carries the log over to the base, a bounded part a call, and reports whether
	// there is more to do.
	Step() (more bool, err error)
	// Failed returns the first error, Backlog the length of the log that is not in the
	// base, in bytes.
	Failed() error
	Backlog() int64
	Stats() Stats
	Close() error
}

var _ Log = (*Journal)(nil)

// Journal is an open log with its base. After an error of any method but Open, only
// Close may follow; Open finds every acknowledged commit.
//
// Append and Sync may be called while Step runs, and Sync while Append does. Two calls
// of the same method, or of Step and Close, may not be concurrent.
type Journal struct {
	dir     Dir
	base    Base
	options Options

	// syncing is held during a sync. It is taken before mu.
	syncing sync.Mutex
	mu      sync.Mutex
	current *segment
	next    Number
	durable Number
	// backlog is the length of the log that is not in the base, in bytes.
	backlog int64
	failed  error

	// through is the last commit that the base holds.
	through Number
	// sealed are the segments before the current one, oldest first.
	sealed []*segment
	// spare is a file to be used again; nil for none.
	spare      *segment
	checkpoint *checkpoint
}

// Stats describe a journal.
type Stats struct {
	// Number is the number of the last commit appended, Durable of the last commit
	// synced, Through of the last commit that the base holds.
	Number, Durable, Through Number
	// Backlog is the length of the log that is not in the base, in bytes.
	Backlog int64
}

// Append adds a commit to the log and returns its number. The commit is not durable
// before Sync.
func (j *Journal) Append(b *Batch) (Number, error) {
	if err := b.valid(j.options.MaxCommit); err != nil {
		return 0, fmt.Errorf("appending to the log: %w", err)
	}
	if b.Empty() {
		return 0, errors.New("appending to the log: the commit is empty")
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failed != nil {
		return 0, j.failed
	}
	n := j.next
	raw := seal(b.buf, j.current.seed, n, j.durable)
	b.buf = raw
	if err := j.current.write(raw); err != nil {
		return 0, j.fail(fmt.Errorf("appending to the log: %w", err))
	}
	j.next++
	j.backlog += int64(len(raw))
	return n, nil
}

// Sync makes all earlier commits durable.
func (j *Journal) Sync() error {
	j.syncing.Lock()
	defer j.syncing.Unlock()
	return j.sync()
}

// sync is Sync with syncing held.
func (j *Journal) sync() error {
	j.mu.Lock()
	current, last, err := j.current, j.next-1, j.failed
	done := err == nil && j.durable == last
	j.mu.Unlock()
	if err != nil || done {
		return err
	}
	err = current.sync()
	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil {
		return j.fail(err)
	}
	j.durable = last
	return nil
}

// Commit makes a commit durable.
func (j *Journal) Commit(b *Batch) error {
	if _, err := j.Append(b); err != nil {
		return err
	}
	return j.Sync()
}

// Confirm implements Log: the directory is this process's alone.
func (j *Journal) Confirm() error { return j.Failed() }

// fail notes the first error, with mu held.
func (j *Journal) fail(err error) error {
	j.failed = cmp.Or(j.failed, err)
	return j.failed
}

// Failed returns the error after which only Close may follow; nil for none.
func (j *Journal) Failed() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.failed
}

// Backlog returns Stats.Backlog.
func (j *Journal) Backlog() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.backlog
}

// Stats returns the journal's Stats.
func (j *Journal) Stats() Stats {
	j.mu.Lock()
	defer j.mu.Unlock()
	return Stats{Number: j.next - 1, Durable: j.durable, Through: j.through, Backlog: j.backlog}
}

// Close closes the files. It makes nothing durable and leaves the base as it is. To
// carry everything over, call Step first until there is no more to do.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if errors.Is(j.failed, errClosed) {
		return nil
	}
	j.failed = errClosed
	return j.closeFiles()
}

func (j *Journal) closeFiles() error {
	var errs []error
	for _, s := range append(j.sealed, j.current, j.spare) {
		if s != nil && s.file != nil {
			errs = append(errs, s.file.Close())
		}
	}
	j.sealed, j.current, j.spare = nil, nil, nil
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("closing the log: %w", err)
	}
	return nil
}
