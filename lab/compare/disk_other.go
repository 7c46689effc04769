//go:build !linux

package compare

import "os"

// inMemory cannot tell on this system.
func inMemory(string) (bool, error) { return false, nil }

// fdatasync syncs data and metadata.
func fdatasync(f *os.File) error { return f.Sync() }

// flush does nothing on this system.
func flush() {}

// sameDisk cannot tell on this system.
func sameDisk(string, string) (bool, error) { return false, nil }
