package core

import "cmp"

// RequestKind tells acquires from releases in records.
type RequestKind uint8

const (
	// AcquireRequest is the kind of an Acquire.
	AcquireRequest RequestKind = iota + 1
	// ReleaseRequest is the kind of a Release.
	ReleaseRequest
)

// RequestRecord remembers one answered acquire or release, so that a repeat
// gets the same answer and moves nothing.
type RequestRecord struct {
	Key RequestKey
	// Body is a hash of kind, entity and tokens.
	Body uint64
	// Code is OK, OutOfTokens or Overflow.
	Code Code
	// Left is that of the answer; its Tokens are the repeated request's own.
	Left Tokens
}

// RequestBlock holds the records that one transaction made durable. Blocks are
// written in the order of their sequences and forgotten in the same order, so
// that they cost storage sequential writes only.
type RequestBlock struct {
	Sequence uint64
	// Wall is when they were answered, in milliseconds since the Unix epoch.
	Wall    int64
	Records []RequestRecord
}

// bodyHash is FNV-1a over what must be the same in a repeat.
func bodyHash(kind RequestKind, entity string, tokens Tokens) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	h = (h ^ uint64(kind)) * prime
	for i := range 8 {
		h = (h ^ uint64(byte(tokens>>(8*i)))) * prime
	}
	for i := range len(entity) {
		h = (h ^ uint64(entity[i])) * prime
	}
	return h
}

type remembered struct {
	body uint64
	left Tokens
	code Code
}

// requestTable finds the records of answered requests. It is bounded by count;
// records leave it in whole blocks, oldest first.
type requestTable struct {
	byKey map[RequestKey]remembered
	// blocks are the durable or about to be durable blocks, oldest first, from
	// blocks[head] on.
	blocks []rememberedBlock
	head   int
	// next is the sequence of the block being gathered.
	next uint64
	// forgotten is the lowest sequence not yet asked to be deleted from disk.
	forgotten uint64
}

type rememberedBlock struct {
	sequence uint64
	wall     int64
	keys     []RequestKey
}

// forgetEvery is how many blocks are deleted from disk at once: deleting is
// cheap in bulk, and a late deletion harms nobody.
const forgetEvery = 64

func newRequestTable(blocks []RequestBlock) requestTable {
	t := requestTable{byKey: make(map[RequestKey]remembered), next: 1}
	for _, b := range blocks {
		if t.forgotten == 0 {
			t.forgotten = b.Sequence
		}
		t.next = b.Sequence + 1
		t.remember(b)
	}
	t.forgotten = cmp.Or(t.forgotten, t.next)
	return t
}

func (t *requestTable) find(key RequestKey) (remembered, bool) {
	r, ok := t.byKey[key]
	return r, ok
}

// add makes a record findable; the block that persists it is gathered by the
// caller and handed to seal.
func (t *requestTable) add(r RequestRecord) {
	t.byKey[r.Key] = remembered{body: r.Body, left: r.Left, code: r.Code}
}

// seal numbers a gathered block and notes its keys for expiry.
func (t *requestTable) seal(b *RequestBlock, wall int64) {
	b.Sequence, b.Wall = t.next, wall
	t.next++
	t.note(*b)
}

func (t *requestTable) remember(b RequestBlock) {
	for _, r := range b.Records {
		t.add(r)
	}
	t.note(b)
}

func (t *requestTable) note(b RequestBlock) {
	keys := make([]RequestKey, len(b.Records))
	for i := range b.Records {
		keys[i] = b.Records[i].Key
	}
	if t.head > 1024 && t.head > len(t.blocks)/2 {
		n := copy(t.blocks, t.blocks[t.head:])
		clear(t.blocks[n:])
		t.blocks, t.head = t.blocks[:n], 0
	}
	t.blocks = append(t.blocks, rememberedBlock{sequence: b.Sequence, wall: b.Wall, keys: keys})
}

// expire forgets blocks answered before a wall time. It returns the sequence
// below which blocks are to be deleted from disk, or 0 if it is not yet worth
// a deletion.
func (t *requestTable) expire(before int64) uint64 {
	for t.head < len(t.blocks) && t.blocks[t.head].wall < before {
		for _, k := range t.blocks[t.head].keys {
			delete(t.byKey, k)
		}
		t.blocks[t.head] = rememberedBlock{}
		t.head++
	}
	oldest := t.next
	if t.head < len(t.blocks) {
		oldest = t.blocks[t.head].sequence
	}
	if oldest-t.forgotten < forgetEvery {
		return 0
	}
	t.forgotten = oldest
	return oldest
}

func (t *requestTable) len() int { return len(t.byKey) }
