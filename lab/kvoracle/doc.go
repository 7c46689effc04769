// Package kvoracle tells whether a partitioned store keeps its promises: clients
// make load on it while it moves keys between partitions, every request is
// recorded with its call and its return on one clock, and the history is judged.
// It refuses to look into the store: it judges what clients see.
//
// Most keys have a known order of their versions: those of one client alone by
// that client's program, those that all change by Execute because each change
// carries the number of the one it saw. So a history is a graph of requests, and
// the store took each at one instant between its call and its return exactly if
// that graph has no cycle (Adya, Liskov and O'Neil, "Generalized isolation level
// definitions", 2000). Keys that all clients write blindly are judged one by one
// as registers.
package kvoracle

import (
	"context"
	"fmt"

	"github.com/samya-db/samya/kvpart"
)

// Store is what is judged; see kvpart.Store for what its methods promise.
type Store interface {
	Read(ctx context.Context, key string, dst []byte) ([]byte, error)
	Write(ctx context.Context, key string, value []byte) error
	Delete(ctx context.Context, key string) error
	Scan(ctx context.Context, from string, limit int, dst []kvpart.Pair) ([]kvpart.Pair, error)
	Execute(ctx context.Context, keys []string, fn func(kvpart.Tx) error) error
	Close() error
}

// Starter is a Store that takes requests without waiting for their end.
type Starter interface {
	Start(ctx context.Context, r *kvpart.Request) error
}

// Invariant names what must hold.
type Invariant string

// The invariants.
const (
	// Atomic: requests on several keys take effect at one instant each.
	Atomic Invariant = "atomic"
	// Order: requests on one key take effect between call and return, in the order
	// in which they were handed over.
	Order Invariant = "order"
	// Register: a key that all write is a register with a total order.
	Register Invariant = "register"
	// Exact: a scan is of the first limit keys from where it begins, and of them once.
	Exact Invariant = "exact"
	// Exclusive: no two requests run with one key at a time.
	Exclusive Invariant = "exclusive"
	// Refused: what failed with an error that says so was not done, and is not later.
	Refused Invariant = "refused"
	// Once: an Execute runs once; none of its effects is lost or there twice.
	Once Invariant = "once"
	// Sum: what is moved between keys is always there in full.
	Sum Invariant = "sum"
	// Intact: a value is one that was written to its key.
	Intact Invariant = "intact"
	// Sound: no request fails with an error that it cannot have.
	Sound Invariant = "sound"
	// Deadlock: every request comes to an end, and so does Close.
	Deadlock Invariant = "deadlock"
)

// Violation is an invariant that does not hold.
type Violation struct { //nolint:errname // It is a finding, told and counted; it is handed over as an error.
	Invariant Invariant
	Detail    string
}

func (v *Violation) Error() string { return fmt.Sprintf("%s: %s", v.Invariant, v.Detail) }

func violated(i Invariant, format string, args ...any) *Violation {
	return &Violation{Invariant: i, Detail: fmt.Sprintf(format, args...)}
}
