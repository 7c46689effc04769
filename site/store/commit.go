package store

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/samya-db/samya/site/core/packed"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/journal"
)

// Commit makes a batch of records durable, all or none. When it returns nil, they
// survive a loss of power. Otherwise nothing may be said of them, and the store must
// not be used again. Commit waits while the log is too long.
func (s *Store) Commit(r *stored.Records) error {
	if err := s.Append(r); err != nil {
		return err
	}
	return s.Sync()
}

// Append adds a batch of records to the log. The batch is durable once Sync has
// returned nil. If the store ends before, the batch may be there or not; if it is
// there, so are all earlier batches.
func (s *Store) Append(r *stored.Records) error {
	if err := s.append(r); err != nil {
		return fmt.Errorf("committing to the store: %w", err)
	}
	return nil
}

func (s *Store) append(r *stored.Records) error {
	if err := s.checkpoints.room(s); err != nil {
		return err
	}
	s.batch.Reset()
	if r.Version != 0 {
		if err := s.raise(r.Version); err != nil {
			return err
		}
	}
	if err := s.encode(r); err != nil {
		return err
	}
	if s.batch.Empty() {
		return nil
	}
	if _, err := s.journal.Append(&s.batch); err != nil {
		return s.checkpoints.report(err)
	}
	return nil
}

// Sync makes all earlier batches durable.
func (s *Store) Sync() error {
	if err := s.checkpoints.report(s.journal.Sync()); err != nil {
		return fmt.Errorf("syncing the store: %w", err)
	}
	s.checkpoints.committed(s)
	return nil
}

// Confirm returns nil if nobody else can have committed for the site before the call.
func (s *Store) Confirm() error {
	if err := s.checkpoints.report(s.journal.Confirm()); err != nil {
		return fmt.Errorf("confirming that the site is active here: %w", err)
	}
	return nil
}

// encode gathers in the batch the operations of records on the buckets.
func (s *Store) encode(r *stored.Records) error {
	return errors.Join(
		s.encodeEntities(r), s.encodeCatalogue(r), s.encodeRequests(r), s.encodeHolds(r), s.encodeForecasts(r), s.encodeGuard(r),
	)
}

// named returns a name as a key, valid until the next call of named or numbered.
func (s *Store) named(name string) []byte {
	s.key = append(s.key[:0], name...)
	return s.key
}

// numbered returns a number as a key, valid until the next call of named or numbered.
func (s *Store) numbered(n uint64) []byte {
	s.key = binary.BigEndian.AppendUint64(s.key[:0], n)
	return s.key
}

// put adds an encoded value to the batch.
func (s *Store) put(bucket journal.Bucket, key []byte, raw []byte, err error, what string, of any) error {
	if err != nil {
		return fmt.Errorf("encoding %s %v: %w", what, of, err)
	}
	s.batch.Put(bucket, key, raw)
	return nil
}

func (s *Store) encodeEntities(r *stored.Records) error {
	for _, name := range r.Deleted {
		s.batch.Delete(bucketBooks, s.named(name))
		s.batch.Delete(bucketEntities, s.named(name))
	}
	for i := range r.Books {
		b := &r.Books[i]
		s.batch.PutWith(bucketBooks, s.named(b.Name), func(dst []byte) []byte { return encodeBooks(dst, b) })
	}
	for i := range r.Entities {
		e := &r.Entities[i]
		raw, err := encodeEntity(e)
		if err := s.put(bucketEntities, s.named(e.Name), raw, err, "entity", e.Name); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) encodeCatalogue(r *stored.Records) error {
	if r.Catalogue != nil {
		raw, err := encodeCatalogue(r.Catalogue)
		if err := s.put(bucketCatalogue, keyCatalogue, raw, err, "the catalogue of generation", r.Catalogue.Generation); err != nil {
			return err
		}
	}
	for i := range r.Changes {
		c := &r.Changes[i]
		raw, err := encodeChange(c)
		if err := s.put(bucketChanges, s.numbered(c.Number), raw, err, "change", c.Number); err != nil {
			return err
		}
	}
	if r.ForgetChanges != 0 {
		s.batch.DeleteBelow(bucketChanges, s.numbered(r.ForgetChanges))
	}
	return nil
}

func (s *Store) encodeRequests(r *stored.Records) error {
	if len(r.Block.Records) > 0 {
		records := packed.Block(s.packed, &r.Block)
		if !r.Block.Whole() {
			s.packed = records
		}
		s.batch.PutWith(bucketRequests, s.numbered(r.Block.Sequence), func(dst []byte) []byte {
			return appendBlock(dst, &r.Block, records)
		})
	}
	if r.ForgetBlocks != 0 {
		s.batch.DeleteBelow(bucketRequests, s.numbered(r.ForgetBlocks))
	}
	return nil
}
