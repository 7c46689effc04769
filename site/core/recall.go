package core

import (
	"github.com/samya-db/samya/site/core/attempt"
)

// recall holds the records of answered requests in the order of the answers, and finds
// the last record of a key. Its memory holds few pointers, so that collections of garbage
// pass it by.
type recall struct {
	// chunks hold the records from first on, which is the number of the first record of
	// the first chunk. Numbers wrap around.
	chunks []*recallChunk
	// begin and end are the numbers of the oldest record and of the next one.
	first, begin, end uint32
	// spare is a chunk for reuse.
	spare *recallChunk
	index *keyIndex
}

const chunkRecords = 1 << 10

type recallChunk [chunkRecords]remembered

func (m *recall) at(number uint32) *remembered {
	n := number - m.first
	return &m.chunks[n/chunkRecords][n%chunkRecords]
}

// find returns the last record of a key, or nil. The result is valid until a record is
// added or forgotten.
func (m *recall) find(key *attempt.Key) *remembered {
	shard, tag := m.index.locate(key)
	if at, ok := shard.find(tag, m.is(key)); ok {
		return m.at(shard.number(at))
	}
	return nil
}

func (m *recall) is(key *attempt.Key) func(uint32) bool {
	return func(number uint32) bool { return m.at(number).key == *key }
}

// add makes a record the last of its key, and returns the previous last, nil for none.
func (m *recall) add(r *remembered) *remembered {
	number := m.push(r)
	shard, tag := m.index.locate(&r.key)
	if at, ok := shard.find(tag, m.is(&r.key)); ok {
		before := shard.number(at)
		shard.set(at, tag, number)
		return m.at(before)
	}
	shard.insert(tag, number)
	m.index.len++
	return nil
}

// addNew adds a record unless its key has a record.
func (m *recall) addNew(r *remembered) bool {
	shard, tag := m.index.locate(&r.key)
	at, found := shard.find(tag, m.is(&r.key))
	if found {
		return false
	}
	number := m.push(r)
	if shard.full() {
		shard.insert(tag, number)
	} else {
		shard.set(at, tag, number)
		shard.used++
	}
	m.index.len++
	return true
}

// push appends a record and returns its number.
func (m *recall) push(r *remembered) uint32 {
	if m.end-m.first == uint32(len(m.chunks))*chunkRecords { //nolint:gosec // far fewer
		m.chunks = append(m.chunks, m.newChunk())
	}
	number := m.end
	m.end++
	*m.at(number) = *r
	return number
}

func (m *recall) newChunk() *recallChunk {
	if chunk := m.spare; chunk != nil {
		m.spare = nil
		return chunk
	}
	return new(recallChunk)
}

// forget drops the oldest record. If its key has no later record, forget drops the key
// too and reports true.
func (m *recall) forget() (last bool) {
	number := m.begin
	shard, tag := m.index.locate(&m.at(number).key)
	at, last := shard.find(tag, func(n uint32) bool { return n == number })
	if last {
		shard.remove(at)
		m.index.len--
	}
	m.begin++
	if m.begin-m.first == chunkRecords {
		m.spare = m.chunks[0]
		m.chunks[0] = nil
		m.chunks = m.chunks[1:]
		m.first = m.begin
	}
	return last
}
