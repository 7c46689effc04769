package journal

import (
	"errors"
	"fmt"
)

// scan reads consecutive segments into an overlay.
type scan struct {
	segments []*segment
	// ends are the numbers that the segments end before; 0 for a last segment that may
	// end anywhere.
	ends []Number
	// through is the last commit carried over: the scan reads commits up to it and
	// leaves them out. held is the commit that the base told at first, which needs no
	// proof.
	through, held Number
	// next is the number of the next frame, expected at an offset of segment i.
	next    Number
	i       int
	at      int64
	reader  reader
	overlay *overlay
	// doubtful holds the places of frames in the present segment, from number
	// doubtfulFrom on, that no frame read so far says to be durable.
	doubtful     []int64
	doubtfulFrom Number
}

// pieceBytes is about how many bytes of the log a piece of a scan reads.
const pieceBytes = 1 << 20

// newScan scans segments up to the commit before end; 0 for wherever the last segment
// ends.
func newScan(segments []*segment, through, end Number) *scan {
	s := &scan{segments: segments, through: through, held: through, overlay: newOverlay(), i: -1}
	for i := range segments[1:] {
		s.ends = append(s.ends, segments[i+1].first)
	}
	s.ends = append(s.ends, end)
	s.next = segments[0].first
	s.enter()
	return s
}

// enter goes on to the next segment and reports whether there is one.
func (s *scan) enter() bool {
	s.i++
	if s.i == len(s.segments) {
		return false
	}
	g := s.segments[s.i]
	s.at = headerBytes
	s.doubtful, s.doubtfulFrom = s.doubtful[:0], s.next
	s.reader = reader{file: g.file, size: g.size, seed: g.seed, buf: s.reader.buf[:0]}
	return true
}

// piece reads a part and reports whether the scan is complete.
func (s *scan) piece() (done bool, err error) {
	for left := int64(pieceBytes); left > 0; {
		g := s.segments[s.i]
		if s.next == s.ends[s.i] {
			g.end = s.at
			if !s.enter() {
				return true, nil
			}
			continue
		}
		f, ok, err := s.reader.frame(s.at)
		if err != nil {
			return false, fmt.Errorf("reading %s at %d: %w", g.name, s.at, err)
		}
		if !ok || f.number != s.next {
			g.end = s.at
			return true, s.judge()
		}
		if s.next > s.through {
			if err := s.take(f); err != nil {
				return false, &DamageError{File: g.name, Offset: s.at, What: err}
			}
		}
		s.doubt(f)
		left -= f.next - s.at
		s.at = f.next
		s.next++
	}
	return false, nil
}

// take adds a frame's operations to the overlay.
func (s *scan) take(f frame) error {
	for rest := f.payload; len(rest) > 0; {
		op, behind, err := next(rest)
		if err != nil {
			return err
		}
		s.overlay.add(op, s.i, f.at+int64(len(f.payload)-len(behind)-len(op.Value)))
		rest = behind
	}
	return nil
}

// doubt notes the place of a frame, and forgets the frames that it says to be durable.
func (s *scan) doubt(f frame) {
	if known := f.durable + 1; known > s.doubtfulFrom {
		n := min(int(known-s.doubtfulFrom), len(s.doubtful))
		s.doubtful = append(s.doubtful[:0], s.doubtful[n:]...)
		s.doubtfulFrom = known
	}
	s.doubtful = append(s.doubtful, s.at)
}

// settle makes durable all frames read so far. A process that ended may have left
// frames that can be read but are not on the disk, even after a failed sync of its own.
// settle writes these frames again.
func (s *scan) settle() error {
	if s.i == len(s.segments) || len(s.doubtful) == 0 {
		return nil // the next segment was begun when all frames here were durable
	}
	g, from := s.segments[s.i], s.doubtful[0]
	for from < s.at {
		b, err := s.reader.bytes(from, min(s.at-from, readAhead))
		if err == nil {
			_, err = g.file.WriteAt(b, from)
		}
		if err != nil {
			return fmt.Errorf("writing the end of %s again: %w", g.name, err)
		}
		from += int64(len(b))
	}
	s.doubtful, s.doubtfulFrom = s.doubtful[:0], s.next
	return g.sync()
}

var errMissing = errors.New("what was acknowledged is missing")

// judge returns an error if a crash cannot have left the log to end here.
func (s *scan) judge() error {
	g := s.segments[s.i]
	if end := s.ends[s.i]; end != 0 {
		return &DamageError{File: g.name, Offset: s.at, What: fmt.Errorf(
			"%w: commit %d is not valid, and the segment has to reach to %d", errMissing, s.next, end-1)}
	}
	need := max(s.next, s.held+1)
	// A frame takes more than its head, so that numbers cannot be higher.
	highest := s.next + Number(g.size/frameBytes)
	at, found, err := s.reader.search(s.at, func(number, durable Number) bool {
		return number <= highest && (durable >= need || s.next <= s.held && number > s.held)
	})
	if err != nil {
		return fmt.Errorf("reading %s: %w", g.name, err)
	}
	if found {
		return &DamageError{File: g.name, Offset: s.at, What: fmt.Errorf(
			"%w: commit %d is not valid, and byte %d shows that it was durable", errMissing, s.next, at)}
	}
	return nil
}
