// Package kvoracle judges whether a partitioned store keeps its promises. Clients
// make load while the store moves keys between partitions. A single clock stamps
// the call and the return of every request, and the oracle judges the history. It
// does not look into the store: it judges the clients' view.
//
// Most keys have a known order of versions. A key of a single client has the order
// of the client's program. A key that clients change by Execute alone has versions
// in which each change carries the number after the number it saw. So a history is
// a graph of requests. The graph has no cycle exactly if the store took each
// request at an instant between its call and its return. See Adya, Liskov and
// O'Neil, "Generalized isolation level definitions", 2000. Each key that all
// clients write blindly is judged alone, as a register.
package kvoracle

import (
	"context"
	"fmt"

	"github.com/samya-db/samya/kvpart"
)

// Store is a store to judge; kvpart.Store documents the promises of its methods.
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

// Invariant names an invariant.
type Invariant string

// The invariants.
const (
	// Atomic: each request on several keys takes effect at an instant.
	Atomic Invariant = "atomic"
	// Order: requests on a single key take effect between call and return, in the
	// order of their calls by Start.
	Order Invariant = "order"
	// Register: a key that all clients write is a register with a total order.
	Register Invariant = "register"
	// Exact: a scan returns the first limit keys from its start, each once.
	Exact Invariant = "exact"
	// Exclusive: no two requests run with the same key at a time.
	Exclusive Invariant = "exclusive"
	// Refused: a request that failed with an error that says so has no effect, now
	// or later.
	Refused Invariant = "refused"
	// Once: an Execute runs once; no effect is lost or doubled.
	Once Invariant = "once"
	// Sum: the sum of amounts moved between keys is constant.
	Sum Invariant = "sum"
	// Intact: every value seen was written to its key.
	Intact Invariant = "intact"
	// Sound: no request fails with an error outside of its contract.
	Sound Invariant = "sound"
	// Deadlock: every request ends, and so does Close.
	Deadlock Invariant = "deadlock"
)

// Violation is a violated invariant.
type Violation struct { //nolint:errname // It is a finding, told and counted; it is handed over as an error.
	Invariant Invariant
	Detail    string
}

func (v *Violation) Error() string { return fmt.Sprintf("%s: %s", v.Invariant, v.Detail) }

func violated(i Invariant, format string, args ...any) *Violation {
	return &Violation{Invariant: i, Detail: fmt.Sprintf(format, args...)}
}
