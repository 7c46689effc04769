package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/samya-db/samya/internal/dirs"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/journal"
)

const (
	// restoring begins the name of a directory in which a restore works. A restore that
	// was cut off leaves the directory.
	restoring = "restoring-"
	// restoreBytes is about how many bytes a transaction of a restore writes.
	restoreBytes = 4 << 20
)

var errNotEmpty = errors.New("the directory is not empty; a restore replaces no data")

// Restore makes a data directory of a backup. The directory must be empty, or is made.
// Restore verifies the whole backup first, and then reads it again from its beginning.
// It moves the files to their places once they are durable and can be loaded: the base
// first, which no site takes without its log.
//
// The restored data is as old as the backup: other members decide whether the site may
// serve on it.
func Restore(dir string, from io.ReadSeeker) (Verified, error) {
	v, err := restore(dir, from)
	if err != nil {
		return Verified{}, fmt.Errorf("restoring a backup to %s: %w", dir, err)
	}
	return v, nil
}

func restore(dir string, from io.ReadSeeker) (v Verified, err error) {
	if err := vacant(dir); err != nil {
		return v, err
	}
	if v, err = Verify(from); err != nil {
		return v, err
	}
	if err := dirs.Make(dir, 0o700); err != nil {
		return v, fmt.Errorf("making the directory: %w", err)
	}
	if err := clean(dir); err != nil {
		return v, err
	}
	work, err := os.MkdirTemp(dir, restoring)
	if err != nil {
		return v, err
	}
	defer func() {
		if left := os.RemoveAll(work); err == nil && left != nil {
			err = fmt.Errorf("removing what is not needed any more: %w", left)
		}
	}()
	if _, err := from.Seek(0, io.SeekStart); err != nil {
		return v, err
	}
	again, err := rebuild(filepath.Join(work, fileName), from)
	if err != nil {
		return v, err
	}
	if again.Records != v.Records || again.Commit != v.Commit || again.Bytes != v.Bytes {
		return v, errors.New("the backup has changed meanwhile")
	}
	if err := judge(work, &v); err != nil {
		return v, err
	}
	return v, move(work, dir)
}

// vacant returns an error for a directory with anything in it but leftovers of restores.
func vacant(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), restoring) {
			return fmt.Errorf("%w: it has %s", errNotEmpty, e.Name())
		}
	}
	return nil
}

// clean removes the directories left by restores that were cut off.
func clean(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), restoring) {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// rebuild makes a base of a backup.
func rebuild(path string, from io.Reader) (v Verified, err error) {
	b, err := openBase(path)
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if err := b.fill(nil); err != nil {
		return v, err
	}
	var ops []journal.Op
	size := 0
	write := func() error {
		err := b.Apply(ops, nil)
		ops, size = ops[:0], 0
		return err
	}
	v, err = eachRecord(from, func(op journal.Op) error {
		op.Key, op.Value = bytes.Clone(op.Key), bytes.Clone(op.Value)
		ops = append(ops, op)
		if size += len(op.Key) + len(op.Value); size < restoreBytes {
			return nil
		}
		return write()
	})
	return v, errors.Join(err, write())
}

// judge opens restored data as a site does, which gives it a log, and compares it with
// the backup.
func judge(dir string, v *Verified) error {
	s, err := Open(Options{Dir: dir, Cluster: v.Cluster, Site: core.SiteID(v.Site)})
	if err != nil {
		return err
	}
	r, err := s.Load()
	if err == nil {
		err = r.EachBlock(func(*stored.Block) error { return nil })
	}
	if err == nil {
		err = restored(&r, v)
	}
	return errors.Join(err, s.Close())
}

// move moves the files of a directory to another, the base first.
func move(from, to string) error {
	if err := publish(filepath.Join(from, fileName), filepath.Join(to, fileName)); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.Rename(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return dirs.Sync(to)
}
