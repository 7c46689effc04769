package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"

	bolt "go.etcd.io/bbolt"

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
	for _, id := range slices.Sorted(maps.Keys(bucketNames)) {
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
