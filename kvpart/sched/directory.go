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

// Insert adds a key at any time: on the partition, or where a new key goes if that is
// Unplaced. It fails with ErrOptions if the partition is out of range or the key has
// an entry, vacant ones included.
func (s *Scheduler[V]) Insert(key string, partition int, v V) (*Entry[V], error) {
	if err := s.valid(partition); err != nil {
		return nil, err
	}
	s.dir.index.Lock()
	defer s.dir.index.Unlock()
	if s.dir.get(key) != nil {
		return nil, duplicate(key)
	}
	if partition == Unplaced {
		partition = s.place.one(key)
	}
	e := &Entry[V]{key: key, Present: true, Value: v}
	e.where.Store(pack(partition, partition, 0))
	s.dir.add(e)
	return e, nil
}

// Restore is Insert of a key that is there before requests are.
func (s *Scheduler[V]) Restore(key string, partition int, v V) error {
	_, err := s.Insert(key, partition, v)
	return err
}

// Remove takes an entry out of the scheduler for good, at any time. It does not wait
// for requests that use it: those that were dispatched run, and learn from Gone if
// they must know. None is dispatched from then on: one of Of fails with ErrNoEntry, one
// of keys does not find it. The key may be inserted at once, as another entry, which
// keeps no order with the one before. An entry that is gone is left alone.
func (s *Scheduler[V]) Remove(e *Entry[V]) {
	s.dir.index.Lock()
	defer s.dir.index.Unlock()
	if e.dead.Load() {
		return
	}
	// First out of reach: whoever finds it dead and looks the key up again does not
	// come upon it once more.
	s.dir.remove(e)
	e.dead.Store(true)
}
