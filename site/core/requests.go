package core

import (
	"cmp"
	"math"
	"slices"

	"github.com/samya-db/samya/internal/portion"
)

// RequestKind tells acquires from releases in records.
type RequestKind uint8

const (
	// AcquireRequest is the kind of an Acquire.
	AcquireRequest RequestKind = iota + 1
	// ReleaseRequest is the kind of a Release.
	ReleaseRequest
	// LeasedRequest is the kind of an Acquire of a lease.
	LeasedRequest
	// ReturnRequest is the kind of a Release that names a lease.
	ReturnRequest
	// CommitRequest is the kind of a CommitLease.
	CommitRequest
	// AllRequest is the kind of an AcquireAll.
	AllRequest
)

// RequestState says what became of a request at this site.
type RequestState uint8

const (
	// Ran: it moved tokens.
	Ran RequestState = iota + 1
	// Refused: an acquire, for want of tokens or because it asks for more than a limit.
	Refused
	// Parked: a release that is counted once it is known that no earlier attempt
	// was executed elsewhere; its caller was told that it is done.
	Parked
	// Dropped: a release that was parked, and is not counted here: it ran
	// elsewhere, or may have.
	Dropped
	// Undone: its attempts up to the record's have moved nothing, or it was given
	// back, and they never will.
	Undone
)

// Attempt numbers the attempts of a request: its caller's count in the upper 24
// bits, an app manager's own tries within one of those in the lower 8.
type Attempt uint32

// MaxAttempts and MaxRelays bound the two parts.
const (
	MaxAttempts = 1<<20 - 1
	MaxRelays   = 1<<8 - 1
)

// AttemptOf is the attempt of a caller's count, from 1, and an app manager's
// tries before it.
func AttemptOf(count, relay uint32) Attempt {
	return Attempt(min(max(count, 1), MaxAttempts)<<8 | min(relay, MaxRelays))
}

// RequestRecord remembers one answered acquire or release, so that a repeat
// gets the same answer and moves nothing. A later record of the same key takes
// the place of the earlier one.
type RequestRecord struct {
	Key RequestKey
	// Body is a hash of all that must be the same in a repeat.
	Body    uint64
	Kind    RequestKind
	State   RequestState
	Attempt Attempt
	// Generation is the entity's.
	Generation uint64
	// Tokens moved, those parked included; of an acquire Refused for asking for more than
	// a limit the fewest tokens that are more.
	Tokens Tokens
	// Left is that of the answer; of a CommitRequest what it gave back.
	Left Tokens
	// Parts are those of an AllRequest that ran, with their entities' generations;
	// nil for every other record.
	Parts []RecordedPart
	// Tenant is whose record it is if that may be another than the tenant of the entity
	// of Generation; else empty.
	Tenant string
}

// Equal reports whether both records say the same.
func (r *RequestRecord) Equal(o *RequestRecord) bool {
	return r.Key == o.Key && r.Body == o.Body && r.Kind == o.Kind && r.State == o.State && r.Attempt == o.Attempt &&
		r.Generation == o.Generation && r.Tokens == o.Tokens && r.Left == o.Left && r.Tenant == o.Tenant && slices.Equal(r.Parts, o.Parts)
}

// RecordedPart is one part of a request that was recorded.
type RecordedPart struct {
	Part
	// Generation is the entity's.
	Generation uint64
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

// mixBody adds a value to the hash of a body.
func mixBody(h, v uint64) uint64 {
	h = (h ^ v) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// textHash is FNV-1a of a text.
func textHash(s string) uint64 { return bodyHash(0, s, 0) }

// remembered is a record in memory.
type remembered struct {
	key              RequestKey
	body, generation uint64
	tokens, left     Tokens
	attempt          Attempt
	// tenant is where the record is counted.
	tenant portion.Slot
	kind   RequestKind
	state  RequestState
}

// requestTable finds the records of answered requests. It is bounded by count;
// records leave it oldest first.
type requestTable struct {
	recall
	// held counts for each tenant what is bounded of the table: its records, their parts,
	// and the acquires that wait. Of the records of a key the last one counts.
	held portion.Counts
	// blocks are the durable or about to be durable blocks, oldest first, from
	// blocks[head] on.
	blocks []rememberedBlock
	head   int
	// next is the sequence of the block being gathered.
	next uint64
	// forgotten is the lowest sequence not yet asked to be deleted from disk.
	forgotten uint64
	// restored says that blocks were restored that have no time yet.
	restored bool
	// lost is no earlier than the wall time of any block that was forgotten.
	lost int64
	// parts are those of the records of kind AllRequest that have some, by key, and
	// partCount is how many they are in all.
	parts     map[RequestKey][]RecordedPart
	partCount int
}

type rememberedBlock struct {
	sequence uint64
	wall     int64
	// at is when it was answered, or restored.
	at Tick
	// records is how many of its records are not forgotten.
	records int
}

const (
	// forgetEvery is how many blocks are deleted from disk at once: deleting is
	// cheap in bulk, and a late deletion harms nobody.
	forgetEvery = 64
	// forgetMost is how many records are forgotten with one transaction, beside
	// twice as many as it has.
	forgetMost = 1024
)

// newRequestTable takes up restored blocks. What was forgotten before the first of
// them was answered before it too, but for what the clock was set back by.
func newRequestTable(blocks []RequestBlock, skew int64, tenants *tenantsOf) requestTable {
	records := 0
	for i := range blocks {
		records += len(blocks[i].Records)
	}
	t := requestTable{recall: recall{index: newKeyIndex(records)}, next: 1, lost: math.MinInt64, restored: len(blocks) > 0, parts: make(map[RequestKey][]RecordedPart)}
	for _, b := range blocks {
		if t.forgotten == 0 {
			t.forgotten = b.Sequence
			if b.Sequence > 1 {
				t.lost = b.Wall + skew
			}
		}
		t.next = b.Sequence
		t.remember(b, tenants)
		t.next++
	}
	t.forgotten = cmp.Or(t.forgotten, t.next)
	return t
}

func (t *requestTable) find(key RequestKey) (remembered, bool) {
	if r := t.recall.find(&key); r != nil {
		return *r, true
	}
	return remembered{}, false
}

// add makes a record findable that was counted in a slot; the block that persists it is
// gathered by the caller and handed to seal.
func (t *requestTable) add(r *RequestRecord, tenant portion.Slot) {
	before := t.recall.add(&remembered{
		key: r.Key, body: r.Body, generation: r.Generation, tokens: r.Tokens, left: r.Left,
		attempt: r.Attempt, kind: r.Kind, state: r.State, tenant: tenant,
	})
	if before != nil {
		t.leave(before)
	}
	if r.Kind == AllRequest && len(r.Parts) > 0 {
		t.keepParts(r, tenant)
	}
}

// addNew is add, unless there is a record of that key.
func (t *requestTable) addNew(r *RequestRecord, tenant portion.Slot) bool {
	if !t.recall.addNew(&remembered{
		key: r.Key, body: r.Body, generation: r.Generation, tokens: r.Tokens, left: r.Left,
		attempt: r.Attempt, kind: r.Kind, state: r.State, tenant: tenant,
	}) {
		return false
	}
	if r.Kind == AllRequest && len(r.Parts) > 0 {
		t.keepParts(r, tenant)
	}
	return true
}

// keepParts keeps the parts of a record that has become the last of its key.
func (t *requestTable) keepParts(r *RequestRecord, tenant portion.Slot) {
	t.parts[r.Key] = r.Parts
	t.partCount += len(r.Parts)
	t.held.More(tenant, len(r.Parts))
}

// leave counts a record no more that is not the last of its key any longer, and drops its
// parts.
func (t *requestTable) leave(r *remembered) {
	n := 1
	if r.kind == AllRequest {
		parts := len(t.parts[r.key])
		delete(t.parts, r.key)
		t.partCount -= parts
		n += parts
	}
	t.held.Give(r.tenant, n)
}

// forget drops the oldest record, and what is kept of its key unless there is a
// later one of it.
func (t *requestTable) forget() {
	oldest := *t.at(t.begin)
	if t.recall.forget() {
		t.leave(&oldest)
	}
}

// seal numbers a gathered block and notes it for expiry.
func (t *requestTable) seal(b *RequestBlock, now Now) {
	b.Sequence, b.Wall = t.next, now.Wall
	t.next++
	t.note(*b, now.Tick)
}

func (t *requestTable) remember(b RequestBlock, tenants *tenantsOf) {
	for i := range b.Records {
		t.add(&b.Records[i], tenants.take(&t.held, &b.Records[i]))
	}
	t.note(b, 0)
}

func (t *requestTable) note(b RequestBlock, at Tick) {
	if t.head > 1024 && t.head > len(t.blocks)/2 {
		n := copy(t.blocks, t.blocks[t.head:])
		clear(t.blocks[n:])
		t.blocks, t.head = t.blocks[:n], 0
	}
	t.blocks = append(t.blocks, rememberedBlock{sequence: b.Sequence, wall: b.Wall, at: at, records: len(b.Records)})
}

// expire forgets records that were answered, or restored, longer ago than they are
// kept, and at most so many. It returns the sequence below which blocks
// are to be deleted from disk, or 0 if it is not yet worth a deletion.
func (t *requestTable) expire(now, keep Tick, most int) uint64 {
	if t.restored {
		t.restored = false
		for i := range t.blocks {
			if b := &t.blocks[i]; b.at == 0 {
				b.at = now
			}
		}
	}
	for t.head < len(t.blocks) && t.blocks[t.head].at+keep < now {
		b := &t.blocks[t.head]
		t.lost = max(t.lost, b.wall)
		for ; b.records > 0 && most > 0; most-- {
			t.forget()
			b.records--
		}
		if b.records > 0 {
			break
		}
		t.head++
	}
	// The last block stays on disk: its number is never used again, and its time
	// tells when what was before it was answered.
	oldest := t.next - 1
	if t.head < len(t.blocks) {
		oldest = t.blocks[t.head].sequence
	}
	if oldest < t.forgotten+forgetEvery {
		return 0
	}
	t.forgotten = oldest
	return oldest
}

func (t *requestTable) len() int { return t.index.len }

// size is what is bounded of the table: a part takes about as much as a record.
func (t *requestTable) size() int { return t.index.len + t.partCount }
