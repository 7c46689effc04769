package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/samya-db/samya/site/backup"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/journal"
)

// Verified tells of the content of a backup.
type Verified struct {
	backup.Header
	// Bytes is the length of the backup, Records the number of all stored values in it.
	Bytes   int64
	Records int
	// Entities and Leases count the entities and the leases in it.
	Entities, Leases int
}

// Verify reads a backup to its end. It checks all sums, decodes every value, and compares
// the header with the data. Its error is backup.ErrDamaged, or names the file's fault.
func Verify(from io.Reader) (Verified, error) {
	v, err := eachRecord(from, func(journal.Op) error { return nil })
	if err != nil {
		return Verified{}, fmt.Errorf("verifying the backup: %w", err)
	}
	return v, nil
}

// eachRecord verifies a backup, and calls f with the operation that stores each record.
// The operation's memory is valid during the call. f is called before the backup as a
// whole is known to be right.
func eachRecord(from io.Reader, f func(journal.Op) error) (v Verified, err error) {
	r, err := backup.NewReader(from)
	if err != nil {
		return v, err
	}
	defer r.Close()
	v.Header = r.Header()
	own := held{}
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return v, err
		}
		b := journal.Bucket(rec.Bucket)
		if err := own.take(b, rec.Key, rec.Value); err != nil {
			return v, fmt.Errorf("%w: %w", errFormat, err)
		}
		if err := f(journal.Op{Kind: journal.Put, Bucket: b, Key: rec.Key, Value: rec.Value}); err != nil {
			return v, err
		}
		v.Records++
		switch b {
		case bucketEntities:
			v.Entities++
		case bucketLeases:
			v.Leases++
		}
	}
	v.Bytes = r.Size()
	return v, own.are(&v.Header)
}

// decoders check the values of the buckets that held does not keep.
var decoders = map[journal.Bucket]func(k, v []byte) error{
	bucketBooks: decodes(byName(decodeBooks)), bucketEntities: decodes(byName(decodeEntity)),
	bucketChanges: decodes(byNumber(decodeChange)), bucketRequests: decodes(byNumber(decodeBlock)),
	bucketForecasts: decodes(byName(decodeForecast)), bucketClaims: decodes(byNumber(decodeClaim)),
	bucketLeases: decodes(byNumber(decodeLease)),
}

func decodes[T any](decode func(k, v []byte) (T, error)) func(k, v []byte) error {
	return func(k, v []byte) error {
		_, err := decode(k, v)
		return err
	}
}

// held are the records of a backup that name its owner and the members.
type held map[journal.Bucket][][2][]byte

// maxHeld bounds the records of a bucket that are kept: a few, and one for each member.
const maxHeld = 1024

// take checks a record, and keeps it if its bucket is one of held.
func (h held) take(b journal.Bucket, key, value []byte) error {
	switch b {
	case bucketIdentity, bucketGuard, bucketCatalogue:
		if len(h[b]) == maxHeld {
			return fmt.Errorf("bucket %q has more than %d records", bucketNames[b], maxHeld)
		}
		h[b] = append(h[b], [2][]byte{bytes.Clone(key), bytes.Clone(value)})
		return nil
	}
	decode := decoders[b]
	if decode == nil {
		return fmt.Errorf("%w: %d", errBucket, b)
	}
	return decode(key, value)
}

// Each is as in journal.Base.
func (h held) Each(b journal.Bucket, f func(key, value []byte) error) error {
	for _, r := range h[b] {
		if err := f(r[0], r[1]); err != nil {
			return err
		}
	}
	return nil
}

// are returns an error if the data is not the header's, or of an unknown format.
func (h held) are(want *backup.Header) error {
	if _, _, _, err := claim(h, &Options{Cluster: want.Cluster, Site: core.SiteID(want.Site)}); err != nil {
		return err
	}
	got, err := headerOf(h)
	if err != nil {
		return err
	}
	if got.Incarnation != want.Incarnation || got.Commit != want.Commit || !slices.Equal(got.Members, want.Members) {
		return fmt.Errorf("%w: its header is of incarnation %016x at commit %d, its data of incarnation %016x at commit %d",
			backup.ErrDamaged, want.Incarnation, want.Commit, got.Incarnation, got.Commit)
	}
	return nil
}

// restored returns an error if a directory does not hold the data of a backup.
func restored(r *stored.Restored, v *Verified) error {
	if uint64(r.Incarnation) != v.Incarnation || uint64(r.Commits) != v.Commit || len(r.Entities) != v.Entities || len(r.Leases) != v.Leases {
		return fmt.Errorf("%w: the restored data has incarnation %016x, commit %d and %d entities, the backup %016x, %d and %d",
			errFormat, uint64(r.Incarnation), r.Commits, len(r.Entities), v.Incarnation, v.Commit, v.Entities)
	}
	return nil
}
