//go:build linux || darwin

package datadir

import "golang.org/x/sys/unix"

// freeBytes returns the space of a directory's disk that a process without privileges
// may use.
func freeBytes(dir string) (n uint64, known bool) {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil || s.Bsize < 0 {
		return 0, false
	}
	return s.Bavail * uint64(s.Bsize), true //nolint:gosec // it is not negative
}
