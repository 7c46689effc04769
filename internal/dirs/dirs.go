// Package dirs makes directories, and replaces files, with names that survive a loss of
// power. Syncing a file makes neither its own name durable nor the name of its directory.
package dirs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// Make makes a directory and the missing directories above it, and makes the names of all
// of them durable. It also makes the name of the lowest existing directory durable: a
// killed process may have made the directory. If a file has the name of a directory, the
// error is [syscall.ENOTDIR].
func Make(path string, perm fs.FileMode) error {
	path = filepath.Clean(path)
	above := filepath.Dir(path)
	err := os.Mkdir(path, perm)
	switch {
	case err == nil:
		err = found(above)
	case errors.Is(err, fs.ErrExist):
		return found(path)
	case errors.Is(err, fs.ErrNotExist) && above != path:
		if err = Make(above, perm); err == nil {
			err = os.Mkdir(path, perm)
		}
	}
	if err != nil {
		return err
	}
	return Sync(above)
}

// found makes the name of an existing directory durable. A caller that may not look into
// the directory above has not made the name.
func found(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return &fs.PathError{Op: "mkdir", Path: path, Err: syscall.ENOTDIR}
	}
	if err := Sync(filepath.Dir(path)); !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

// Sync makes the names in a directory durable. Windows has no such call.
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

// Replace gives a file the content, in place of any before, durably: after a loss of power
// the file has the one or the other. Calls for a path may not be concurrent.
func Replace(path string, content []byte) error {
	next := path + ".new"
	f, err := os.OpenFile(next, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(next))
	}
	if err := os.Rename(next, path); err != nil {
		return err
	}
	return Sync(filepath.Dir(path))
}
