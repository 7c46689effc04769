// Package control decides when the keys of a scheduler are assigned anew, and
// does it: it tracks a sample of the requests in a graph of what is used together,
// has that cut, and switches the scheduler's map where that pays (Luiz and
// Mendizabal, "Lightweight asynchronous repartitioning for local state partitioned
// systems"). It refuses to touch what a key holds, and to use more processor time
// than it was given.
package control

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/samya-db/samya/kvpart/cut"
)

// ErrOptions says that an option is out of its range; it is wrapped with which.
var ErrOptions = errors.New("bad option")

// Entry names a key of a scheduler. The zero value is none.
type Entry interface {
	comparable
	Key() string
}

// Unplaced is the partition of a key that is placed as if new when it is used next.
const Unplaced = -1

// Scheduler is what this package needs of a scheduler. Its methods may be called
// at the same time as any others.
type Scheduler[E Entry] interface {
	// Partitions is how many there are.
	Partitions() int
	// Look tells where e belongs at present, or Unplaced, whether it left the
	// scheduler or is not to count for as long as that is so, and where this package
	// keeps a number of its own, which is 0 in a new entry.
	Look(e E) (partition int, gone bool, slot *atomic.Int32)
	// Entries appends the first limit entries not below from to dst, ascending.
	Entries(dst []E, from string, limit int) []E
	// Assign says that from the next switch on e belongs to partition, or is
	// Unplaced, and tells whether that moves it.
	Assign(e E, partition int) (bool, error)
	// Switch makes what was assigned count, or fails and leaves the map as it is.
	Switch() error
	// Hold runs fn while no request is dispatched. fn may use Assign and Switch.
	Hold(fn func())
}

// Kind says when keys are assigned anew.
type Kind uint8

// The kinds of policies.
const (
	// Async cuts while requests go on (paper, section 4).
	Async Kind = iota
	// Base stops the dispatch of requests every so many and cuts meanwhile (paper,
	// section 3). It keeps to no Share and no Every.
	Base
)

// Policy says when keys are assigned anew.
type Policy struct {
	Kind Kind
	// Operations is Δp, Base's interval, at least 1.
	Operations int64
	// Window is W, how many of the last tracked requests the graph is of, up to
	// workload.MaxWindow; 0 for no bound but those of Vertices and Edges.
	Window int
	// Every is the least time between the beginnings of two cuts.
	Every time.Duration
	// Gain is by what share of the present cut or imbalance a new map must be better
	// to be applied: DefaultGain if 0. Below 0 each is applied, and there is a cut as
	// often as Every and Share allow, whatever they bring.
	Gain float64
	// Share bounds the processor time of tracking and cutting, as a share of one
	// core: DefaultShare if 0, unbounded if 1 or more.
	Share float64
	// Sample is the share of requests tracked, up to 1: 0 adapts it to Share and to
	// what cuts bring.
	Sample float64
	// Vertices and Edges bound the graph: DefaultVertices and DefaultEdges if 0.
	Vertices, Edges int
	// Imbalance is that of cut.Options.
	Imbalance float64
	// Replace makes a new map replace the present one: keys it does not have are
	// Unplaced. Otherwise they stay, but for those between two keys of one partition,
	// which follow them.
	Replace bool
}

// What an option is if it is 0.
const (
	DefaultGain      = .02
	DefaultShare     = .1
	DefaultImbalance = .03
	DefaultVertices  = 1 << 18
	DefaultEdges     = 1 << 21
)

// Options says what to control, and how.
type Options[E Entry] struct {
	Scheduler Scheduler[E]
	Policy    Policy
	Seed      uint64
	// Now is a clock that does not go back.
	Now func() time.Duration
	// CPU is the processor time used so far, of whoever calls it: that of the thread
	// if nil.
	CPU func() time.Duration
	// Rand returns random bits, and may be called at the same time: those of
	// math/rand/v2 if nil.
	Rand func() uint64
	// Yield gives the processor to others, about every 100 us of a cut:
	// runtime.Gosched if nil.
	Yield func()
	// Rest waits for a time, or until the context ends, so that a cut takes little of
	// a core: by a timer if nil.
	Rest func(context.Context, time.Duration)
	// Cut is cut.Partition if nil.
	Cut func(context.Context, *cut.Graph, cut.Options) (*cut.Result, error)
	// Failed is told of cuts and switches that failed, after which all is as before,
	// if not nil.
	Failed func(error)
}

// Stats is what was done so far.
type Stats struct {
	Tracked         int64         // requests recorded in the graph
	Dropped         int64         // requests that should have been, for want of room
	Sample          float64       // share of requests tracked, at present
	Interval        time.Duration // least time between two cuts, at present
	Vertices, Edges int
	TrackingTime    time.Duration // processor time; that of the dispatchers estimated
	CuttingTime     time.Duration // processor time
	Computed        int64         // maps
	Applied         int64         // of those, applied
	Skipped         int64         // of those, not worth it
	Failed          int64         // cuts and switches that failed
	Moved           int64         // keys assigned elsewhere
	LastCut         float64       // share of edge weight cut, by the last map, in its graph
	LastBalance     float64
	LastCutTime     time.Duration // from its snapshot to the map
	Hubs            []string      // keys that outweigh a partition, as of the last map
}
