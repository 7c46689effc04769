// Package kvpart is a key-value store in partitions that repartitions itself without a
// pause. It learns which keys are used together and moves them to the same partition, by
// cuts of the graph of their use (Luiz and Mendizabal, "Lightweight asynchronous
// repartitioning for local state partitioned systems"; Repart-KV). It does not replicate
// its keys, nor let them expire.
//
// # Stability
//
// From version 1.0 on, packages kvpart, kvpart/engine and the backends below it follow
// semantic versions: a program that compiles goes on to compile and to work. Packages
// sched, early, cut, workload and control may change in any minor version; the changelog
// tells how. Options and Stats may get fields, so their literals should name the fields.
// The choices of a policy may differ in any version. A later version reads the
// directories of durable backends of every earlier version; an earlier version need not
// read a later one's.
package kvpart

import (
	"errors"
	"log/slog"
	"time"

	"github.com/samya-db/samya/kvpart/engine"
)

// The errors of a store. They are wrapped with the operation that failed.
var (
	// ErrNotFound says that a key has no value.
	ErrNotFound = errors.New("key not found")
	// ErrClosed says that the store is closed or closing; nothing was done.
	ErrClosed = errors.New("store closed")
	// ErrOptions says that an option is out of its range.
	ErrOptions = errors.New("bad option")
	// ErrKey says that a key is empty or longer than MaxKey; nothing was done.
	ErrKey = errors.New("bad key")
	// ErrValue says that a value is longer than MaxValue; nothing was done.
	ErrValue = errors.New("bad value")
	// ErrUndeclared says that a transaction used a key that Execute was not given;
	// nothing was done.
	ErrUndeclared = errors.New("undeclared key")
	// ErrFormat says that a directory holds files that no store wrote.
	ErrFormat = errors.New("bad format")
	// ErrUnknown says that the caller gave up a request that was running: the request may
	// take effect.
	ErrUnknown = errors.New("outcome unknown")
)

// The bounds of keys, values and requests.
const (
	MaxKey        = 4 << 10  // bytes of a key
	MaxValue      = 16 << 20 // bytes of a value
	MaxScan       = 1 << 16  // keys of a scan
	MaxTxKeys     = 1 << 12  // keys of an Execute
	MaxPartitions = 1 << 10
)

// Strategy says where values live, and which goroutine runs a request.
type Strategy string

// The strategies.
const (
	// Bare is a single engine under a single lock, without partitions: the control.
	Bare Strategy = "engine"
	// Soft has a single engine for all partitions. Callers run their own requests, under
	// the locks of the partitions.
	Soft Strategy = "soft"
	// Hard has an engine for each partition and generation.
	Hard Strategy = "hard"
	// Threaded is Soft with a worker for each partition, which runs its requests.
	Threaded Strategy = "threaded"
	// HardThreaded is Hard with workers.
	HardThreaded Strategy = "hard_threaded"
)

// Scheduler says how the strategies Threaded and HardThreaded run requests: by Workers,
// or by early scheduling, in a mode of package early. With early scheduling requests that
// only read may run side by side, and threads without work may steal.
type Scheduler string

// Workers is a worker for each partition, the default. A request of several partitions
// runs on the last of its workers to arrive; the others park meanwhile.
const Workers Scheduler = "workers"

// PolicyKind says when keys are assigned anew.
type PolicyKind string

// The policies.
const (
	// Static never moves a key; new keys go round-robin. With a single partition it is
	// the single worker of the paper.
	Static PolicyKind = "static"
	// Base stops the dispatch of requests every Policy.Operations operations and cuts
	// meanwhile (paper, section 3).
	Base PolicyKind = "base"
	// Async cuts while requests go on (paper, section 4).
	Async PolicyKind = "async"
)

// Balance is the aim of a new map.
type Balance string

// The balances.
const (
	// BalanceGraph keeps keys used together on a partition, and balances the number of uses.
	BalanceGraph Balance = "graph"
	// BalanceLibra balances the processor time and the disk bytes of requests over
	// partitions, and keeps ranges of keys together (package libra). Disk bytes count where
	// a move between partitions changes the load of a disk: with hard strategies on a
	// durable backend, and Dirs on several file systems or an Engine of the caller.
	BalanceLibra Balance = "libra"
	// BalanceBoth keeps keys used together on a partition, and balances both loads: the graph
	// finds groups of keys, package libra their partitions. Balance comes first: of the moves
	// that bring balance, package libra takes the moves that cut least.
	BalanceBoth Balance = "both"
	// BalanceCPU and BalanceDisk balance a single load and ignore the other. They are for
	// comparison with BalanceLibra.
	BalanceCPU  Balance = "cpu"
	BalanceDisk Balance = "disk"
)

// Policy says when and how keys are assigned anew. The zero value is Static.
type Policy struct {
	Kind PolicyKind
	// Operations is Δp, the operations between two cuts of Base.
	Operations int64
	// Window is W: the graph covers the last Window requests. With 0 only Vertices and
	// Edges bound the graph.
	Window int
	// Every is the least time between two cuts.
	Every time.Duration
	// Gain is the least share by which a new map must lower the present cut or imbalance
	// to be applied: .02 if 0. Below 0 every map is applied.
	Gain float64
	// Share bounds the processor time of tracking and cutting, as a share of one core: .1
	// if 0, unbounded if 1 or more.
	Share float64
	// Sample is the share of requests tracked, from 0 to 1: 0 adapts it to Share.
	Sample float64
	// Vertices and Edges bound the graph: 1<<18 and 1<<21 if 0.
	Vertices, Edges int
	// Imbalance is cut.Options.Imbalance: the tolerated weight above the mean, as a
	// share; .03 if 0.
	Imbalance float64
	// Stretch is cut.Options.Stretch: the tolerated weight where that cuts much less; .05
	// if 0, and off if below Imbalance.
	Stretch float64
	// Balance is the aim of a new map: BalanceGraph if empty. With any other balance the
	// data of hard strategies follows its keys to their new partitions in the background,
	// and a Window of 0 means 1<<17.
	Balance Balance
	// Tolerance is the load above the mean that a partition may have with a Balance other
	// than BalanceGraph, as a share, above 0 and below 1: .05 if 0.
	Tolerance float64
	// Replace makes a new map replace the present map: keys missing from the new map are
	// placed as if new, as the paper's code does. Otherwise they stay.
	Replace bool
}

// Placement says to which partition a new key goes.
type Placement string

// The placements.
const (
	// RoundRobin places each new key on the partition after its predecessor's.
	RoundRobin Placement = "round_robin"
	// Hash places a key by its hash.
	Hash Placement = "hash"
	// Together places all new keys of one request on the same partition, and the new keys
	// of the next request on the following partition.
	Together Placement = "together"
	// Beside places a new key on the partition of its neighbours, the next keys below and
	// above, where both are on the same; else, and before the first new map, like
	// RoundRobin. It keeps ranges together where keys are inserted into learnt ranges.
	Beside Placement = "beside"
	// Within places a new key on the partition of the next key below, so that ranges stay
	// whole; the first key goes to partition 0.
	Within Placement = "within"
)

// Options configures a store.
type Options struct {
	Strategy Strategy
	// Partitions is the number of partitions, from 1 to MaxPartitions: GOMAXPROCS if 0.
	// It may differ from the number the store was last opened with. Bare has a single
	// engine whatever Partitions is.
	Partitions int
	// Scheduler is of [Schedulers]; if empty Workers. It must be empty or Workers unless
	// the strategy is Threaded or HardThreaded.
	Scheduler Scheduler
	// Threads is the number of threads of each partition under early scheduling: 1 if 0.
	// All partitions have early.MaxThreads at most.
	Threads int
	// Backend is the name of a registered engine: DefaultBackend if empty. Each backend
	// registers itself when its package is imported, as kvpart/engine/bbolt; only the
	// default's package is imported by kvpart. A durable engine syncs each write before
	// the store answers it. Writes that wait at the same time share a sync,
	// unless the worker or lock of a single partition runs them in sequence.
	Backend string
	// Engine, if not nil, makes the engines instead of the named backend. Backend then
	// only names their directories.
	Engine *engine.Factory
	// Dirs are the directories of durable backends. Partition p of a hard strategy is
	// kept below Dirs[p mod len], the other strategies below Dirs[0]. A missing directory
	// is made. A store takes up the keys that another strategy, or another number of
	// partitions, left there. Each key moves to its proper place when it is written.
	Dirs []string
	// Cache bounds the bytes that an engine with a cache of its own keeps in memory:
	// engine.DefaultCache if 0.
	Cache int64
	// Queue is Q, how many requests may wait at a worker, or at all threads of early
	// scheduling: 1<<16 if 0.
	Queue int
	// Place says where new keys go: if empty Within where ranges are balanced, else Beside with
	// the policy Async, else RoundRobin.
	Place Placement
	// Generations bounds the generations of engines of a hard strategy, from 2 to
	// MaxGenerations: DefaultGenerations if 0. At the bound the oldest generation is
	// emptied in the background; until then a switch makes no new generation.
	Generations int
	// Follow makes the values of keys that were assigned to another partition move to its
	// engine in the background, while requests go on. Otherwise a value moves when it is
	// written. It matters to hard strategies: their partitions may have a disk each.
	Follow bool
	Policy Policy
	// Seed seeds the random choices of cuts.
	Seed uint64
	// Log receives errors for which no caller waits; nil discards them.
	Log *slog.Logger
	// Now is the clock of policies and pauses, which must not go back: the time since
	// Open if nil.
	Now func() time.Duration
}

// The range of Options.Generations.
const (
	DefaultGenerations = 4
	MaxGenerations     = 64
)

// Pair is a key and its value.
type Pair struct {
	Key   string
	Value []byte
}

// Tx is the view that the function of an Execute has: the declared keys, and no others.
// It is valid until the function returns.
type Tx interface {
	// Get appends the value of key to dst, or fails with ErrNotFound or ErrUndeclared.
	Get(key string, dst []byte) ([]byte, error)
	// Put sets the value of key. Others see it once the function has returned nil.
	Put(key string, value []byte) error
	// Delete removes key.
	Delete(key string) error
}

// RequestKind says what a Request does.
type RequestKind uint8

// The kinds of requests.
const (
	ReadRequest RequestKind = iota + 1
	WriteRequest
	DeleteRequest
	ScanRequest
)

// Request is a request of Start. The store owns it from Start until Done.
type Request struct {
	Kind  RequestKind
	Key   string // where a scan begins, for scans
	Limit int    // most pairs, for scans
	Value []byte // the value to write; a read value is appended to Value[:0]
	Pairs []Pair // the scanned pairs; used as Scan uses dst
	Err   error  // the outcome, once done
	// Done is called once, by a worker. It must be quick and must not call the store.
	Done func(*Request)
}

// Stats counts events since a store was opened.
type Stats struct {
	Operations      int64 // requests that ran
	Multi           int64 // of Operations, requests that ran on several partitions
	Stolen          int64 // requests that a thread took from another's queue
	Keys            int
	Queued          []int // requests waiting, by worker
	PerPartition    []int64
	Tracked         int64 // requests that were recorded in the graph
	Dropped         int64 // requests sampled for the graph, but not recorded for want of room
	Vertices, Edges int
	TrackingTime    time.Duration // processor time, approximate
	CuttingTime     time.Duration
	Computed        int64   // cuts
	Applied         int64   // cuts applied
	Skipped         int64   // cuts not worth applying
	Moved           int64   // keys assigned to another partition
	LastCut         float64 // share of edge weight cut, in the graph of the last cut
	LastBalance     float64
	LastCutTime     time.Duration
	Hubs            []string // keys that outweigh a partition, as of the last cut
	Pause           Pause
	Failed          int64         // cuts and switches that failed; the log says why
	Sample          float64       // share of requests tracked, at present
	Interval        time.Duration // least time between two cuts, at present
	Generations     int           // generations of engines that still hold keys, for hard strategies
	DiskBytes       int64
	// CPU is the processor time of requests by partition, estimated from a sample: nil with
	// BalanceGraph and without a policy.
	CPU []time.Duration
	// Written are the bytes written to disk by partition, logs and compactions included, of
	// hard strategies; others have a single sum. nil for engines in memory.
	Written  []int64
	Followed int64 // values that moved after their keys in the background, see Options.Follow
}

// Pause describes how long switches of the map stopped the dispatch of requests.
type Pause struct {
	Count         int64
	P50, P99, Max time.Duration
}
