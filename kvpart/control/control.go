// Package control decides when the keys of a scheduler are assigned anew, and assigns
// them. It tracks a sample of the requests in a graph of keys used together, cuts the
// graph, and switches the scheduler's map where that pays (Luiz and Mendizabal,
// "Lightweight asynchronous repartitioning for local state partitioned systems"). It does
// not touch the values of keys, nor use more processor time than its share.
package control

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/samya-db/samya/kvpart/cut"
)

// errOptions says that an option is out of its range; it is wrapped with the option.
var errOptions = errors.New("bad option")

// Entry names a key of a scheduler. The zero value is no entry.
type Entry interface {
	comparable
	Key() string
}

// unplaced is the partition of a key that is placed as if new at its next use.
const unplaced = -1

// Scheduler is the scheduler as this package needs it. All methods may be called at the
// same time.
type Scheduler[E Entry] interface {
	// Partitions returns the number of partitions.
	Partitions() int
	// Look returns the present partition of e, or -1 for none. gone reports that e has left
	// the scheduler or is not to count at present. slot holds a number for this package,
	// 0 in a new entry.
	Look(e E) (partition int, gone bool, slot *atomic.Int32)
	// Entries appends the first limit entries not below from to dst, ascending.
	Entries(dst []E, from string, limit int) []E
	// Assign makes e belong to partition from the next switch on, or to none if -1.
	// It reports whether that moves e.
	Assign(e E, partition int) (bool, error)
	// Switch makes all assignments count. If it fails the map stays as it is.
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
	// Base stops the dispatch of requests every Operations requests and cuts meanwhile
	// (paper, section 3). It ignores Share and Every.
	Base
)

// Balance is the aim of a new map.
type Balance uint8

// The balances.
const (
	// Graph keeps keys used together on a partition, and balances the number of uses: a cut of
	// the graph.
	Graph Balance = iota
	// Libra balances processor time and bytes of disk, and keeps ranges of keys together:
	// package libra decides which ranges move (Zhang et al., "Mitigating Dual Load Imbalance
	// via Dynamic Cooperative Scheduling in Distributed Key-Value Stores").
	Libra
	// Both cuts the graph by both loads. Where the parts are out of balance package libra
	// moves groups of keys, and loses as little of the cut as possible.
	Both
)

// Policy says when keys are assigned anew.
type Policy struct {
	Kind Kind
	// Operations is Δp, the requests between two cuts of Base, at least 1.
	Operations int64
	// Window is W: the graph covers the last Window tracked requests, up to
	// workload.MaxWindow. With 0 only Vertices and Edges bound the graph.
	Window int
	// Every is the least time between the beginnings of two cuts.
	Every time.Duration
	// Gain is the least share by which a new map must lower the present cut or imbalance
	// to be applied: .02 if 0. Below 0 every map is applied, and cuts happen as
	// often as Every and Share allow.
	Gain float64
	// Share bounds the processor time of tracking and cutting, as a share of one
	// core: .1 if 0, unbounded if 1 or more.
	Share float64
	// Sample is the share of requests tracked, up to 1: 0 adapts it to Share and to the
	// gains of cuts.
	Sample float64
	// Vertices and Edges bound the graph: 2^18 and 2^21 if 0.
	Vertices, Edges int
	// Imbalance is cut.Options.Imbalance: the tolerated weight above the mean, as a
	// share; .03 if 0.
	Imbalance float64
	// Stretch is cut.Options.Stretch: the tolerated weight where that cuts much less; .05
	// if 0, and off if below Imbalance. A balance within Stretch is no reason to cut.
	Stretch float64
	// Balance is the aim of a new map. Other than with Graph, requests are observed with
	// Record.
	Balance Balance
	// Tolerance is libra.Options.Tolerance, of Libra and Both: the tolerated load above the
	// mean, as a share; libra.DefaultTolerance if 0.
	Tolerance float64
	// Replace makes a new map replace the present map: keys missing from the new map
	// lose their partition. Otherwise they stay, except that keys between two keys of the same
	// partition follow both.
	Replace bool
}

// The defaults of options that are 0.
const (
	defaultGain      = .02
	defaultShare     = .1
	defaultImbalance = .03
	defaultStretch   = .05
	defaultVertices  = 1 << 18
	defaultEdges     = 1 << 21
	// defaultWindow is the window of a policy that balances loads: loads of long ago do not
	// count.
	defaultWindow = 1 << 17
)

// Options configures a controller.
type Options[E Entry] struct {
	Scheduler Scheduler[E]
	Policy    Policy
	Seed      uint64
	// Now is a clock that does not go back.
	Now func() time.Duration
	// CPU returns the processor time used so far by its caller; nil measures the caller's
	// thread.
	CPU func() time.Duration
	// Rand returns random bits, and may be called at the same time; nil means
	// math/rand/v2.
	Rand func() uint64
	// Yield gives the processor to others, about every 100 us of a cut: runtime.Gosched
	// if nil.
	Yield func()
	// Rest waits for a time, or until the context ends, so that a cut takes little of a
	// core. nil uses a timer.
	Rest func(context.Context, time.Duration)
	// Written returns the bytes that each partition has written to disk so far. ok is false
	// while data is on its way to its partition: its bytes say nothing about requests. nil
	// means that the bytes of requests are all that is known.
	Written func(dst []int64) (bytes []int64, ok bool)
	// Cut is cut.Partition if nil.
	Cut func(context.Context, *cut.Graph, cut.Options) (*cut.Result, error)
	// Failed, if not nil, is told of failed cuts and switches. They change nothing.
	Failed func(error)
}

// Stats counts the work done so far.
type Stats struct {
	Tracked         int64         // requests recorded in the graph
	Dropped         int64         // requests sampled, but not recorded for want of room
	Sample          float64       // share of requests tracked, at present
	Interval        time.Duration // least time between two cuts, at present
	Vertices, Edges int
	TrackingTime    time.Duration // processor time; the dispatchers' part is estimated
	CuttingTime     time.Duration // processor time
	Computed        int64         // maps computed
	Applied         int64         // maps applied
	Skipped         int64         // maps not worth applying
	Failed          int64         // cuts and switches that failed
	Moved           int64         // keys assigned to another partition
	LastCut         float64       // share of edge weight cut, by the last map, in its graph
	LastBalance     float64
	LastCutTime     time.Duration // from the snapshot to the map
	Hubs            []string      // keys that outweigh a partition, as of the last map
}
