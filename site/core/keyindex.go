package core

import "hash/maphash"

// keyIndex finds numbers by the keys that they stand for. It holds no keys: who
// asks tells whether a number is that of the key. A Go map of the records costs
// several accesses to memory that is in no cache where this has one, and that is
// most of what a request costs among millions.
//
// It is many small tables, each of which grows by itself, so that no request waits
// for the growth of a large one.
type keyIndex struct {
	// seed keeps who chooses request ids from having many meet in one place. No
	// outcome depends on it: nothing is visited in the order of the index.
	seed   maphash.Seed
	shards [indexShards]indexShard
	len    int
}

// indexShard is open addressing with linear probing: a slot is 0 or has a part of
// the key's hash above its number.
type indexShard struct {
	slots []uint64
	used  int
}

const (
	indexShards = 1024
	// indexSlots is how many slots a shard begins with.
	indexSlots = 8
)

// newKeyIndex makes the index of a table that begins with so many records. Where
// most shards get some, all begin in one piece of memory.
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

// locate returns where a key belongs: its shard, and its tag, which is not 0.
func (x *keyIndex) locate(key *RequestKey) (*indexShard, uint32) {
	h := maphash.Bytes(x.seed, key[:])
	return &x.shards[h%indexShards], uint32(h>>32) | 1<<31
}

// find returns the slot of a tag whose number is says to be the right one, or of
// the free slot where it belongs, and whether it was found.
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

// insert puts in what was not found.
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

// remove frees a slot, and moves up what would not be found behind a free one.
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
