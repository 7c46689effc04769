package store

import (
	"bytes"
	"maps"
	"slices"

	"github.com/samya-db/samya/site/journal"
)

// shadowBase is a view of a base that a log may be carried over to without a change of
// the base: what is written stays in memory.
type shadowBase struct {
	base    journal.Base
	written map[journal.Bucket]*shadowBucket
	through *journal.Number
}

// shadowBucket is what was written to a bucket.
type shadowBucket struct {
	// below is the key below which nothing of the base counts any more.
	below []byte
	// values are the values by key; nil for a key that was deleted.
	values map[string][]byte
}

var _ journal.Base = (*shadowBase)(nil)

func newShadowBase(base journal.Base) *shadowBase {
	return &shadowBase{base: base, written: make(map[journal.Bucket]*shadowBucket)}
}

// Through implements journal.Base.
func (s *shadowBase) Through() (journal.Number, bool, error) {
	if s.through != nil {
		return *s.through, true, nil
	}
	return s.base.Through()
}

// Apply implements journal.Base. Nothing becomes durable.
func (s *shadowBase) Apply(ops []journal.Op, through *journal.Number) error {
	for i := range ops {
		op := &ops[i]
		b := s.written[op.Bucket]
		if b == nil {
			b = &shadowBucket{values: make(map[string][]byte)}
			s.written[op.Bucket] = b
		}
		switch op.Kind {
		case journal.Put:
			b.values[string(op.Key)] = append([]byte{}, op.Value...)
		case journal.Delete:
			b.values[string(op.Key)] = nil
		default:
			if bytes.Compare(op.Key, b.below) > 0 {
				b.below = slices.Clone(op.Key)
			}
			maps.DeleteFunc(b.values, func(k string, _ []byte) bool { return k < string(op.Key) })
		}
	}
	if through != nil {
		s.through = new(*through)
	}
	return nil
}

// Each implements journal.Base.
func (s *shadowBase) Each(bucket journal.Bucket, f func(key, value []byte) error) error {
	b := s.written[bucket]
	if b == nil {
		return s.base.Each(bucket, f)
	}
	keys := slices.Sorted(maps.Keys(b.values))
	until := func(end []byte, all bool) error {
		for len(keys) > 0 && (all || keys[0] < string(end)) {
			k := keys[0]
			keys = keys[1:]
			if v := b.values[k]; v != nil {
				if err := f([]byte(k), v); err != nil {
					return err
				}
			}
		}
		return nil
	}
	err := s.base.Each(bucket, func(k, v []byte) error {
		if bytes.Compare(k, b.below) < 0 {
			return nil
		}
		if err := until(k, false); err != nil {
			return err
		}
		if _, over := b.values[string(k)]; over {
			return nil // it comes with the keys written
		}
		return f(k, v)
	})
	if err != nil {
		return err
	}
	return until(nil, true)
}
