package journal

// WriteHeader writes the head of a segment.
func WriteHeader(f File, owner uint64, first Number) error {
	_, err := f.WriteAt(header{owner: owner, first: first}.encode(), 0)
	return err
}

// Appends reports whether Append can be called from within a call on the disk.
func Appends(j *Journal) bool {
	if !j.mu.TryLock() {
		return false
	}
	j.mu.Unlock()
	return true
}

// Syncs reports whether Sync can be called from within a call on the disk.
func Syncs(j *Journal) bool {
	if !j.syncing.TryLock() {
		return false
	}
	j.syncing.Unlock()
	return true
}
