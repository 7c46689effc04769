package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	bolt "go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"

	storev1 "github.com/samya-db/samya/proto/samya/store/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/wire"
)

func (s *Store) putGuard(tx *bolt.Tx, r *core.Records) error {
	b := tx.Bucket(bucketGuard)
	if r.Commits != 0 {
		binary.BigEndian.PutUint64(s.commits[:], uint64(r.Commits))
		if err := b.Put(keyCommits, s.commits[:]); err != nil {
			return fmt.Errorf("storing the number of the commit: %w", err)
		}
	}
	for i := range r.Remembered {
		m := &r.Remembered[i]
		raw, err := proto.Marshal(&storev1.Remembered{Mark: wire.Mark(m.Mark), Before: uint64(m.Before), Served: m.Served})
		if err != nil {
			return fmt.Errorf("encoding the mark of site %q: %w", m.Site, err)
		}
		if err := b.Put(memberKey(m.Site), raw); err != nil {
			return fmt.Errorf("storing the mark of site %q: %w", m.Site, err)
		}
	}
	return nil
}

func memberKey(site core.SiteID) []byte {
	return append(slices.Clip(prefixMember), site...)
}

func loadGuard(b *bolt.Bucket, r *core.Restored) error {
	incarnation, err := numberAt(b, keyIncarnation)
	if err == nil && incarnation == 0 {
		err = errNumber
	}
	if err != nil {
		return fmt.Errorf("incarnation: %w", err)
	}
	r.Incarnation = core.Incarnation(incarnation)
	if b.Get(keyCommits) != nil {
		commits, err := numberAt(b, keyCommits)
		if err != nil {
			return fmt.Errorf("number of the last commit: %w", err)
		}
		r.Commits = core.Commits(commits)
	}
	c := b.Cursor()
	for k, v := c.Seek(prefixMember); bytes.HasPrefix(k, prefixMember); k, v = c.Next() {
		site := core.SiteID(k[len(prefixMember):])
		var p storev1.Remembered
		if err := proto.Unmarshal(v, &p); err != nil {
			return fmt.Errorf("mark of site %q: %w", site, err)
		}
		r.Remembered = append(r.Remembered, core.Remembered{
			Site: site, Mark: wire.MarkOf(p.GetMark()), Before: core.Run(p.GetBefore()), Served: p.GetServed(),
		})
	}
	return nil
}

func numberAt(b *bolt.Bucket, key []byte) (uint64, error) {
	raw := b.Get(key)
	if len(raw) != 8 {
		return 0, fmt.Errorf("%w: %x", errNumber, raw)
	}
	return binary.BigEndian.Uint64(raw), nil
}
