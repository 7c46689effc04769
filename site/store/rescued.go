package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"

	"github.com/samya-db/samya/internal/dirs"
)

// ErrRescued: all that the data holds was given back to the cluster. No site may start on it.
var ErrRescued = errors.New("all that the data holds was given back to the cluster by samya site rescue: no site starts on it again")

// rescuedName is the file that marks a directory as rescued.
const rescuedName = "rescued"

// Hold keeps sites from starting on a data directory until release is called. It changes
// nothing, and fails with ErrInUse if a site runs on the directory.
func Hold(dir string) (release func() error, err error) {
	path := filepath.Join(dir, fileName)
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: lockPatience, ReadOnly: true})
	if err != nil {
		return nil, opening(path, err)
	}
	return db.Close, nil
}

// MarkRescued marks a data directory, durably: no site starts on it again. It must be done
// before anything that the data holds is given back.
func MarkRescued(dir string) error {
	path := filepath.Join(dir, rescuedName)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(ErrRescued.Error() + "\n")
		err = errors.Join(err, f.Sync(), f.Close(), dirs.Sync(dir))
	}
	if err != nil {
		return fmt.Errorf("marking the data as rescued: %w", err)
	}
	return nil
}

// Rescued reports whether a data directory is marked.
func Rescued(dir string) (bool, error) {
	_, err := os.Stat(filepath.Join(dir, rescuedName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("looking for the mark of a rescue: %w", err)
	}
	return true, nil
}
