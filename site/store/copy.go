package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"

	"github.com/samya-db/samya/internal/dirs"
	"github.com/samya-db/samya/site/journal"
)

// Source is another node, with a base to copy and a log to go on with.
type Source interface {
	// Fetch returns the part of the base behind a cursor.
	Fetch(ctx context.Context, after Cursor) (Page, error)
	// Pin has the log keep all commits behind a commit until the copy is over.
	Pin(through journal.Number) error
	// Reaches reports whether the log has all commits behind a commit.
	Reaches(through journal.Number) (bool, error)
}

// Copy makes the data of a node of the parts of another node's base. The log is pinned to
// the commit of the first part before any other part is fetched. owner is the incarnation
// of the data.
//
// Data in the directory is replaced once the copy is whole. A copy that was cut off goes on,
// if the log still reaches back to the first part.
func Copy(ctx context.Context, dir string, owner uint64, from Source) error {
	c := &copier{work: filepath.Join(dir, copyName), from: from}
	err := c.open()
	if err == nil {
		err = errors.Join(c.all(ctx), c.base.Close())
	}
	if err == nil {
		err = c.install(dir, owner)
	}
	if err != nil {
		return fmt.Errorf("copying the base of another node: %w", err)
	}
	return nil
}

// copyName is the directory of a copy under way, within the data directory.
const copyName = "copying"

var (
	errPage = errors.New("a part of a copied base is damaged")

	// The bucket and the keys of a copy's own records: keyThrough, and keyCursor, the bucket
	// in a byte and then the key. After the last part the bucket is 0.
	nameCopied = []byte("copied")
	keyCursor  = []byte("cursor")
)

// copier is a copy under way.
type copier struct {
	work string
	from Source
	base *boltBase
	// begun is set once the copy has a part; through is the commit of the first part, and
	// after the end of the last.
	begun   bool
	through journal.Number
	after   Cursor
}

// open opens the base of the copy, and begins anew if there is none that can go on.
func (c *copier) open() error {
	if err := dirs.Make(c.work, 0o700); err != nil {
		return err
	}
	path := filepath.Join(c.work, fileName)
	var err error
	if c.base, err = openBase(path); err != nil {
		return err
	}
	err = c.look()
	if err == nil && c.begun {
		c.begun, err = c.from.Reaches(c.through)
	}
	if err != nil {
		return errors.Join(err, c.base.Close())
	}
	if c.begun {
		return nil
	}
	if err := errors.Join(c.base.Close(), os.Remove(path)); err != nil {
		return err
	}
	if c.base, err = openBase(path); err != nil {
		return err
	}
	c.after = Cursor{}
	if err := c.base.fill(nil); err != nil {
		return errors.Join(err, c.base.Close())
	}
	return nil
}

// look reads how far the copy is.
func (c *copier) look() error {
	return c.base.view(func(tx *bolt.Tx) error {
		bucket := tx.Bucket(nameCopied)
		if bucket == nil {
			return nil
		}
		n, err := numberOf(bucket.Get(keyThrough))
		if err != nil {
			return err
		}
		cursor := bucket.Get(keyCursor)
		if len(cursor) == 0 {
			return errPage
		}
		c.begun, c.through = true, journal.Number(n)
		c.after = Cursor{journal.Bucket(cursor[0]), bytes.Clone(cursor[1:])}
		return nil
	})
}

// all fetches the parts that are missing.
func (c *copier) all(ctx context.Context) error {
	if c.begun {
		if err := c.from.Pin(c.through); err != nil {
			return err
		}
	}
	for !c.begun || c.after.Bucket != 0 {
		p, err := c.from.Fetch(ctx, c.after)
		if err != nil {
			return err
		}
		if p.Sum != p.sum() {
			return errPage
		}
		if !c.begun {
			c.through = p.Through
			if err := c.from.Pin(c.through); err != nil {
				return err
			}
		}
		if err := c.take(&p); err != nil {
			return err
		}
		c.begun, c.after = true, p.Next
	}
	return c.base.Apply(nil, &c.through)
}

// take writes a part, and how far the copy is with it.
func (c *copier) take(p *Page) error {
	return c.base.db.Update(func(tx *bolt.Tx) error {
		for i := range p.Records {
			r := &p.Records[i]
			if r.Kind != journal.Put || len(r.Key) == 0 {
				return errPage
			}
			if err := apply(tx, r); err != nil {
				return err
			}
		}
		bucket, err := tx.CreateBucketIfNotExists(nameCopied)
		if err != nil {
			return err
		}
		cursor := append([]byte{byte(p.Next.Bucket)}, p.Next.Key...)
		return errors.Join(bucket.Put(keyThrough, sequenceKey(uint64(c.through))), bucket.Put(keyCursor, cursor))
	})
}

// install gives a whole copy a log, and moves both to the data directory in place of the
// data there. The base comes last: no data is there without its log. What is cut off here
// is done again from the beginning.
func (c *copier) install(dir string, owner uint64) error {
	log := journal.OSDir(c.work)
	if err := errors.Join(journal.Remove(log), journal.Begin(log, owner, c.through)); err != nil {
		return err
	}
	place := filepath.Join(dir, fileName)
	if err := os.Remove(place); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := journal.Remove(journal.OSDir(dir)); err != nil {
		return err
	}
	entries, err := os.ReadDir(c.work)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == fileName {
			continue
		}
		if err := os.Rename(filepath.Join(c.work, e.Name()), filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	if err := dirs.Sync(dir); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(c.work, fileName), place); err != nil {
		return err
	}
	return errors.Join(dirs.Sync(dir), os.Remove(c.work))
}
