package core

import (
	"hash/maphash"
	"slices"

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

// indexShard is open addressing with linear probing. An entry is 0, or has a tag, a part
// of the key's hash, above its number.
//
// A tag's home grows with the tag, and entries are kept in the order of their tags, with
// free entries between them. So a search ends at the first higher tag: a full table costs
// few steps, whether or not the tag is there. To grow is a copy from left to right.
// Entries behind the last home take what the homes push out.
type indexShard struct {
	entries []uint64
	// homes is the number of entries that are the home of a tag.
	homes, used uint32
}

const (
	indexShards = 1024
	// leastEntries is the first number of entries of a shard, and the least by which the
	// number grows.
	leastEntries = 8
	// fullParts and allParts: at most 7 of 8 homes are used.
	fullParts, allParts = 7, 8
	// growPart is the part of its entries by which a shard grows: used homes are between
	// 70 and 87 of a hundred.
	growPart = 4
	// sparePart: a shard with fewer than a third of its homes in use gives memory back.
	sparePart = 3
	// tagBits is the width of a tag without its highest bit, which is always set.
	tagBits = 31
)

func newKeyIndex() *keyIndex { return &keyIndex{seed: maphash.MakeSeed()} }

// locate returns the place of a key: its shard, and its tag, which is not 0.
func (x *keyIndex) locate(key *attempt.Key) (*indexShard, uint32) {
	h := maphash.Bytes(x.seed, key[:])
	return &x.shards[h%indexShards], uint32(h>>32) | 1<<tagBits
}

// home returns the entry at which the search for a tag begins.
func (s *indexShard) home(tag uint32) int {
	return int(uint64(tag&(1<<tagBits-1)) * uint64(s.homes) >> tagBits) //nolint:gosec // below homes
}

// find returns the entry with a tag and a number that is accepts, or else the place for
// them, and whether it was found.
func (s *indexShard) find(tag uint32, is func(number uint32) bool) (int, bool) {
	for i := s.home(tag); i < len(s.entries); i++ {
		entry := s.entries[i]
		switch have := uint32(entry >> 32); {
		case have > tag || entry == 0:
			return i, false
		case have == tag && is(uint32(entry)):
			return i, true
		}
	}
	return len(s.entries), false
}

func (s *indexShard) number(at int) uint32 { return uint32(s.entries[at]) }

func (s *indexShard) set(at int, tag, number uint32) {
	s.entries[at] = uint64(tag)<<32 | uint64(number)
}

// insert adds a tag and number at the place that find returned for them.
func (s *indexShard) insert(at int, tag, number uint32) {
	for s.full() || !s.makeRoom(at) {
		s.resize(len(s.entries) + max(leastEntries, len(s.entries)/growPart))
		at, _ = s.find(tag, func(uint32) bool { return false })
	}
	s.set(at, tag, number)
	s.used++
}

// full reports whether the next insert makes the shard grow.
func (s *indexShard) full() bool { return allParts*(s.used+1) > fullParts*s.homes }

// makeRoom moves entries up so that a place is free. It reports false if the last entry
// would be pushed out.
func (s *indexShard) makeRoom(at int) bool {
	end := at
	for ; end < len(s.entries); end++ {
		if s.entries[end] == 0 {
			copy(s.entries[at+1:end+1], s.entries[at:end])
			return true
		}
	}
	return false
}

// resize gives the shard about so many entries, or as many more as its tags need.
func (s *indexShard) resize(entries int) {
	old := s.entries
	for {
		// Grow rounds up to what is allocated anyway.
		s.entries = slices.Grow([]uint64(nil), entries)
		s.entries = s.entries[:cap(s.entries)]
		s.homes = uint32(len(s.entries) - behind(len(s.entries))) //nolint:gosec // far fewer
		if s.fill(old) {
			return
		}
		entries += entries / growPart
	}
}

// behind is how many of all entries lie behind the last home.
func behind(all int) int { return min(all/8, 32+all/64) }

// fill copies the entries of a shard of another size. It reports false if they do not
// fit.
func (s *indexShard) fill(from []uint64) bool {
	next := 0
	for _, entry := range from {
		if entry == 0 {
			continue
		}
		next = max(next, s.home(uint32(entry>>32)))
		if next == len(s.entries) {
			return false
		}
		s.entries[next] = entry
		next++
	}
	return true
}

// remove frees an entry, and moves back the entries that a search would not find behind a
// free entry.
func (s *indexShard) remove(at int) {
	end := at + 1
	for end < len(s.entries) && s.entries[end] != 0 && s.home(uint32(s.entries[end]>>32)) < end {
		end++
	}
	copy(s.entries[at:], s.entries[at+1:end])
	s.entries[end-1] = 0
	s.used--
	if sparePart*s.used < s.homes && len(s.entries) > leastEntries {
		s.resize(max(leastEntries, len(s.entries)/2))
	}
}
