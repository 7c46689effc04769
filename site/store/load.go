package store

import (
	"encoding/binary"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"github.com/samya-db/samya/site/core"
)

var (
	errKey    = errors.New("a key that is no number")
	errNumber = errors.New("a value that is no number")
)

// Load reads everything back, as a restarted core needs it.
func (s *Store) Load() (core.Restored, error) {
	var r core.Restored
	err := s.db.View(func(tx *bolt.Tx) error {
		if raw := tx.Bucket(bucketCatalogue).Get(keyCatalogue); raw != nil {
			c, err := decodeCatalogue(raw)
			if err != nil {
				return err
			}
			r.Catalogue = c
		}
		if err := loadGuard(tx.Bucket(bucketGuard), &r); err != nil {
			return err
		}
		return errors.Join(
			each(tx.Bucket(bucketEntities), &r.Entities, byName(decodeEntity)),
			each(tx.Bucket(bucketBooks), &r.Books, byName(decodeBooks)),
			each(tx.Bucket(bucketChanges), &r.Changes, byNumber(decodeChange)),
			each(tx.Bucket(bucketRequests), &r.Blocks, byNumber(decodeBlock)),
			each(tx.Bucket(bucketClaims), &r.Claims, byNumber(decodeClaim)),
			each(tx.Bucket(bucketLeases), &r.Leases, byNumber(decodeLease)),
			each(tx.Bucket(bucketForecasts), &r.Forecasts, byName(decodeForecast)),
		)
	})
	if err != nil {
		return core.Restored{}, fmt.Errorf("loading the store: %w", err)
	}
	return r, nil
}

func byName[T any](decode func(string, []byte) (T, error)) func(k, v []byte) (T, error) {
	return func(k, v []byte) (T, error) { return decode(string(k), v) }
}

func byNumber[T any](decode func(uint64, []byte) (T, error)) func(k, v []byte) (T, error) {
	return func(k, v []byte) (T, error) {
		if len(k) != 8 {
			var zero T
			return zero, fmt.Errorf("%w: %x", errKey, k)
		}
		return decode(binary.BigEndian.Uint64(k), v)
	}
}

func each[T any](b *bolt.Bucket, into *[]T, decode func(k, v []byte) (T, error)) error {
	return b.ForEach(func(k, v []byte) error {
		t, err := decode(k, v)
		if err == nil {
			*into = append(*into, t)
		}
		return err
	})
}
