//go:build unix

package kvpart

import "golang.org/x/sys/unix"

// device returns the number of the file system that a directory is on.
func device(dir string) (uint64, bool) {
	var st unix.Stat_t
	if unix.Stat(dir, &st) != nil {
		return 0, false
	}
	return uint64(st.Dev), true //nolint:unconvert // of another type on other systems
}
