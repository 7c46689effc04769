package journal

// WriteHeader writes the head of a segment.
func WriteHeader(f File, owner uint64, first Number) error {
	_, err := f.WriteAt(header{owner: owner, first: first}.encode(), 0)
	return err
}
