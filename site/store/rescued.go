package store

import (
	"errors"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
)

// ErrRescued: all that the data holds was given back to the cluster. No site may start on it.
var ErrRescued = errors.New("all that the data holds was given back to the cluster by samya site rescue: no site starts on it again")

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
