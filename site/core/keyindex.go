package core

import (
	"hash/maphash"

	"github.com/samya-db/samya/site/core/attempt"
)

// keyIndex finds numbers by keys. It holds no keys: the caller tells whether a number
// belongs to the key. A Go map of the records needs several accesses to uncached memory,
// a keyIndex a single access. Among millions of records these accesses are most of the
// cost of a request.
//
// It consists of many small tables, each of which grows by itself, so that no request
// waits for the growth of a large table.
type keyIndex struct {
	// seed keeps clients that choose request ids from making many collide. No outcome
	// depends on it: nothing is visited in the order of the index.
	seed   maphash.Seed
	shards [indexShards]indexShard
	len    int
}

// indexShard is open addressing with linear probing. A slot is 0, or has a part of the
// key's hash above its number.
type indexShard struct {
	slots []uint64
	used  int
}

const (
	indexShards = 1024
	// indexSlots is the first number of slots of a shard.
	indexSlots = 8
)

// newKeyIndex makes the index of a table that begins with so many records. If most shards
// get some, all begin in a single piece of memory.
func newKeyIndex(records int) *keyIndex {
	x := &keyIndex{seed: maphash.MakeSeed()}
	if records >= indexShards/2 {
		slots := make([]uint64, indexShards*indexSlots)
		for i := range x.shards {
			x.shards[i].slots, slots = slots[:indexSlots:indexSlots], slots[indexSlots:]
		}
	}
	return x
}

// locate returns the place of a key: its shard, and its tag, which is not 0.
func (x *keyIndex) locate(key *attempt.Key) (*indexShard, uint32) {
	h := maphash.Bytes(x.seed, key[:])
	return &x.shards[h%indexShards], uint32(h>>32) | 1<<31
}

// find returns the slot with a tag and a number that is accepts, or else the free slot
// for them, and whether it was found.
func (s *indexShard) find(tag uint32, is func(number uint32) bool) (int, bool) {
	if len(s.slots) == 0 {
		return 0, false
	}
	mask := len(s.slots) - 1
	for i := int(tag) & mask; ; i = (i + 1) & mask {
		switch slot := s.slots[i]; {
		case slot == 0:
			return i, false
		case uint32(slot>>32) == tag && is(uint32(slot)):
			return i, true
		}
	}
}

func (s *indexShard) number(at int) uint32 { return uint32(s.slots[at]) }

func (s *indexShard) set(at int, tag, number uint32) {
	s.slots[at] = uint64(tag)<<32 | uint64(number)
}

// insert adds a tag and number that were not found.
func (s *indexShard) insert(tag, number uint32) {
	if s.full() {
		s.grow()
	}
	at, _ := s.find(tag, func(uint32) bool { return false })
	s.set(at, tag, number)
	s.used++
}

// full reports whether the next insert makes the shard grow.
func (s *indexShard) full() bool { return 8*(s.used+1) > 5*len(s.slots) }

func (s *indexShard) grow() {
	old := s.slots
	s.slots = make([]uint64, max(indexSlots, 2*len(old)))
	for _, slot := range old {
		if slot != 0 {
			at, _ := s.find(uint32(slot>>32), func(uint32) bool { return false })
			s.slots[at] = slot
		}
	}
}

// remove frees a slot, and moves up slots that a search would not find behind a free
// slot.
func (s *indexShard) remove(at int) {
	mask := len(s.slots) - 1
	for i := (at + 1) & mask; s.slots[i] != 0; i = (i + 1) & mask {
		home := int(s.slots[i]>>32) & mask
		if (i-home)&mask >= (i-at)&mask {
			s.slots[at] = s.slots[i]
			at = i
		}
	}
	s.slots[at] = 0
	s.used--
}
