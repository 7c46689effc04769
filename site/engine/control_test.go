package engine_test

import (
	"encoding/binary"
	"math/rand/v2"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// control is the yardstick of an engine: bare bbolt, with one synced transaction for as
// many operations as there are callers, and nothing around it. Each operation stores the
// books of its entity. The ids and answers of a transaction are a block, and the oldest
// blocks are deleted now and then.
type control struct {
	db    *bolt.DB
	zipf  *zipf
	rnd   *rand.Rand
	names [][]byte
	// block is the number of the last block, oldest of the first.
	block, oldest uint64
	// put counts the operations so far.
	put uint64
}

var controlBooks, controlRequests = []byte("books"), []byte("requests")

// Lengths of the records of an operation, in bytes, as a site encodes them, the blocks
// deleted at once, and the blocks kept.
const (
	booksLength, requestLength = 16, 36
	forgottenAtOnce            = 64
	keptBlocks                 = 4096
)

func newControl(b *testing.B, entities int) *control {
	b.Helper()
	db, err := bolt.Open(filepath.Join(benchDir(b), "control.db"), 0o600, &bolt.Options{
		NoFreelistSync: true, FreelistType: bolt.FreelistMapType,
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	})
	c := &control{db: db, zipf: newZipf(entities), rnd: rand.New(rand.NewPCG(1, 0)), names: make([][]byte, entities), oldest: 1}
	err = db.Update(func(tx *bolt.Tx) error {
		if _, err := tx.CreateBucket(controlRequests); err != nil {
			return err
		}
		books, err := tx.CreateBucket(controlBooks)
		if err != nil {
			return err
		}
		for i := range c.names {
			c.names[i] = []byte(entityName(i))
			if err := books.Put(c.names[i], make([]byte, booksLength)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// commit stores the next operations in a transaction.
func (c *control) commit() error {
	return c.db.Update(func(tx *bolt.Tx) error {
		c.block++
		books, requests := tx.Bucket(controlBooks), tx.Bucket(controlRequests)
		requests.FillPercent = 0.95
		block := make([]byte, callers*requestLength)
		for i := range callers {
			c.put++
			value := make([]byte, booksLength)
			binary.BigEndian.PutUint64(value, c.put)
			if err := books.Put(c.names[c.zipf.choose(c.rnd)], value); err != nil {
				return err
			}
			binary.BigEndian.PutUint64(block[i*requestLength:], mix(c.put))
		}
		if err := requests.Put(binary.BigEndian.AppendUint64(nil, c.block), block); err != nil {
			return err
		}
		if c.block-c.oldest < keptBlocks+forgottenAtOnce {
			return nil
		}
		for end := c.oldest + forgottenAtOnce; c.oldest < end; c.oldest++ {
			if err := requests.Delete(binary.BigEndian.AppendUint64(nil, c.oldest)); err != nil {
				return err
			}
		}
		return nil
	})
}
