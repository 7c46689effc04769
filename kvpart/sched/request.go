package sched

import "sync/atomic"

// Job is the work of a request.
type Job[V any] interface {
	// Run does the work, at most once, while no other job runs on the request's entries.
	// Only jobs of Access Share run side by side. Run must not call the scheduler, except
	// as Of says.
	Run(r *Request[V])
	// End is called once the scheduler is done with a request for which nobody waits.
	// This is a request of Start, or a request of Do that was given up. From then on the
	// request may be used again. err is nil if Run returned. End must be quick, and must
	// not call the scheduler.
	End(err error)
}

// Access says how a request uses its entries.
type Access uint8

// The ways of access.
const (
	// Share only reads: it runs side by side with other requests of Share.
	Share Access = iota
	// Alone changes existing entries, and makes none.
	Alone
	// Create is Alone, and makes missing entries.
	Create
)

type kind uint8

const (
	single kind = iota
	several
	ranging
	given
)

// Request is a request to run. It is set up with One, Several, Range or Of, and handed to
// Do or Start. It may be used again when the scheduler is done with it. The zero value is
// ready to be set up.
type Request[V any] struct {
	job    Job[V]
	kind   kind
	access Access
	async  bool
	synch  bool // the meeting of all workers at a switch
	key    string
	keys   []string
	limit  int

	first   [1]*Entry[V] // the memory of entries, for a request of a single key
	entries []*Entry[V]
	parts   []int32 // ascending, without duplicates
	class   int     // in the mode Threads, once dispatched
	epoch   Epoch
	version uint64 // of the directory
	// versioned says that the version must be the same when r is dispatched.
	versioned bool
	pinned    bool // the index is locked for reading
	unseen    bool
	upkeep    bool

	runs    *Scheduler[V] // in the mode Threads, once dispatched
	phase   atomic.Uint32
	arrived atomic.Int32
	done    chan struct{}
	err     error
}

// The phases of a request at workers.
const (
	waiting uint32 = iota
	running
	ended
	skipped // given up before it ran
	orphan  // given up while it ran
)

func (r *Request[V]) setUp(k kind, a Access, j Job[V]) {
	if r.kind == given {
		r.entries = nil // the entries belong to the caller
	}
	r.kind, r.access, r.job, r.unseen, r.upkeep = k, a, j, false, false
}

// Unseen hides r, which is set up, from the observer. It is for work that does not count
// as use of keys.
func (r *Request[V]) Unseen() { r.unseen = true }

// Upkeep hides r, which is set up, from the observer, and counts it apart in Stats.
func (r *Request[V]) Upkeep() { r.unseen, r.upkeep = true, true }

// Seen reports whether the observer, if there is one, is told of r.
func (r *Request[V]) Seen() bool { return !r.unseen }

// ready makes r ready to be handed to workers.
func (r *Request[V]) ready() {
	r.phase.Store(waiting)
	r.arrived.Store(0)
	r.err = nil
}

// forget forgets the entries of an earlier use of r.
func (r *Request[V]) forget() {
	if r.kind != given {
		r.entries = r.entries[:0]
	}
}

// One sets r up for the entry of a single key. If the key has no entry and a is not
// Create, Do fails with ErrNoEntry.
func (r *Request[V]) One(key string, a Access, j Job[V]) {
	r.setUp(single, a, j)
	r.key = key
}

// Several sets r up for the entries of keys, all at once. The slice belongs to the
// scheduler until it is done with the request. If a is not Create, a key without an entry
// has nil in Entries.
func (r *Request[V]) Several(keys []string, a Access, j Job[V]) {
	r.setUp(several, a, j)
	r.keys = keys
}

// Range sets r up for the entries of the first limit keys not below from, all at once.
// Vacant entries count: a job that met some, and limit entries in all, may have missed
// further keys. a is Share or Alone.
func (r *Request[V]) Range(from string, limit int, a Access, j Job[V]) {
	r.setUp(ranging, min(a, Alone), j)
	r.key, r.limit = from, limit
}

// Of sets r up for entries that the caller has: at least one, and none of them nil. An
// entry may occur twice. The slice belongs to the scheduler until it is done with the
// request. a is Share or Alone. If an entry leaves the scheduler before the request is
// dispatched, Do, Start and TryStart fail with ErrNoEntry.
//
// No key is looked up, and the request never holds the index of keys while it waits for a
// partition. If all requests are of Of and leave no entry vacant, nobody does. Then
// Insert and Remove wait for no job, and jobs may call them.
func (r *Request[V]) Of(entries []*Entry[V], a Access, j Job[V]) {
	r.setUp(given, min(a, Alone), j)
	r.entries = entries
}

// Entries returns the entries, in the order of the keys or entries asked for; for a range
// in the order of keys. They may be used while the job runs.
func (r *Request[V]) Entries() []*Entry[V] { return r.entries }

// Epoch returns the epoch of the map of partitions by which the request runs.
func (r *Request[V]) Epoch() Epoch { return r.epoch }

// Access returns how the request uses its entries.
func (r *Request[V]) Access() Access { return r.access }

// Class returns the class of the request, by its partitions and its access, while it runs
// in the mode Threads: the numbers are those of early.Subsets for up to early.MaxSubsets
// partitions, else those of early.Shards.
func (r *Request[V]) Class() int { return r.class }

// Partitions returns the partitions that the request runs on, ascending.
func (r *Request[V]) Partitions() []int32 { return r.parts }
