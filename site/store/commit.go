package store

import (
	"bytes"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"github.com/samya-db/samya/site/core"
)

// Commit makes a batch of records durable in one transaction: when it returns
// nil they survive a loss of power, else nothing may be said of them and the
// store must not be used again.
func (s *Store) Commit(r *core.Records) error {
	err := s.db.Update(func(tx *bolt.Tx) error {
		// Values put must stay unchanged until the transaction ends, so the
		// scratch memory only grows within it.
		s.scratch = s.scratch[:0]
		if err := s.putEntities(tx, r); err != nil {
			return err
		}
		if err := putCatalogue(tx, r); err != nil {
			return err
		}
		if err := s.putRequests(tx, r); err != nil {
			return err
		}
		if err := putHolds(tx, r); err != nil {
			return err
		}
		if err := s.putForecasts(tx, r); err != nil {
			return err
		}
		return s.putGuard(tx, r)
	})
	if err != nil {
		return fmt.Errorf("committing to the store: %w", err)
	}
	return nil
}

func (s *Store) putEntities(tx *bolt.Tx, r *core.Records) error {
	books, entities := tx.Bucket(bucketBooks), tx.Bucket(bucketEntities)
	for _, name := range r.Deleted {
		if err := books.Delete([]byte(name)); err != nil {
			return fmt.Errorf("deleting the books of %q: %w", name, err)
		}
		if err := entities.Delete([]byte(name)); err != nil {
			return fmt.Errorf("deleting entity %q: %w", name, err)
		}
	}
	for i := range r.Books {
		from := len(s.scratch)
		raw, err := encodeBooks(s.scratch, &r.Books[i])
		if err != nil {
			return fmt.Errorf("encoding the books of %q: %w", r.Books[i].Name, err)
		}
		s.scratch = raw
		if err := books.Put([]byte(r.Books[i].Name), raw[from:len(raw):len(raw)]); err != nil {
			return fmt.Errorf("storing the books of %q: %w", r.Books[i].Name, err)
		}
	}
	for i := range r.Entities {
		raw, err := encodeEntity(&r.Entities[i])
		if err != nil {
			return fmt.Errorf("encoding entity %q: %w", r.Entities[i].Name, err)
		}
		if err := entities.Put([]byte(r.Entities[i].Name), raw); err != nil {
			return fmt.Errorf("storing entity %q: %w", r.Entities[i].Name, err)
		}
	}
	return nil
}

func putCatalogue(tx *bolt.Tx, r *core.Records) error {
	if r.Catalogue != nil {
		raw, err := encodeCatalogue(r.Catalogue)
		if err != nil {
			return fmt.Errorf("encoding the catalogue: %w", err)
		}
		if err := tx.Bucket(bucketCatalogue).Put(keyCatalogue, raw); err != nil {
			return fmt.Errorf("storing the catalogue: %w", err)
		}
	}
	changes := tx.Bucket(bucketChanges)
	for i := range r.Changes {
		raw, err := encodeChange(&r.Changes[i])
		if err != nil {
			return fmt.Errorf("encoding change %d: %w", r.Changes[i].Number, err)
		}
		if err := changes.Put(sequenceKey(r.Changes[i].Number), raw); err != nil {
			return fmt.Errorf("storing change %d: %w", r.Changes[i].Number, err)
		}
	}
	return forgetBelow(changes, r.ForgetChanges)
}

func (s *Store) putRequests(tx *bolt.Tx, r *core.Records) error {
	requests := tx.Bucket(bucketRequests)
	// Blocks only ever join at the end: full pages need no room for more.
	requests.FillPercent = 0.95
	if len(r.Block.Records) > 0 {
		from := len(s.scratch)
		raw, packed, err := encodeBlock(s.scratch, s.packed, &r.Block)
		if err != nil {
			return fmt.Errorf("encoding request block %d: %w", r.Block.Sequence, err)
		}
		s.scratch, s.packed = raw, packed
		if err := requests.Put(sequenceKey(r.Block.Sequence), raw[from:len(raw):len(raw)]); err != nil {
			return fmt.Errorf("storing request block %d: %w", r.Block.Sequence, err)
		}
	}
	return forgetBelow(requests, r.ForgetBlocks)
}

// forgetBelow deletes the numbered keys below n, which stand at the front.
func forgetBelow(b *bolt.Bucket, n uint64) error {
	if n == 0 {
		return nil
	}
	end := sequenceKey(n)
	c := b.Cursor()
	for k, _ := c.First(); k != nil && bytes.Compare(k, end) < 0; k, _ = c.First() {
		if err := c.Delete(); err != nil {
			return fmt.Errorf("forgetting key %x: %w", k, err)
		}
	}
	return nil
}
