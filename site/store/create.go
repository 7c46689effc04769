package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	bolt "go.etcd.io/bbolt"

	"github.com/samya-db/samya/site/journal"
)

// create makes the database of a new directory: whole, under another name, and only
// then with its own. A loss of power meanwhile leaves no file of that name; afterwards
// the name is durable as well. A file made in place would have neither property: a part
// of it could be there, and syncing a file does not sync its directory. A directory
// that already has a log of commits has lost its database, and is refused.
func create(path string, o *Options) error {
	if err := journal.Unused(journal.OSDir(o.Dir)); err != nil {
		return fmt.Errorf("%s is missing: %w", path, err)
	}
	_, _, first, err := bootstrap(o)
	if err != nil {
		return err
	}
	fresh, err := freshFile(path)
	if err != nil {
		return fmt.Errorf("making %s: %w", path, err)
	}
	b, err := openBase(fresh)
	if err != nil {
		return errors.Join(err, os.Remove(fresh))
	}
	if err := errors.Join(b.fill(first), b.Close()); err != nil {
		return errors.Join(fmt.Errorf("filling %s: %w", fresh, err), os.Remove(fresh))
	}
	if err := publish(fresh, path); err != nil {
		return fmt.Errorf("making %s: %w", path, err)
	}
	return nil
}

// fill makes all buckets, and writes the first records of a new base.
func (b *boltBase) fill(first []journal.Op) error {
	return b.db.Update(func(tx *bolt.Tx) error {
		for id := range bucketNames {
			if _, err := bucketIn(tx, id); err != nil {
				return fmt.Errorf("making bucket %q: %w", bucketNames[id], err)
			}
		}
		for i := range first {
			if err := apply(tx, &first[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// adopt fills a base without any data as create does: missing buckets are refused
// later. Only an empty file of somebody else is such a base.
func (b *boltBase) adopt(path string, o *Options) error {
	if err := journal.Unused(journal.OSDir(o.Dir)); err != nil {
		return fmt.Errorf("%s is empty: %w", path, err)
	}
	_, _, first, err := bootstrap(o)
	if err != nil {
		return err
	}
	if err := b.fill(first); err != nil {
		return fmt.Errorf("filling %s: %w", path, err)
	}
	b.hasIdentity = true
	return nil
}

// freshFile makes an empty file beside path that nobody else uses, and removes files
// left by starts that were cut off.
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
	return errors.Join(journal.OSDir(dir).Sync(), journal.OSDir(filepath.Dir(dir)).Sync())
}
