package sched

import (
	"fmt"
	"hash/fnv"
	"io"
	"sync/atomic"
)

// Placement says to which partition a new key goes.
type Placement uint8

// The placements.
const (
	// Hash places a key by its hash, the same in each process.
	Hash Placement = iota
	// RoundRobin places each new key on the partition after its predecessor's.
	RoundRobin
	// Together places all new keys of a request on the same partition, and the new keys
	// of the next request on the following partition.
	Together
	// Beside places a new key on the partition of its neighbours, the next keys below and
	// above, where both are on the same; else like RoundRobin, as before the first switch.
	Beside
	// Within places a new key on the partition of the next key below, or else of the first
	// key above: ranges of keys stay whole. The first key goes to partition 0.
	Within
)

// newHome places a new key. The index is locked.
func (s *Scheduler[V]) newHome(key string, b *batch) int {
	switch s.place.kind {
	case Beside:
		if p := s.beside(key); p != Unplaced {
			return p
		}
	case Within:
		return s.within(key)
	case Hash, RoundRobin, Together:
	}
	return b.of(&s.place, key)
}

// beside is the partition of a key's neighbours, Unplaced if they differ.
func (s *Scheduler[V]) beside(key string) int {
	epoch := s.epoch()
	if epoch == 0 {
		return Unplaced // the keys lie as they came, and say nothing about each other
	}
	below, above := s.dir.neighbours(key)
	if below == nil || above == nil || below.At(epoch) != above.At(epoch) {
		return Unplaced
	}
	return below.At(epoch)
}

// within is the partition of the range that a key falls into.
func (s *Scheduler[V]) within(key string) int {
	epoch := s.epoch()
	below, above := s.dir.neighbours(key)
	for _, e := range []*Entry[V]{below, above} {
		if e != nil && e.At(epoch) != Unplaced {
			return e.At(epoch)
		}
	}
	return 0
}

// placer places new keys.
type placer struct {
	kind       Placement
	partitions int
	next       atomic.Uint64
}

// one places a key alone.
func (p *placer) one(key string) int {
	if p.kind == Hash {
		return p.hash(key)
	}
	return p.turn()
}

func (p *placer) turn() int { return int((p.next.Add(1) - 1) % uint64(p.partitions)) }

func (p *placer) hash(key string) int {
	h := fnv.New64a()
	_, _ = io.WriteString(h, key) // never fails
	x := h.Sum64()
	// The low bits of FNV alone are poor.
	x ^= x >> 32
	return int(x % uint64(p.partitions))
}

// batch places the new keys of a request.
type batch struct {
	at     int
	placed bool
}

// of places a key of the request.
func (b *batch) of(p *placer, key string) int {
	if p.kind != Together {
		return p.one(key)
	}
	if !b.placed {
		b.at, b.placed = p.turn(), true
	}
	return b.at
}

func (s *Scheduler[V]) valid(partition int) error {
	if partition != Unplaced && (partition < 0 || partition >= len(s.parts)) {
		return fmt.Errorf("%w: partition %d, want 0 to %d", errOptions, partition, len(s.parts)-1)
	}
	return nil
}

func duplicate(key string) error {
	return fmt.Errorf("%w: key %q has an entry", errOptions, key)
}
