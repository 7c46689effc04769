// Package dirs makes directories whose names survive a loss of power. Syncing a file
// makes neither its own name durable nor that of the directory it stands in.
package dirs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// Make makes a directory, and those above it that are missing, and makes the names of
// all that it made durable. Where a file has the name of one of them, the error is
// [syscall.ENOTDIR].
func Make(path string, perm fs.FileMode) error {
	path = filepath.Clean(path)
	err := os.Mkdir(path, perm)
	above := filepath.Dir(path)
	if errors.Is(err, fs.ErrNotExist) && above != path {
		if err := Make(above, perm); err != nil {
			return err
		}
		err = os.Mkdir(path, perm)
	}
	if errors.Is(err, fs.ErrExist) {
		info, failed := os.Stat(path)
		if failed != nil || info.IsDir() {
			return failed
		}
		return &fs.PathError{Op: "mkdir", Path: path, Err: syscall.ENOTDIR}
	}
	if err != nil {
		return err
	}
	return Sync(above)
}

// Sync makes the names in a directory durable. Windows knows no such call.
func Sync(path string) (err error) {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return d.Sync()
}
