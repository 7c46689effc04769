//go:build !linux

package compare

import "os"

// inMemory cannot tell here.
func inMemory(string) (bool, error) { return false, nil }

// fdatasync syncs all there is.
func fdatasync(f *os.File) error { return f.Sync() }

// sameDisk cannot tell here.
func sameDisk(string, string) (bool, error) { return false, nil }
