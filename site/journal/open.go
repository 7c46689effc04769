package journal

import (
	"errors"
	"fmt"
	"slices"
)

// Open carries over to the base all commits that the directory's log holds beyond it,
// and begins a new segment. For a base that has no number yet it begins the log, and
// carries out Options.First.
//
// If the log is damaged or foreign, the error is ErrDamaged or ErrForeign. The base
// then holds no more than the commits readable before the damage.
func Open(dir Dir, base Base, o Options) (*Journal, error) {
	j := &Journal{dir: dir, base: base, options: o.withDefaults()}
	if err := j.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the log: %w", err), j.closeFiles())
	}
	return j, nil
}

func (j *Journal) open() error {
	through, known, err := j.base.Through()
	if err != nil {
		return fmt.Errorf("reading the number of the base: %w", err)
	}
	firsts, err := j.list()
	if err != nil {
		return err
	}
	if !known {
		return j.start(firsts)
	}
	j.through = through
	// A segment is done with if its successor begins with the base's first missing
	// commit, or before.
	done := 0
	for i, first := range firsts {
		old := i+1 < len(firsts) && firsts[i+1] <= through+1
		s, err := open(j.dir, first, j.options.Owner)
		if s != nil {
			j.sealed = append(j.sealed, s)
		}
		if err != nil && (!old || !errors.Is(err, ErrDamaged)) {
			return err
		}
		if old {
			s.damaged = err != nil
			done++
		}
	}
	needed := j.sealed[done:]
	if len(needed) == 0 {
		return &DamageError{File: segmentName(through + 1), What: fmt.Errorf("%w: there is no such file", errMissing)}
	}
	if first := needed[0].first; first > through+1 {
		return &DamageError{File: needed[0].name, What: fmt.Errorf(
			"%w: it begins with commit %d, and the base ends with %d", errMissing, first, through)}
	}
	if last := needed[len(needed)-1]; last.mark.next != 0 {
		return &DamageError{File: segmentName(last.mark.next), What: fmt.Errorf(
			"%w: there is no such file, and %s says that it follows", errMissing, last.name)}
	}
	from, after, err := j.again(done)
	if err != nil {
		return err
	}
	last, err := j.replay(j.sealed[from:], after)
	if err != nil {
		return err
	}
	return j.goOn(last)
}

// again returns the segment and the commit after which the log is carried over; done
// segments are done with. It carries over again all commits of the base that the log
// still has. The earlier process may have failed to make the base durable, and then the
// system's cache has data that the disk does not have. Values are absolute, so only
// time is lost, as long as the log reaches to the base's last commit.
func (j *Journal) again(done int) (from int, after Number, err error) {
	for from = range done + 1 {
		whole, err := holds(j.sealed[from:], j.through)
		if err != nil {
			return 0, 0, err
		}
		if whole {
			return from, j.sealed[from].first - 1, nil
		}
	}
	return done, j.through, nil
}

// holds reports whether the segments have all commits from their first through the
// given number.
func holds(segments []*segment, through Number) (bool, error) {
	var r reader
	n := segments[0].first
	for i, s := range segments {
		if n > through {
			return true, nil
		}
		if s.damaged || s.first != n {
			return false, nil
		}
		r = reader{file: s.file, size: s.size, seed: s.seed, buf: r.buf[:0]}
		for at := int64(headerBytes); n <= through && (i+1 == len(segments) || n < segments[i+1].first); n++ {
			f, ok, err := r.frame(at)
			if err != nil {
				return false, fmt.Errorf("reading %s at %d: %w", s.name, at, err)
			}
			if !ok || f.number != n {
				return false, nil
			}
			at = f.next
		}
	}
	return n > through, nil
}

// list returns the first numbers of the segments in order. It takes up the spare file,
// and removes a file that was to become a segment.
func (j *Journal) list() ([]Number, error) {
	names, err := j.dir.List()
	if err != nil {
		return nil, fmt.Errorf("listing the directory: %w", err)
	}
	firsts := firstsOf(names)
	if slices.Contains(names, nameNew) {
		if err := j.dir.Remove(nameNew); err != nil {
			return nil, fmt.Errorf("removing %s: %w", nameNew, err)
		}
	}
	if slices.Contains(names, nameSpare) {
		if j.spare, err = openSpare(j.dir); err != nil {
			return nil, err
		}
	}
	return firsts, nil
}

// start begins a log. Segments found can only be left from a start that was cut off.
func (j *Journal) start(firsts []Number) error {
	for _, first := range firsts {
		s, err := open(j.dir, first, j.options.Owner)
		if s != nil {
			j.sealed = append(j.sealed, s)
		}
		if err != nil {
			return err
		}
		if err := s.unused(); err != nil {
			return err
		}
	}
	if err := j.goOn(0); err != nil {
		return err
	}
	if err := j.base.Apply(j.options.First, new(Number)); err != nil {
		return fmt.Errorf("writing to the base: %w", err)
	}
	return nil
}

// unused returns an error if a segment holds commits.
func (s *segment) unused() error {
	r := reader{file: s.file, size: s.size, seed: s.seed}
	_, ok, err := r.frame(headerBytes)
	if err != nil {
		return fmt.Errorf("reading %s: %w", s.name, err)
	}
	if ok || s.first != 1 {
		return &DamageError{File: s.name, Offset: headerBytes, What: fmt.Errorf(
			"%w: it holds commits, and the base to which they belong is gone", errMissing)}
	}
	return nil
}

// Unused returns an error if a directory holds a log with commits in it. A caller that
// finds no base checks this before making a base.
func Unused(dir Dir) error {
	j := &Journal{dir: dir}
	err := j.unused()
	if err != nil {
		err = fmt.Errorf("looking for a log: %w", err)
	}
	return errors.Join(err, j.closeFiles())
}

func (j *Journal) unused() error {
	names, err := j.dir.List()
	if err != nil {
		return fmt.Errorf("listing the directory: %w", err)
	}
	for _, name := range names {
		first, ok := firstOf(name)
		if !ok {
			continue
		}
		s, err := openAny(j.dir, first)
		if s != nil {
			j.sealed = append(j.sealed, s)
		}
		if err != nil {
			return err
		}
		if err := s.unused(); err != nil {
			return err
		}
	}
	return nil
}

// replay carries over all commits of the segments behind a given commit, and returns
// the number of the last commit found. The base has stored that number by then, even if
// there was nothing to carry over.
func (j *Journal) replay(segments []*segment, after Number) (Number, error) {
	s := newScan(segments, j.through, 0)
	s.through = after
	c := &carry{base: j.base, segments: segments, limit: j.options.ReplayBytes}
	for done := false; !done; {
		var err error
		if done, err = s.piece(); err != nil {
			return 0, err
		}
		if last := max(s.next-1, s.through); done || last > s.through && s.overlay.entries > j.options.MaxEntries {
			if err := s.settle(); err != nil {
				return 0, err
			}
			c.through, c.todo = last, s.overlay.operations()
			for written := false; !written; {
				if written, err = c.write(); err != nil {
					return 0, err
				}
			}
			s.overlay, s.through = newOverlay(), last
		}
	}
	return s.through, nil
}

// goOn begins the segment behind the last commit, and takes all others out of use.
func (j *Journal) goOn(last Number) error {
	segments := j.sealed
	j.sealed = nil
	var old []*segment
	for i, s := range segments {
		if s.first != last+1 {
			old = append(old, s)
			continue
		}
		// The segment holds nothing, or a commit that was cut off. Its name goes to the
		// new segment. Its file is not used again: its frames would count in the new
		// segment.
		if err := s.file.Close(); err != nil {
			j.sealed = append(old, segments[i+1:]...)
			return fmt.Errorf("closing %s: %w", s.name, err)
		}
	}
	j.sealed = old
	var err error
	spare := j.spare
	j.spare = nil
	if j.current, err = begin(j.dir, spare, j.options.Owner, last+1); err != nil {
		return err
	}
	j.sealed = nil
	j.next, j.durable, j.through = last+1, last, last
	return j.discard(old)
}
