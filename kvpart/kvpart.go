// Package kvpart is a key-value store in partitions that repartitions itself
// without a pause: it learns which keys are used together and moves them to one
// partition, by cuts of the graph of their use (Luiz and Mendizabal, "Lightweight
// asynchronous repartitioning for local state partitioned systems"; Repart-KV).
// It refuses to replicate, and to expire what it keeps.
package kvpart

import (
	"errors"
	"log/slog"
	"time"

	"github.com/samya-db/samya/kvpart/engine"
)

// The errors of a store; they are wrapped with what was being done.
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
	// ErrFormat says that a directory holds what no store wrote.
	ErrFormat = errors.New("bad format")
	// ErrUnknown says that a request was given up while it ran: it may take effect.
	ErrUnknown = errors.New("outcome unknown")
)

// The bounds of what a store takes.
const (
	MaxKey        = 4 << 10  // bytes of a key
	MaxValue      = 16 << 20 // bytes of a value
	MaxScan       = 1 << 16  // keys of a scan
	MaxTxKeys     = 1 << 12  // keys of an Execute
	MaxPartitions = 1 << 10
)

// Strategy says where values live, and who runs requests.
type Strategy string

// The strategies.
const (
	// Bare is one engine and one lock, without partitions: the control.
	Bare Strategy = "engine"
	// Soft is one engine for all partitions; callers run their requests themselves,
	// under the locks of the partitions.
	Soft Strategy = "soft"
	// Hard is an engine for each partition and generation.
	Hard Strategy = "hard"
	// Threaded is Soft with a worker for each partition, which runs its requests.
	Threaded Strategy = "threaded"
	// HardThreaded is Hard with workers.
	HardThreaded Strategy = "hard_threaded"
)

// PolicyKind says when keys are assigned anew.
type PolicyKind string

// The policies.
const (
	// Static never moves a key; new ones go round-robin. One partition makes it the
	// single worker of the paper.
	Static PolicyKind = "static"
	// Base stops the dispatch of requests every Interval operations and cuts
	// meanwhile (paper, section 3).
	Base PolicyKind = "base"
	// Async cuts while requests go on (paper, section 4).
	Async PolicyKind = "async"
)

// Policy says when and how keys are assigned anew. The zero value is Static.
type Policy struct {
	Kind PolicyKind
	// Operations is Δp, Base's interval.
	Operations int64
	// Window is W, how many of the last requests the graph is of; 0 for no bound but
	// those of Vertices and Edges.
	Window int
	// Every is the least time between two cuts.
	Every time.Duration
	// Gain is by what share of the present cut or imbalance the new map must be
	// better to be applied: .02 if 0; below 0 applies each.
	Gain float64
	// Share bounds the processor time of tracking and cutting, as a share of one
	// core: .1 if 0, unbounded if 1 or more.
	Share float64
	// Sample is the share of requests tracked, from 0 to 1: 0 adapts it to Share.
	Sample float64
	// Vertices and Edges bound the graph: 1<<18 and 1<<21 if 0.
	Vertices, Edges int
	// Imbalance is that of cut.Options.
	Imbalance float64
	// Replace makes a new map replace the present one: keys it does not have are
	// placed as if new, as the paper's code does. Otherwise they stay.
	Replace bool
}

// Placement says on which partition a key goes that is new.
type Placement string

// The placements.
const (
	// RoundRobin places each new key on the partition after that of the one before.
	RoundRobin Placement = "round_robin"
	// Hash places a key by its hash.
	Hash Placement = "hash"
	// Together places all new keys of one request on one partition, and those of the
	// next request on the partition after it.
	Together Placement = "together"
)

// Options says what store to open.
type Options struct {
	Strategy Strategy
	// Partitions is how many there are, from 1 to MaxPartitions: GOMAXPROCS if 0. It
	// may be another number than the one the store was opened with before. Bare has
	// one engine whatever it is.
	Partitions int
	// Backend is the name of an engine: btree, hash or bbolt. Durable ones
	// sync each write before it is answered; those that wait at the same time share
	// a sync, unless one partition's worker or lock has them one after the other.
	Backend string
	// Engine makes engines, instead of the backend of that name, if not nil. Backend
	// is then what directories are called.
	Engine *engine.Factory
	// Dirs are the directories of durable backends: partition p of a hard strategy
	// is kept below Dirs[p mod len], others below Dirs[0]. Each is made if it does not
	// exist. A store takes up what another strategy, or another number of partitions,
	// left there; keys move to where they belong as they are written.
	Dirs []string
	// Cache is how many bytes each engine with a cache of its own may keep in memory:
	// engine.DefaultCache if 0.
	Cache int64
	// Queue is Q, how many requests may wait at a worker: 1<<16 if 0.
	Queue int
	// Place says where new keys go: RoundRobin if empty.
	Place Placement
	// Generations bounds how many generations of engines a hard strategy has, from 2
	// to MaxGenerations: DefaultGenerations if 0. At the bound the oldest one is
	// emptied in the background, and until then a switch makes no new one.
	Generations int
	Policy      Policy
	// Seed decides what is left to chance in cuts.
	Seed uint64
	// Log is told of what nobody waits for; nowhere if nil.
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

// Tx is what the function of an Execute sees: the keys it was given, no others.
// It is valid until the function returns.
type Tx interface {
	// Get appends the value of key to dst, or fails with ErrNotFound or ErrUndeclared.
	Get(key string, dst []byte) ([]byte, error)
	// Put sets the value of key, as seen by others once the function returned nil.
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

// Request is a request of Start. It is the store's from Start until Done.
type Request struct {
	Kind  RequestKind
	Key   string // of a scan, where it begins
	Limit int    // of a scan
	Value []byte // what is written; what was read is appended to Value[:0]
	Pairs []Pair // what was scanned; used as Scan uses dst
	Err   error  // what became of it, once done
	// Done is called once, by a worker: it must be quick and must not call the store.
	Done func(*Request)
}

// Stats is what a store did since it was opened.
type Stats struct {
	Operations      int64 // requests that ran
	Multi           int64 // of those, on several partitions
	Keys            int
	Queued          []int // requests waiting, by worker
	PerPartition    []int64
	Tracked         int64 // requests that were recorded in the graph
	Dropped         int64 // requests that should have been, and were not for want of room
	Vertices, Edges int
	TrackingTime    time.Duration // processor time, about
	CuttingTime     time.Duration
	Computed        int64   // cuts
	Applied         int64   // of those, applied
	Skipped         int64   // of those, not worth it
	Moved           int64   // keys assigned elsewhere
	LastCut         float64 // share of edge weight cut, of the graph of the last cut
	LastBalance     float64
	LastCutTime     time.Duration
	Hubs            []string // keys that outweigh a partition, as of the last cut
	Pause           Pause
	Failed          int64         // cuts and switches that failed; the log says why
	Sample          float64       // share of requests tracked, at present
	Interval        time.Duration // least time between two cuts, at present
	Generations     int           // of engines that still hold keys, for hard strategies
	DiskBytes       int64
}

// Pause tells how long the dispatch of requests stood still for switches of the map.
type Pause struct {
	Count         int64
	P50, P99, Max time.Duration
}
