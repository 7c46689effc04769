package journal

import (
	"fmt"
	"slices"
)

// checkpoint is a checkpoint under way: first scan is set, then carry, then neither.
type checkpoint struct {
	// through is the last commit that the checkpoint carries over.
	through  Number
	segments []*segment
	scan     *scan
	carry    *carry
}

// Step does the next part of a checkpoint. It begins a checkpoint if none is under way
// and there is something to carry over. It reports whether there is more to do. A part
// is bounded: beginning a segment, reading a piece of the log, or a single transaction
// of the base.
func (j *Journal) Step() (more bool, err error) {
	if err := j.Failed(); err != nil {
		return false, err
	}
	if more, err = j.step(); err != nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		return false, j.fail(fmt.Errorf("carrying the log over: %w", err))
	}
	return more, nil
}

func (j *Journal) step() (bool, error) {
	c := j.checkpoint
	switch {
	case c == nil:
		return j.beginCheckpoint()
	case c.scan != nil:
		done, err := c.scan.piece()
		if err != nil || !done {
			return true, err
		}
		c.carry = &carry{
			base: j.base, segments: c.segments, through: c.through, limit: j.options.ChunkBytes,
			todo: c.scan.overlay.operations(),
		}
		c.scan = nil
		return true, nil
	case c.carry != nil:
		done, err := c.carry.write()
		if done {
			c.carry = nil
		}
		return true, err
	default:
		j.checkpoint = nil
		return false, j.retire(c)
	}
}

// beginCheckpoint seals the current segment, unless nothing was logged.
func (j *Journal) beginCheckpoint() (begun bool, err error) {
	j.syncing.Lock()
	defer j.syncing.Unlock()
	if err := j.sync(); err != nil {
		return false, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failed != nil {
		return false, j.failed
	}
	// Later commits must be durable before the next segment is there.
	if j.durable != j.next-1 {
		if err := j.current.sync(); err != nil {
			return false, j.fail(err)
		}
		j.durable = j.next - 1
	}
	if j.through == j.durable {
		return false, nil
	}
	s, err := begin(j.dir, j.spare, j.options.Owner, j.next)
	j.spare = nil
	before := j.current
	if s != nil {
		j.sealed, j.current = append(j.sealed, before), s
	}
	if err == nil {
		err = before.followed(j.next)
	}
	if err != nil {
		return false, j.fail(err)
	}
	j.checkpoint = &checkpoint{
		through: j.durable, segments: slices.Clip(j.sealed),
		scan: newScan(j.sealed, j.through, j.next),
	}
	return true, nil
}

// retire takes the segments of a complete checkpoint out of use.
func (j *Journal) retire(c *checkpoint) error {
	length := int64(0)
	for _, s := range c.segments {
		length += s.end - headerBytes
	}
	j.mu.Lock()
	j.through = c.through
	j.backlog -= length
	j.sealed = nil
	j.mu.Unlock()
	return j.discard(c.segments)
}

// discard keeps a segment's file for the next segment, unless there is a spare file,
// and removes the others.
func (j *Journal) discard(segments []*segment) error {
	for _, s := range segments {
		if j.spare == nil {
			if err := j.dir.Rename(s.name, nameSpare); err != nil {
				return fmt.Errorf("setting %s aside: %w", s.name, err)
			}
			s.name, j.spare = nameSpare, s
			continue
		}
		if err := s.file.Close(); err != nil {
			return fmt.Errorf("closing %s: %w", s.name, err)
		}
		if err := j.dir.Remove(s.name); err != nil {
			return fmt.Errorf("removing %s: %w", s.name, err)
		}
	}
	if err := j.dir.Sync(); err != nil {
		return fmt.Errorf("making the names of the log durable: %w", err)
	}
	return nil
}
