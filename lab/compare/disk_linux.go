package compare

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// The file systems in memory, by their numbers in statfs(2).
const (
	tmpfs = 0x01021994
	ramfs = 0x858458f6
)

// inMemory reports whether a directory is on a file system in memory.
func inMemory(dir string) (bool, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return false, fmt.Errorf("find out the file system of %s: %w", dir, err)
	}
	switch uint32(s.Type) {
	case tmpfs, ramfs:
		return true, nil
	}
	return false, nil
}

// fdatasync syncs the data, and only the metadata needed to read it.
func fdatasync(f *os.File) error {
	for {
		err := syscall.Fdatasync(int(f.Fd()))
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// flush writes what programs have left in the memory of all file systems. Else the
// kernel writes it every five seconds, and each sync meanwhile waits some 20 ms.
func flush() { syscall.Sync() }

// sameDisk reports whether two directories are on the same file system.
func sameDisk(a, b string) (bool, error) {
	var is [2]syscall.Stat_t
	for i, dir := range []string{a, b} {
		if err := syscall.Stat(dir, &is[i]); err != nil {
			return false, fmt.Errorf("find out the file system of %s: %w", dir, err)
		}
	}
	return is[0].Dev == is[1].Dev, nil
}
