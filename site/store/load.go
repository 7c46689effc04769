package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	storev1 "github.com/samya-db/samya/proto/samya/store/v1"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/journal"
	"google.golang.org/protobuf/proto"
)

var errKey = errors.New("a key that is no number")

// Load reads everything back, as a restarted core needs it, except for the blocks of
// requests: these are read when EachBlock of the result asks for them, before the next
// commit and before Close. No commit and no backup may be under way.
func (s *Store) Load() (stored.Restored, error) {
	var r stored.Restored
	err := s.checkpoints.whole(s)
	if err == nil {
		err = errors.Join(
			s.base.Each(bucketIdentity, func(k, v []byte) error { return identified(k, v, &r) }),
			s.base.Each(bucketCatalogue, func(k, v []byte) error {
				if !bytes.Equal(k, keyCatalogue) {
					return nil
				}
				var err error
				r.Catalogue, err = decodeCatalogue(v)
				return err
			}),
			s.base.Each(bucketGuard, func(k, v []byte) error { return guarded(k, v, &r) }),
			each(s.base, bucketEntities, &r.Entities, byName(decodeEntity)),
			each(s.base, bucketBooks, &r.Books, byName(decodeBooks)),
			each(s.base, bucketChanges, &r.Changes, byNumber(decodeChange)),
			s.findBlocks(&r),
			each(s.base, bucketClaims, &r.Claims, byNumber(decodeClaim)),
			each(s.base, bucketLeases, &r.Leases, byNumber(decodeLease)),
			each(s.base, bucketForecasts, &r.Forecasts, byName(decodeForecast)),
			s.loaded(),
		)
	}
	if err != nil {
		return stored.Restored{}, fmt.Errorf("loading the store: %w", err)
	}
	return r, nil
}

// identified takes up a key of the identity's bucket.
func identified(k, v []byte, r *stored.Restored) error {
	if !bytes.Equal(k, keyIdentity) {
		return nil
	}
	var identity storev1.Identity
	if err := proto.Unmarshal(v, &identity); err != nil {
		return fmt.Errorf("%w: %s: %w", errFormat, k, err)
	}
	var err error
	r.Version, err = versionOf(&identity)
	return err
}

func byName[T any](decode func(string, []byte) (T, error)) func(k, v []byte) (T, error) {
	return func(k, v []byte) (T, error) { return decode(string(k), v) }
}

func byNumber[T any](decode func(uint64, []byte) (T, error)) func(k, v []byte) (T, error) {
	return func(k, v []byte) (T, error) {
		number, err := numberedBy(k)
		if err != nil {
			var zero T
			return zero, err
		}
		return decode(number, v)
	}
}

func numberedBy(key []byte) (uint64, error) {
	if len(key) != 8 {
		return 0, fmt.Errorf("%w: %x", errKey, key)
	}
	return binary.BigEndian.Uint64(key), nil
}

// each decodes a bucket. It counts the keys first: a slice of many large records that
// grows copies them several times.
func each[T any](base journal.Base, b journal.Bucket, into *[]T, decode func(k, v []byte) (T, error)) error {
	keys := 0
	if err := base.Each(b, func(_, _ []byte) error { keys++; return nil }); err != nil {
		return err
	}
	*into = slices.Grow(*into, keys)
	return base.Each(b, func(k, v []byte) error {
		t, err := decode(k, v)
		if err == nil {
			*into = append(*into, t)
		}
		return err
	})
}
