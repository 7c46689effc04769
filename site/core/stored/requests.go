package stored

import (
	"slices"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/internal/session"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
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

// Request remembers an answered acquire or release, so that a repeat gets the same
// answer and moves nothing. A later record of the same key replaces the earlier record.
type Request struct {
	Key attempt.Key
	// Body is a hash of everything that must be the same in a repeat.
	Body    uint64
	Kind    RequestKind
	State   RequestState
	Attempt attempt.Number
	// Generation is the entity's generation.
	Generation uint64
	// Tokens is the number of tokens moved or parked. For an acquire Refused because it
	// asks for more than a limit, Tokens is the lowest number above that limit.
	Tokens avantan.Tokens
	// Left is the Left of the answer; for a CommitRequest the tokens given back.
	Left avantan.Tokens
	// Parts are the parts of an AllRequest that ran, with their entities' generations;
	// nil for every other record.
	Parts []Part
	// Tenant is the record's tenant if it may differ from the tenant of the entity of
	// Generation; else empty.
	Tenant string
}

// Equal reports whether both records are the same.
func (r *Request) Equal(o *Request) bool {
	return r.Key == o.Key && r.Body == o.Body && r.Kind == o.Kind && r.State == o.State && r.Attempt == o.Attempt &&
		r.Generation == o.Generation && r.Tokens == o.Tokens && r.Left == o.Left && r.Tenant == o.Tenant && slices.Equal(r.Parts, o.Parts)
}

// Part is a part of a recorded request.
type Part struct {
	input.Part
	// Generation is the entity's generation.
	Generation uint64
}

// Block holds the records that a transaction made durable. Blocks are written in
// the order of their sequences and forgotten in the same order, so that storage writes
// are sequential.
type Block struct {
	Sequence uint64
	// Wall is the time of the answers, in milliseconds since the Unix epoch.
	Wall    int64
	Records []Request
	// Sessions are the sessions that began, or were acknowledged, since the block before.
	Sessions []Session
	// Packed is the stored form of the Records in Runs, one after the other; see package
	// packed. It is empty for blocks that were read.
	Packed []byte
	// Runs are in the order of the Records, and share none.
	Runs []Run
}

// Run is a part of the records of a block that is encoded already.
type Run struct {
	// First is the index of its first record, Count the number of its records, and Bytes the
	// length of their stored form.
	First, Count, Bytes int
}

// Join appends records with their stored form.
func (b *Block) Join(records []Request, packed []byte) {
	first := len(b.Records)
	b.Records = append(b.Records, records...)
	b.Packed = append(b.Packed, packed...)
	if n := len(b.Runs); n > 0 && b.Runs[n-1].First+b.Runs[n-1].Count == first {
		b.Runs[n-1].Count += len(records)
		b.Runs[n-1].Bytes += len(packed)
		return
	}
	b.Runs = append(b.Runs, Run{First: first, Count: len(records), Bytes: len(packed)})
}

// Whole reports whether Packed is the stored form of all records.
func (b *Block) Whole() bool { return len(b.Runs) == 1 && b.Runs[0].Count == len(b.Records) }

// Unpack forgets the stored form, before records are changed or taken out.
func (b *Block) Unpack() { b.Packed, b.Runs = b.Packed[:0], b.Runs[:0] }

// Session is what a block tells of a session.
type Session struct {
	ID session.ID
	// First: requests of lower sequences are acknowledged.
	First uint64
}
