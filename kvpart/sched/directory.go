package sched

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/tidwall/btree"
)

// directory finds entries by key, and in the order of keys. Its contents change with
// index locked.
type directory[V any] struct {
	seed   maphash.Seed
	shards [shards]shard[V]

	// fixed is held for reading by a request that keeps new keys away, perhaps while a
	// job on its partitions runs. Whoever adds a key holds fixed, and then index.
	fixed sync.RWMutex
	// index is never held for long.
	index sync.RWMutex
	keys  btree.Map[string, *Entry[V]]
	// version counts the entries ever added.
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

// get returns the entry of key, nil if the key has none.
func (d *directory[V]) get(key string) *Entry[V] {
	sh := d.shard(key)
	sh.RLock()
	e := sh.entries[key]
	sh.RUnlock()
	return e
}

// add adds an entry, with fixed and index locked. The key must not have an entry.
func (d *directory[V]) add(e *Entry[V]) {
	d.keys.Set(e.key, e)
	sh := d.shard(e.key)
	sh.Lock()
	if sh.entries == nil {
		sh.entries = make(map[string]*Entry[V])
	}
	sh.entries[e.key] = e
	sh.Unlock()
	// Only now, with the entry visible: a goroutine that missed the entry sees another
	// version once the request that made it goes on.
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

// collect appends the entries of the first limit keys not below from. index must be
// locked, at least for reading.
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

// Entry returns the entry of key, nil if the key has none. The entry may be removed at
// any time.
func (s *Scheduler[V]) Entry(key string) *Entry[V] { return s.dir.get(key) }

// Keys returns the number of entries, vacant entries included.
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

// Insert adds a key at any time: on the partition, or where a new key goes if partition
// is Unplaced. It fails if the partition is out of range or the key has
// an entry, even a vacant entry.
func (s *Scheduler[V]) Insert(key string, partition int, v V) (*Entry[V], error) {
	if err := s.valid(partition); err != nil {
		return nil, err
	}
	s.dir.fixed.Lock()
	defer s.dir.fixed.Unlock()
	s.dir.index.Lock()
	defer s.dir.index.Unlock()
	if s.dir.get(key) != nil {
		return nil, duplicate(key)
	}
	if partition == Unplaced {
		partition = s.newHome(key, new(batch))
	}
	e := &Entry[V]{key: key, Present: true, Value: v}
	e.where.Store(pack(partition, partition, 0))
	s.dir.add(e)
	return e, nil
}

// Restore is Insert for a key that exists before any request.
func (s *Scheduler[V]) Restore(key string, partition int, v V) error {
	_, err := s.Insert(key, partition, v)
	return err
}

// Remove takes an entry out of the scheduler for good, at any time. It does not wait for
// requests that use the entry. Requests dispatched before still run; Gone tells them if
// they must know. No request is dispatched later: a request of Of fails with ErrNoEntry,
// a request of keys does not find the entry. The key may be inserted at once, as another
// entry, without an order between the requests of the two entries. Removing an entry that
// is gone does nothing.
func (s *Scheduler[V]) Remove(e *Entry[V]) {
	s.dir.index.Lock()
	defer s.dir.index.Unlock()
	if e.dead.Load() {
		return
	}
	// First out of reach: a goroutine that finds e dead and looks the key up again does
	// not get e once more.
	s.dir.remove(e)
	e.dead.Store(true)
}

// neighbours returns the entries below and above a new key, nil if there is none. The index
// is locked.
func (d *directory[V]) neighbours(key string) (below, above *Entry[V]) {
	d.keys.Descend(key, func(_ string, e *Entry[V]) bool { below = e; return false })
	d.keys.Ascend(key, func(_ string, e *Entry[V]) bool { above = e; return false })
	return below, above
}
