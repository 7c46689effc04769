package replica

import (
	"errors"
	"fmt"

	"github.com/samya-db/samya/site/journal"
)

// followed is how many commits Follow reads at once by default.
const followed = 256

// Follow takes the next commits from the store into the local log, at most limit, or 256 if
// limit is 0, and reports whether there may be more. The node must not be active. Errors
// are ErrBehind, ErrLost and errors of the disk.
func (l *Log) Follow(limit int) (more bool, err error) {
	if limit == 0 {
		limit = followed
	}
	last := l.Last()
	if last < l.o.Origin.After {
		return false, l.fail(fmt.Errorf("%w: it begins behind commit %d, this node has commit %d", ErrBehind, l.o.Origin.After, last))
	}
	// From the last commit of its own on, which is there unless the log was trimmed or is
	// another log.
	from, to := l.o.Keys.commits(max(last, 1))
	entries, err := l.read(from, to, limit+1)
	if err != nil {
		return false, err
	}
	if len(entries) == 0 && last > l.o.Origin.After {
		return false, l.fail(fmt.Errorf("%w: it has none, this node has commit %d", ErrLost, last))
	}
	if len(entries) > 0 {
		if err := l.compare(entries[0]); err != nil {
			return false, l.fail(err)
		}
	}
	for _, e := range entries {
		if err := l.take(e); err != nil {
			return false, l.fail(err)
		}
	}
	return len(entries) > limit, nil
}

// take appends a commit of the store to the local log, unless the local log has the commit.
func (l *Log) take(e Entry) error {
	n, ok := l.o.Keys.number(e.Key)
	last := l.Last()
	switch {
	case !ok:
		return fmt.Errorf("%w: key %.100q", errRecord, e.Key)
	case n <= last:
		return nil
	case n != last+1:
		return fmt.Errorf("%w: it begins with commit %d, this node has commit %d", ErrBehind, n, last)
	}
	payload, run, err := l.payload(n, e.Value)
	if err != nil {
		return err
	}
	if err := l.copied.Set(payload); err != nil {
		return fmt.Errorf("%w: commit %d: %w", errRecord, n, err)
	}
	return l.keep(n, run, &l.copied)
}

// payload returns a commit and its run by its record.
func (l *Log) payload(n journal.Number, value []byte) ([]byte, uint64, error) {
	r, err := decode(n, value)
	if err == nil && r.parts > 0 {
		r.payload, err = l.parted(n, &r)
	}
	return r.payload, r.run, err
}

// parted returns a commit that stands in parts.
func (l *Log) parted(n journal.Number, r *record) ([]byte, error) {
	from := l.o.Keys.part(n, r.term, 0)
	parts, err := l.read(from, l.o.Keys.part(n, r.term, r.parts), r.parts)
	if err != nil {
		return nil, err
	}
	if len(parts) != r.parts {
		// They may have been trimmed since the record was read, and the record with them.
		key := l.o.Keys.commit(n)
		there, err := l.read(key, key+"\x00", 1)
		if err == nil && len(there) == 0 {
			err = fmt.Errorf("%w: commit %d was trimmed meanwhile", ErrBehind, n)
		}
		if err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%w: commit %d has %d of %d parts", errRecord, n, len(parts), r.parts)
	}
	var payload []byte
	for _, p := range parts {
		payload = append(payload, p.Value...)
	}
	return payload, r.check(n, payload)
}

// Behind reports whether the store has no commits that follow on this node's commits.
func Behind(err error) bool { return errors.Is(err, ErrBehind) }
