package journal

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

const (
	namePrefix = "journal-"
	// nameNew is the name of a file that is to become a segment, nameSpare of a former
	// segment's file.
	nameNew   = "journal-new"
	nameSpare = "journal-spare"

	// Files grow by their own length within these bounds.
	growLeast = 64 << 10
	growMost  = 1 << 20
)

func segmentName(first Number) string { return fmt.Sprintf("%s%016x", namePrefix, uint64(first)) }

// firstOf returns the first number of the segment of a name.
func firstOf(name string) (first Number, ok bool) {
	hex, found := strings.CutPrefix(name, namePrefix)
	if !found || len(hex) != 16 {
		return 0, false
	}
	n, err := strconv.ParseUint(hex, 16, 64)
	return Number(n), err == nil && segmentName(Number(n)) == name
}

// firstsOf returns the first numbers of the segments among names, in order.
func firstsOf(names []string) []Number {
	var firsts []Number
	for _, name := range names {
		if first, ok := firstOf(name); ok {
			firsts = append(firsts, first)
		}
	}
	slices.Sort(firsts)
	return firsts
}

// segment is an open file of the log.
type segment struct {
	name  string
	first Number
	file  File
	owner uint64
	seed  uint32
	// size is the length of the file, end the place of the next frame.
	size, end int64
	// mark is the mark in the header; zero for a file without a mark.
	mark mark
	// damaged is set if the segment cannot be read and is not needed.
	damaged bool
}

var zeros [growLeast]byte

// write puts a frame at the end. A file that is too short grows first: its new size is
// durable, and then noted in the mark, before any frame counts on it. The sync that
// makes a frame durable makes the mark durable as well.
func (s *segment) write(b []byte) error {
	if s.size < s.end+int64(len(b)) {
		if err := s.extend(s.end + int64(len(b))); err != nil {
			return err
		}
		if err := s.sync(); err != nil {
			return err
		}
		if err := s.remark(mark{size: s.size, next: s.mark.next}); err != nil {
			return err
		}
	}
	if _, err := s.file.WriteAt(b, s.end); err != nil {
		return fmt.Errorf("writing %d bytes to %s at %d: %w", len(b), s.name, s.end, err)
	}
	s.end += int64(len(b))
	return nil
}

// extend makes the file longer by zeros, to at least the given size.
func (s *segment) extend(size int64) error {
	for s.size < size {
		grow := min(max(s.size, growLeast), growMost)
		for range grow / growLeast {
			if _, err := s.file.WriteAt(zeros[:], s.size); err != nil {
				return fmt.Errorf("extending %s to %d bytes: %w", s.name, s.size+growLeast, err)
			}
			s.size += growLeast
		}
	}
	return nil
}

// remark writes another mark to the header. It is not durable before a sync.
func (s *segment) remark(m mark) error {
	if _, err := s.file.WriteAt(m.encode(s.seed), markAt); err != nil {
		return fmt.Errorf("writing to the header of %s: %w", s.name, err)
	}
	s.mark = m
	return nil
}

// followed notes that the segment beginning with next has its name, durably. From then
// on that segment must be there.
func (s *segment) followed(next Number) error {
	if err := s.remark(mark{size: s.mark.size, next: next}); err != nil {
		return err
	}
	return s.sync()
}

// sync makes the segment durable.
func (s *segment) sync() error {
	if err := s.file.Sync(); err != nil {
		return fmt.Errorf("syncing %s: %w", s.name, err)
	}
	return nil
}

// begin makes a segment, from the spare file if there is one. All of it is durable
// before begin returns.
func begin(dir Dir, spare *segment, owner uint64, first Number) (*segment, error) {
	s := spare
	if s == nil {
		file, err := dir.Create(nameNew)
		if err != nil {
			return nil, fmt.Errorf("making a segment: %w", err)
		}
		s = &segment{name: nameNew, file: file}
	}
	h := header{owner: owner, first: first}
	was := s.name
	s.first, s.owner, s.seed, s.end, s.damaged = first, owner, h.seed(), headerBytes, false
	// Beyond the size in its mark, a used file may not be on the disk.
	s.size = s.mark.size
	if err := s.extend(headerBytes); err != nil {
		return s, err
	}
	s.mark = mark{size: s.size}
	raw := h.encode()
	copy(raw[markAt:], s.mark.encode(s.seed))
	if _, err := s.file.WriteAt(raw, 0); err != nil {
		return s, fmt.Errorf("writing the header of segment %s: %w", segmentName(first), err)
	}
	if err := s.sync(); err != nil {
		return s, err
	}
	s.name = segmentName(first)
	if err := dir.Rename(was, s.name); err != nil {
		return s, fmt.Errorf("naming segment %s: %w", s.name, err)
	}
	if err := dir.Sync(); err != nil {
		return s, fmt.Errorf("making the name of segment %s durable: %w", s.name, err)
	}
	return s, nil
}

// openAny opens a segment of any owner.
func openAny(dir Dir, first Number) (*segment, error) {
	s := &segment{name: segmentName(first), first: first, end: headerBytes}
	var err error
	if s.file, err = dir.Open(s.name); err != nil {
		return nil, fmt.Errorf("opening %s: %w", s.name, err)
	}
	if s.size, err = s.file.Size(); err != nil {
		return s, fmt.Errorf("asking for the size of %s: %w", s.name, err)
	}
	if s.size < headerBytes {
		return s, &DamageError{File: s.name, What: errNoHeader}
	}
	raw, err := s.header()
	if err != nil {
		return s, fmt.Errorf("reading %s: %w", s.name, err)
	}
	h, err := decodeHeader(raw)
	if err != nil {
		return s, &DamageError{File: s.name, What: err}
	}
	if h.first != first {
		return s, &DamageError{File: s.name, What: fmt.Errorf("its header says that it begins with commit %d", h.first)}
	}
	s.owner, s.seed = h.owner, h.seed()
	s.mark = decodeMark(raw, s.seed)
	if s.size < s.mark.size {
		return s, &DamageError{File: s.name, Offset: s.size, What: fmt.Errorf(
			"%w: the file was cut short, it had %d bytes", errMissing, s.mark.size)}
	}
	return s, nil
}

// header reads the header of a file that is long enough.
func (s *segment) header() ([]byte, error) {
	raw := make([]byte, headerBytes)
	if n, err := s.file.ReadAt(raw, 0); err != nil && (!errors.Is(err, io.EOF) || n < len(raw)) {
		return nil, err
	}
	return raw, nil
}

// openSpare opens the file that is to be used again. Its mark is the mark of its last
// use, if readable.
func openSpare(dir Dir) (*segment, error) {
	s := &segment{name: nameSpare}
	var err error
	if s.file, err = dir.Open(nameSpare); err != nil {
		return nil, fmt.Errorf("opening %s: %w", nameSpare, err)
	}
	if s.size, err = s.file.Size(); err != nil {
		return s, fmt.Errorf("asking for the size of %s: %w", nameSpare, err)
	}
	if s.size < headerBytes {
		return s, nil
	}
	raw, err := s.header()
	if err != nil {
		return s, fmt.Errorf("reading %s: %w", nameSpare, err)
	}
	if h, err := decodeHeader(raw); err == nil {
		s.mark = decodeMark(raw, h.seed())
		s.mark.size = min(s.mark.size, s.size)
	}
	return s, nil
}

// open opens a segment of an owner.
func open(dir Dir, first Number, owner uint64) (*segment, error) {
	s, err := openAny(dir, first)
	if err == nil && s.owner != owner {
		err = fmt.Errorf("%w: %s is of data %016x, not %016x", ErrForeign, s.name, s.owner, owner)
	}
	return s, err
}
