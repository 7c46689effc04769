package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"

	bolt "go.etcd.io/bbolt"

	"github.com/samya-db/samya/internal/dirs"
	"github.com/samya-db/samya/site/journal"
)

// Cursor is a place in a base: all keys of the buckets before Bucket, and its keys through
// Key. The zero Cursor is the beginning.
type Cursor struct {
	Bucket journal.Bucket
	Key    []byte
}

// Page is a part of a base.
type Page struct {
	// Records are Puts, in the order of buckets and keys.
	Records []journal.Op
	// Next is the end of the page; the zero Cursor after the last page.
	Next Cursor
	// Through is a commit that the base held as a whole when the page was read.
	Through journal.Number
	// Sum is the CRC-32C of the records; see Page.sum.
	Sum uint32
}

// sum is the CRC-32C of the records: of each the bucket, the lengths of key and value, and
// both.
func (p *Page) sum() uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	sum := uint32(0)
	for i := range p.Records {
		r := &p.Records[i]
		head := binary.LittleEndian.AppendUint32([]byte{byte(r.Bucket)}, uint32(len(r.Key))) //nolint:gosec // below 64 KiB
		head = binary.LittleEndian.AppendUint32(head, uint32(len(r.Value)))                  //nolint:gosec // below 1 GiB
		for _, b := range [][]byte{head, r.Key, r.Value} {
			sum = crc32.Update(sum, table, b)
		}
	}
	return sum
}

// PageOf reads the part of the base that follows a cursor, with at least a record and about
// size bytes. Pages may be of different commits, while checkpoints go on: the commits
// behind the first page's Through, carried out over the pages, make the whole state of the
// last commit, since operations hold absolute values.
func (s *Store) PageOf(after Cursor, size int) (Page, error) {
	if s.file == nil {
		return Page{}, errNoImages
	}
	var p Page
	err := s.file.view(func(tx *bolt.Tx) error {
		if j := tx.Bucket(nameJournal); j != nil {
			if raw := j.Get(keyThrough); raw != nil {
				n, err := numberOf(raw)
				if err != nil {
					return err
				}
				p.Through = journal.Number(n)
			}
		}
		return p.fill(tx, after, size)
	})
	if err != nil {
		return Page{}, fmt.Errorf("reading a part of the base: %w", err)
	}
	p.Sum = p.sum()
	return p, nil
}

// fill adds records behind a cursor.
func (p *Page) fill(tx *bolt.Tx, after Cursor, size int) error {
	left := size
	for _, id := range slices.Sorted(func(yield func(journal.Bucket) bool) {
		for id := range bucketNames {
			if !yield(id) {
				return
			}
		}
	}) {
		bucket := tx.Bucket(bucketNames[id])
		if id < after.Bucket || bucket == nil {
			continue
		}
		c := bucket.Cursor()
		k, v := c.First()
		if id == after.Bucket && len(after.Key) > 0 {
			if k, v = c.Seek(after.Key); bytes.Equal(k, after.Key) {
				k, v = c.Next()
			}
		}
		for ; k != nil; k, v = c.Next() {
			if left <= 0 {
				last := &p.Records[len(p.Records)-1]
				p.Next = Cursor{last.Bucket, last.Key}
				return nil
			}
			p.Records = append(p.Records, journal.Op{Kind: journal.Put, Bucket: id, Key: bytes.Clone(k), Value: bytes.Clone(v)})
			left -= len(k) + len(v) + 16
		}
	}
	return nil
}

const (
	// copyName is the directory in which a copy of another node's base is made. A copy that
	// was cut off goes on there.
	copyName = "copying"
	// nodeName is the file that marks a directory as that of a node.
	nodeName = "node"
)

// ErrNode: the directory is that of a node of a site, whose log is not in the directory
// alone.
var ErrNode = errors.New("the data directory belongs to a node whose log is in etcd")

var (
	errPage = errors.New("a part of a copied base is damaged")

	keyCopied = []byte("copied")
	keyCursor = []byte("cursor")
)

// MarkNode marks a data directory as that of a node, durably. No site opens it again
// without Options.Over: its log alone may lack acknowledged commits.
func MarkNode(dir string) error {
	if err := dirs.Make(dir, 0o700); err != nil {
		return fmt.Errorf("marking the data as a node's: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, nodeName), os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(ErrNode.Error() + "\n")
		err = errors.Join(err, f.Sync(), f.Close(), dirs.Sync(dir))
	}
	if err != nil {
		return fmt.Errorf("marking the data as a node's: %w", err)
	}
	return nil
}

// IsNode reports whether a data directory is marked as a node's.
func IsNode(dir string) (bool, error) { return there(filepath.Join(dir, nodeName)) }

// Exists reports whether a directory has the data of a site.
func Exists(dir string) (bool, error) { return there(filepath.Join(dir, fileName)) }

func there(path string) (bool, error) {
	_, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking at the data: %w", err)
	}
	return true, nil
}

// Copy makes the data of a node of the parts of another node's base. fetch returns the part
// behind a cursor. pin is told the commit that the copy begins with, before anything else is
// fetched: the log must keep all commits behind it until Copy has returned.
//
// Data that is in the directory is replaced once the copy is whole. A copy that was cut off
// goes on where it was, if reaches says that the log still has the commits behind its first.
func Copy(ctx context.Context, dir string, owner uint64, fetch func(context.Context, Cursor) (Page, error),
	pin func(journal.Number) error, reaches func(journal.Number) (bool, error),
) error {
	if err := copyBase(ctx, dir, owner, fetch, pin, reaches); err != nil {
		return fmt.Errorf("copying the base of another node: %w", err)
	}
	return nil
}

func copyBase(ctx context.Context, dir string, owner uint64, fetch func(context.Context, Cursor) (Page, error),
	pin func(journal.Number) error, reaches func(journal.Number) (bool, error),
) (err error) {
	work := filepath.Join(dir, copyName)
	if err := dirs.Make(work, 0o700); err != nil {
		return err
	}
	b, err := openBase(filepath.Join(work, fileName))
	if err != nil {
		return err
	}
	defer func() {
		if b != nil {
			err = errors.Join(err, b.Close())
		}
	}()
	through, after, begun, err := b.copied()
	if err != nil {
		return err
	}
	if begun {
		if begun, err = reaches(through); err != nil {
			return err
		}
	}
	if begun {
		if err := pin(through); err != nil {
			return err
		}
	} else {
		if err := b.fill(nil); err != nil {
			return err
		}
		if err := b.empty(); err != nil {
			return err
		}
		after = Cursor{}
	}
	for first := !begun; first || after.Bucket != 0; first = false {
		p, err := fetch(ctx, after)
		if err != nil {
			return err
		}
		if p.Sum != p.sum() {
			return errPage
		}
		if first {
			through = p.Through
			if err := pin(through); err != nil {
				return err
			}
		}
		if err := b.take(&p, through); err != nil {
			return err
		}
		after = p.Next
	}
	if err := b.Apply(nil, &through); err != nil {
		return err
	}
	err, b = b.Close(), nil
	if err != nil {
		return err
	}
	return install(work, dir, owner, through)
}

// copied reads how far a copy is.
func (b *boltBase) copied() (through journal.Number, after Cursor, begun bool, err error) {
	err = b.view(func(tx *bolt.Tx) error {
		bucket := tx.Bucket(keyCopied)
		if bucket == nil {
			return nil
		}
		raw := bucket.Get(keyThrough)
		cursor := bucket.Get(keyCursor)
		n, err := numberOf(raw)
		if err != nil || len(cursor) == 0 {
			return errors.Join(err, nil)
		}
		through, begun = journal.Number(n), true
		after = Cursor{journal.Bucket(cursor[0]), bytes.Clone(cursor[1:])}
		return nil
	})
	return through, after, begun, err
}

// take writes a part of a copy, and how far the copy is with it.
func (b *boltBase) take(p *Page, through journal.Number) error {
	return b.db.Update(func(tx *bolt.Tx) error {
		for i := range p.Records {
			r := &p.Records[i]
			if r.Kind != journal.Put || len(r.Key) == 0 {
				return errPage
			}
			if err := apply(tx, r); err != nil {
				return err
			}
		}
		bucket, err := tx.CreateBucketIfNotExists(keyCopied)
		if err != nil {
			return err
		}
		cursor := append([]byte{byte(p.Next.Bucket)}, p.Next.Key...)
		return errors.Join(bucket.Put(keyThrough, sequenceKey(uint64(through))), bucket.Put(keyCursor, cursor))
	})
}

// empty deletes all records of a copy that cannot go on.
func (b *boltBase) empty() error {
	return b.db.Update(func(tx *bolt.Tx) error {
		for _, name := range append(slices.Collect(func(yield func([]byte) bool) {
			for _, n := range bucketNames {
				if !yield(n) {
					return
				}
			}
		}), keyCopied, nameJournal) {
			if tx.Bucket(name) == nil {
				continue
			}
			if err := tx.DeleteBucket(name); err != nil {
				return err
			}
			if bytes.Equal(name, keyCopied) || bytes.Equal(name, nameJournal) {
				continue
			}
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		return nil
	})
}

// install gives a whole copy a log, and moves it to its place. The base that was there goes
// first: from then on the directory has no data until the copy has its name.
func install(work, dir string, owner uint64, through journal.Number) error {
	at := journal.OSDir(work)
	// An earlier end of this copy may have been cut off.
	if err := journal.Remove(at); err != nil {
		return err
	}
	if err := journal.Begin(at, owner, through); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(dir, fileName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := journal.Remove(journal.OSDir(dir)); err != nil {
		return err
	}
	entries, err := os.ReadDir(work)
	if err != nil {
		return err
	}
	// The base comes last: no data is there without its log.
	slices.SortFunc(entries, func(a, b os.DirEntry) int {
		return boolOf(a.Name() == fileName) - boolOf(b.Name() == fileName)
	})
	for _, e := range entries {
		if err := os.Rename(filepath.Join(work, e.Name()), filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	if err := dirs.Sync(dir); err != nil {
		return err
	}
	return os.Remove(work)
}

func boolOf(b bool) int {
	if b {
		return 1
	}
	return 0
}
