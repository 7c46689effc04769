package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	storev1 "github.com/samya-db/samya/proto/samya/store/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/wire"
	"google.golang.org/protobuf/proto"
)

func (s *Store) encodeGuard(r *stored.Records) error {
	if r.Commits != 0 {
		s.batch.PutWith(bucketGuard, keyCommits, func(dst []byte) []byte {
			return binary.BigEndian.AppendUint64(dst, uint64(r.Commits))
		})
	}
	if r.Clock != nil {
		s.batch.PutWith(bucketGuard, keyClock, func(dst []byte) []byte {
			return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, uint64(r.Clock.Own)), uint64(r.Clock.Wall))
		})
	}
	for i := range r.Remembered {
		m := &r.Remembered[i]
		raw, err := proto.Marshal(&storev1.Remembered{Mark: wire.Mark(m.Mark), Before: uint64(m.Before), Served: m.Served})
		if err := s.put(bucketGuard, memberKey(m.Site), raw, err, "the mark of site", m.Site); err != nil {
			return err
		}
	}
	return nil
}

func memberKey(site core.SiteID) []byte {
	return append(slices.Clip(prefixMember), site...)
}

// guarded takes up a key of the guard's bucket.
func guarded(k, v []byte, r *stored.Restored) error {
	switch {
	case bytes.Equal(k, keyIncarnation):
		n, err := numberOf(v)
		if err == nil && n == 0 {
			err = errNumber
		}
		if err != nil {
			return fmt.Errorf("incarnation: %w", err)
		}
		r.Incarnation = message.Incarnation(n)
	case bytes.Equal(k, keyCommits):
		n, err := numberOf(v)
		if err != nil {
			return fmt.Errorf("number of the last transaction: %w", err)
		}
		r.Commits = message.Commits(n)
	case bytes.Equal(k, keyClock):
		if len(v) != 16 {
			return fmt.Errorf("clock: %w: %x", errNumber, v)
		}
		r.Clock = &stored.Clock{Own: int64(binary.BigEndian.Uint64(v)), Wall: int64(binary.BigEndian.Uint64(v[8:]))} //nolint:gosec // as they were stored
	case bytes.HasPrefix(k, prefixMember):
		site := core.SiteID(k[len(prefixMember):])
		var p storev1.Remembered
		if err := proto.Unmarshal(v, &p); err != nil {
			return fmt.Errorf("mark of site %q: %w", site, err)
		}
		r.Remembered = append(r.Remembered, stored.Remembered{
			Site: site, Mark: wire.MarkOf(p.GetMark()), Before: message.Run(p.GetBefore()), Served: p.GetServed(),
		})
	}
	return nil
}

var errNumber = errors.New("a value that is no number")

func numberOf(raw []byte) (uint64, error) {
	if len(raw) != 8 {
		return 0, fmt.Errorf("%w: %x", errNumber, raw)
	}
	return binary.BigEndian.Uint64(raw), nil
}
