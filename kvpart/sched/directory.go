package sched

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/tidwall/btree"
)

// directory finds entries by key, and in the order of keys. What it holds changes
// with index locked.
type directory[V any] struct {
	seed   maphash.Seed
	shards [shards]shard[V]

	index sync.RWMutex
	keys  btree.Map[string, *Entry[V]]
	// version counts the entries that came.
	version atomic.Uint64
}

const shards = 256

type shard[V any] struct {
	sync.RWMutex
	entries map[string]*Entry[V]
	_       [64]byte // a cache line of its own
}

func (d *directory[V]) init() {
	d.seed = maphash.MakeSeed()
}

func (d *directory[V]) shard(key string) *shard[V] {
	return &d.shards[maphash.String(d.seed, key)%shards]
}

// get returns the entry of key, nil if there is none.
func (d *directory[V]) get(key string) *Entry[V] {
	sh := d.shard(key)
	sh.RLock()
	e := sh.entries[key]
	sh.RUnlock()
	return e
}

// add adds an entry with index locked. There must be none of its key.
func (d *directory[V]) add(e *Entry[V]) {
	d.keys.Set(e.key, e)
	sh := d.shard(e.key)
	sh.Lock()
	if sh.entries == nil {
		sh.entries = make(map[string]*Entry[V])
	}
	sh.entries[e.key] = e
	sh.Unlock()
	// After it can be found: whoever did not find it sees another version once a
	// request that made it goes on.
	d.version.Add(1)
}

// remove removes an entry with index locked.
func (d *directory[V]) remove(e *Entry[V]) {
	d.keys.Delete(e.key)
	sh := d.shard(e.key)
	sh.Lock()
	delete(sh.entries, e.key)
	sh.Unlock()
}

// collect appends the entries of the first limit keys not below from, with index
// locked for reading at least.
func (d *directory[V]) collect(dst []*Entry[V], from string, limit int) []*Entry[V] {
	if limit <= 0 {
		return dst
	}
	d.keys.Ascend(from, func(_ string, e *Entry[V]) bool {
		dst = append(dst, e)
		limit--
		return limit > 0
	})
	return dst
}

// Entry returns the entry of key, nil if there is none. It may be removed at any time.
func (s *Scheduler[V]) Entry(key string) *Entry[V] { return s.dir.get(key) }

// Keys returns how many entries there are, vacant ones included.
func (s *Scheduler[V]) Keys() int {
	s.dir.index.RLock()
	defer s.dir.index.RUnlock()
	return s.dir.keys.Len()
}

// Entries appends the entries of the first limit keys not below from to dst, in
// ascending order.
func (s *Scheduler[V]) Entries(dst []*Entry[V], from string, limit int) []*Entry[V] {
	s.dir.index.RLock()
	defer s.dir.index.RUnlock()
	return s.dir.collect(dst, from, limit)
}

// Restore adds a key that is there before requests are: on the partition, or where
// a new key goes if that is Unplaced. It fails with ErrOptions if the partition is
// out of range or the key has an entry.
func (s *Scheduler[V]) Restore(key string, partition int, v V) error {
	if err := s.valid(partition); err != nil {
		return err
	}
	s.dir.index.Lock()
	defer s.dir.index.Unlock()
	if s.dir.get(key) != nil {
		return duplicate(key)
	}
	if partition == Unplaced {
		partition = s.place.one(key)
	}
	e := &Entry[V]{key: key, Present: true, Value: v}
	e.where.Store(pack(partition, partition, 0))
	s.dir.add(e)
	return nil
}
