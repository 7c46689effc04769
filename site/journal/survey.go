package journal

import "fmt"

// Segment tells of a file of a log.
type Segment struct {
	// Name is the name of the file.
	Name string
	// First is the number of the first commit, Last that of the last readable commit; 0
	// for none.
	First, Last Number
	// Bytes is the length of the readable commits.
	Bytes int64
	// Torn is set if a part of the commit behind the last one is there.
	Torn bool
	// Err says why the file cannot be read; nil if it can.
	Err error
}

// Survey reads all files of a log and tells of them in order. It does not judge whether
// a missing part was acknowledged, as Open does, and changes nothing. The error is that
// of reading the directory.
func Survey(dir Dir) ([]Segment, error) {
	names, err := dir.List()
	if err != nil {
		return nil, fmt.Errorf("listing the directory: %w", err)
	}
	var all []Segment
	for _, first := range firstsOf(names) {
		all = append(all, survey(dir, first))
	}
	return all, nil
}

func survey(dir Dir, first Number) (t Segment) {
	t = Segment{Name: segmentName(first), First: first}
	s, err := openAny(dir, first)
	if s == nil {
		t.Err = err
		return t
	}
	defer func() { _ = s.file.Close() }() // it was read alone
	if t.Err = err; err != nil {
		return t
	}
	r := reader{file: s.file, size: s.size, seed: s.seed}
	at := int64(headerBytes)
	for n := first; ; n++ {
		f, ok, err := r.frame(at)
		if err != nil {
			t.Err = fmt.Errorf("reading %s at %d: %w", s.name, at, err)
			return t
		}
		if !ok || f.number != n {
			// A head with the very next number can only be of a commit cut off.
			t.Torn = !ok && f.number == n
			t.Bytes = at - headerBytes
			return t
		}
		t.Last, at = n, f.next
	}
}

// Leftover reports whether a file of a name is left by a start or a checkpoint that was
// cut off.
func Leftover(name string) bool { return name == nameNew }
