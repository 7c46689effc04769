package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// create makes the database of a new directory: whole, under another name, and
// only then with its own. A loss of power meanwhile leaves nothing that has its
// name; afterwards the name is durable as well. Neither would be so if the file
// were made in place: a part of it could be there, and syncing a file does not
// sync the directory it stands in.
func create(path string, o *Options) (*Store, error) {
	fresh, err := freshFile(path)
	if err != nil {
		return nil, fmt.Errorf("making %s: %w", path, err)
	}
	s, err := openFile(fresh, o)
	if err != nil {
		return nil, errors.Join(err, os.Remove(fresh))
	}
	// It is opened anew by its own name, which the system's tools then show.
	if err := errors.Join(s.Close(), publish(fresh, path)); err != nil {
		return nil, fmt.Errorf("making %s: %w", path, err)
	}
	return openFile(path, o)
}

// freshFile makes an empty file beside path that nobody else uses, and removes
// those that starts which were cut off have left.
func freshFile(path string) (string, error) {
	dir, prefix := filepath.Dir(path), filepath.Base(path)+".new-"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return "", err
			}
		}
	}
	f, err := os.CreateTemp(dir, prefix+"*")
	if err != nil {
		return "", err
	}
	return f.Name(), f.Close()
}

// publish gives a new database its name, durably, unless another process was
// faster.
func publish(fresh, path string) error {
	err := os.Link(fresh, path)
	switch {
	case err == nil:
		err = os.Remove(fresh)
	case errors.Is(err, fs.ErrExist):
		return errors.Join(ErrInUse, os.Remove(fresh))
	default: // a file system without links
		err = os.Rename(fresh, path)
	}
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	return errors.Join(syncDir(dir), syncDir(filepath.Dir(dir)))
}

// syncDir makes the names in a directory durable. Windows knows no such call.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
