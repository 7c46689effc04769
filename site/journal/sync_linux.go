package journal

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// syncData syncs all data needed to read the file again, but no times.
func syncData(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		for {
			if failed = syscall.Fdatasync(int(fd)); !errors.Is(failed, syscall.EINTR) {
				return
			}
		}
	})
	if failed != nil {
		err = fmt.Errorf("fdatasync %s: %w", f.Name(), failed)
	}
	return err
}
