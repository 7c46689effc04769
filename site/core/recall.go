package core

import (
	"github.com/samya-db/samya/site/core/attempt"
)

// recall holds the records of answered requests in the order of the answers, and finds
// the last record of a key. Its memory holds few pointers, so that collections of garbage
// pass it by. A record is named by the number of its first slot.
type recall struct {
	slots line[slot]
	index *keyIndex
	// touched is of no use but to have entries of the index read; see forget.
	touched uint64
}

// get returns the record of a number.
func (m *recall) get(number uint32) remembered {
	s := m.slots.at(number)
	second := s
	if s.wide() {
		second = m.slots.at(number + 1)
	}
	return s.unpack(second)
}

// find returns the number of the last record of a key.
func (m *recall) find(key *attempt.Key) (number uint32, found bool) {
	shard, tag := m.index.locate(key)
	at, found := shard.find(tag, m.is(key))
	if !found {
		return 0, false
	}
	return shard.number(at), true
}

func (m *recall) is(key *attempt.Key) func(uint32) bool {
	return func(number uint32) bool { return *m.slots.at(number).key() == *key }
}

// add makes a record the last of its key. It returns the previous last, if there is one.
func (m *recall) add(r *remembered) (before remembered, replaced bool) {
	shard, tag := m.index.locate(&r.key)
	at, replaced := shard.find(tag, m.is(&r.key))
	if !replaced {
		m.insert(shard, at, tag, r)
		return remembered{}, false
	}
	before = m.get(shard.number(at))
	shard.set(at, tag, m.push(r))
	return before, true
}

// addNew adds a record unless its key has a record.
func (m *recall) addNew(r *remembered) bool {
	shard, tag := m.index.locate(&r.key)
	at, found := shard.find(tag, m.is(&r.key))
	if !found {
		m.insert(shard, at, tag, r)
	}
	return !found
}

func (m *recall) insert(shard *indexShard, at int, tag uint32, r *remembered) {
	shard.insert(at, tag, m.push(r))
	m.index.len++
}

// push appends a record and returns its number.
func (m *recall) push(r *remembered) uint32 {
	number := m.slots.end
	s := m.slots.push()
	if r.narrow() {
		s.pack(r)
	} else {
		s.packWide(r, m.slots.push())
	}
	return number
}

// forgetAtOnce bounds the records that forget drops at once.
const forgetAtOnce = 8

// forget drops the n oldest records, from 1 to forgetAtOnce. It drops the key of a record
// too if the key has no later record, and returns these records,
// in the memory of gone.
//
// The entries of old keys lie in no cache. So forget first touches the entries of all n
// keys: the processor fetches them at the same time.
func (m *recall) forget(n int, gone *[forgetAtOnce]remembered) (lasts []remembered) {
	lasts = gone[:0]
	var places [forgetAtOnce]struct {
		shard *indexShard
		tag   uint32
	}
	number := m.slots.begin
	for i := range n {
		s, p := m.slots.at(number), &places[i]
		p.shard, p.tag = m.index.locate(s.key())
		m.touched += p.shard.entries[p.shard.home(p.tag)]
		number += s.width()
	}
	for i := range n {
		number, p := m.slots.begin, &places[i]
		s := m.slots.at(number)
		width := s.width()
		if at, last := p.shard.find(p.tag, func(n uint32) bool { return n == number }); last {
			p.shard.remove(at)
			m.index.len--
			lasts = append(lasts, m.get(number))
		}
		for range width {
			m.slots.pop()
		}
	}
	return lasts
}
