package core

import (
	"cmp"
	"math"
	"slices"

	"github.com/samya-db/samya/internal/portion"
)

// attempt is the number of the attempt; a first attempt may have none in Tries.
func (t *Tries) attempt() Attempt { return max(t.Attempt, firstAttempt) }

// answer is the answer remembered by a record.
func (r *remembered) answer() Answer {
	switch r.state {
	case Refused:
		if r.tokens > 0 {
			return Answer{Code: ExceedsLimit, Tokens: r.tokens - beyond(0), Left: r.left}
		}
		return Answer{Code: OutOfTokens, Left: r.left}
	case Undone:
		return Answer{Code: Superseded}
	}
	if r.kind == CommitRequest {
		return Answer{Code: OK, Tokens: r.tokens, Returned: r.left}
	}
	return Answer{Code: OK, Tokens: r.tokens, Left: r.left, Parked: r.state == Parked || r.state == Dropped}
}

// record is the record of a request in a new state.
func (r *remembered) record(key RequestKey, state RequestState, attempt Attempt) RequestRecord {
	return RequestRecord{
		Key: key, Body: r.body, Kind: r.kind, State: state, Attempt: attempt,
		Generation: r.generation, Tokens: r.tokens, Left: r.left,
	}
}

// beyond is the smallest number of tokens that exceeds a limit. A record of a refusal for
// the limit has that number; 0 stands for a refusal for want of tokens.
func beyond(limit Tokens) Tokens { return limit + 1 }

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

// RequestState is the fate of a request at this site.
type RequestState uint8

const (
	// Ran: the request moved tokens.
	Ran RequestState = iota + 1
	// Refused: an acquire, for want of tokens or because it asks for more than a limit.
	Refused
	// Parked: a release that is counted once no earlier attempt is known to have run
	// elsewhere; its caller was told that it is done.
	Parked
	// Dropped: a parked release that is not counted here, as it ran elsewhere, or may
	// have.
	Dropped
	// Undone: the attempts up to the record's attempt have moved nothing, or their effect
	// was given back, and they never will move anything.
	Undone
)

// Attempt numbers the attempts of a request: the caller's count in the upper 24 bits, an
// app manager's own tries within that count in the lower 8.
type Attempt uint32

// MaxAttempts and MaxRelays bound the two parts.
const (
	MaxAttempts = 1<<20 - 1
	MaxRelays   = 1<<8 - 1
)

// AttemptOf is the attempt of a caller's count, from 1, after relay tries of an app
// manager.
func AttemptOf(count, relay uint32) Attempt {
	return Attempt(min(max(count, 1), MaxAttempts)<<8 | min(relay, MaxRelays))
}

// RequestRecord remembers an answered acquire or release, so that a repeat gets the same
// answer and moves nothing. A later record of the same key replaces the earlier record.
type RequestRecord struct {
	Key RequestKey
	// Body is a hash of everything that must be the same in a repeat.
	Body    uint64
	Kind    RequestKind
	State   RequestState
	Attempt Attempt
	// Generation is the entity's generation.
	Generation uint64
	// Tokens is the number of tokens moved or parked. For an acquire Refused because it
	// asks for more than a limit, Tokens is the lowest number above that limit.
	Tokens Tokens
	// Left is the Left of the answer; for a CommitRequest the tokens given back.
	Left Tokens
	// Parts are the parts of an AllRequest that ran, with their entities' generations;
	// nil for every other record.
	Parts []RecordedPart
	// Tenant is the record's tenant if it may differ from the tenant of the entity of
	// Generation; else empty.
	Tenant string
}

// Equal reports whether both records are the same.
func (r *RequestRecord) Equal(o *RequestRecord) bool {
	return r.Key == o.Key && r.Body == o.Body && r.Kind == o.Kind && r.State == o.State && r.Attempt == o.Attempt &&
		r.Generation == o.Generation && r.Tokens == o.Tokens && r.Left == o.Left && r.Tenant == o.Tenant && slices.Equal(r.Parts, o.Parts)
}

// RecordedPart is a part of a recorded request.
type RecordedPart struct {
	Part
	// Generation is the entity's generation.
	Generation uint64
}

// RequestBlock holds the records that a transaction made durable. Blocks are written in
// the order of their sequences and forgotten in the same order, so that storage writes
// are sequential.
type RequestBlock struct {
	Sequence uint64
	// Wall is the time of the answers, in milliseconds since the Unix epoch.
	Wall    int64
	Records []RequestRecord
}

// bodyHash is the FNV-1a hash of everything that must be the same in a repeat.
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

// textHash is the FNV-1a hash of a text.
func textHash(s string) uint64 { return bodyHash(0, s, 0) }

// remembered is a record in memory.
type remembered struct {
	key              RequestKey
	body, generation uint64
	tokens, left     Tokens
	attempt          Attempt
	// tenant is the slot in which the record is counted.
	tenant portion.Slot
	kind   RequestKind
	state  RequestState
}

// requestTable finds the records of answered requests. Its number of records is bounded;
// records leave it oldest first.
type requestTable struct {
	recall
	// held counts, for each tenant, the bounded contents of the table: its records, their
	// parts, and the acquires that wait. Only the last record of a key counts.
	held portion.Counts
	// blocks are the blocks that are durable or about to be, oldest first, from
	// blocks[head] on.
	blocks []rememberedBlock
	head   int
	// next is the sequence of the block being gathered.
	next uint64
	// forgotten is the lowest sequence not yet deleted from disk.
	forgotten uint64
	// restored says that some restored blocks have no time yet.
	restored bool
	// lost is no earlier than the wall time of any forgotten block.
	lost int64
	// parts are the parts of AllRequest records, by key; partCount is their total number.
	parts     map[RequestKey][]RecordedPart
	partCount int
}

type rememberedBlock struct {
	sequence uint64
	wall     int64
	// at is the time of the answers, or of the restart.
	at Tick
	// records is the number of records not yet forgotten.
	records int
}

const (
	// forgetEvery is how many blocks are deleted from disk at once: deleting is
	// cheap in bulk, and a late deletion harms nobody.
	forgetEvery = 64
	// forgetMost is the number of records forgotten with a transaction, beside twice the
	// number of its own records.
	forgetMost = 1024
)

// newRequestTable takes up restored blocks. Records forgotten before the first block were
// answered before it too, except for the skew of a clock set back.
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

// add makes a record findable and counts it in a tenant's slot. The caller gathers the
// block that persists the record and hands it to seal.
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

// addNew is add, unless the table has a record of that key.
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

// keepParts keeps the parts of the last record of a key.
func (t *requestTable) keepParts(r *RequestRecord, tenant portion.Slot) {
	t.parts[r.Key] = r.Parts
	t.partCount += len(r.Parts)
	t.held.More(tenant, len(r.Parts))
}

// leave stops counting a record that is no longer the last of its key, and drops its
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

// forget drops the oldest record, and its parts unless its key has a later record.
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

// expire forgets at most `most` records, answered or restored more than keep ago. It
// returns the sequence below which blocks are to be deleted from disk, or 0 if a deletion
// is not yet worthwhile.
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
	// The last block stays on disk: its number is never used again, and its time bounds
	// the time of earlier answers.
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

// size is the bounded size of the table: a part takes about as much memory as a record.
func (t *requestTable) size() int { return t.index.len + t.partCount }
