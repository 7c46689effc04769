package sched

import "sync/atomic"

// Job is what a request does.
type Job[V any] interface {
	// Run does it, once at most, while nothing else runs on the request's entries
	// (but other jobs that share, if it does). It must not call the scheduler, see Of
	// for what is excepted.
	Run(r *Request[V])
	// End is called once the scheduler is done with a request that nobody waits for:
	// one of Start, or one of Do that was given up. From then on the request may be
	// used again. err is nil if Run returned. It must be quick, and not call the
	// scheduler.
	End(err error)
}

// Access says how a request uses its entries.
type Access uint8

// The ways of access.
const (
	// Share reads: it runs side by side with others that do.
	Share Access = iota
	// Alone changes what is there; it makes no entries.
	Alone
	// Create is Alone, and makes the entries that are missing.
	Create
)

type kind uint8

const (
	single kind = iota
	several
	ranging
	given
)

// Request is what is run. It is set up with One, Several, Range or Of, handed to Do or
// Start, and may be used again when it is back. The zero value is ready to be set up.
type Request[V any] struct {
	job    Job[V]
	kind   kind
	access Access
	async  bool
	synch  bool // the meeting of all workers at a switch
	key    string
	keys   []string
	limit  int

	first   [1]*Entry[V] // the memory of entries, of a request of one key
	entries []*Entry[V]
	parts   []int32 // ascending, without doubles
	epoch   Epoch
	version uint64 // of the directory
	// versioned tells that the version must be the same when r is dispatched.
	versioned bool
	pinned    bool // the index is locked for reading
	unseen    bool

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
		r.entries = nil // they are the caller's
	}
	r.kind, r.access, r.job, r.unseen = k, a, j, false
}

// Unseen has the observer not be told of r, which is set up: it is not the use of
// its keys, as upkeep is not.
func (r *Request[V]) Unseen() { r.unseen = true }

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

// One sets r up for the entry of one key. If there is none and a is not Create, Do
// fails with ErrNoEntry.
func (r *Request[V]) One(key string, a Access, j Job[V]) {
	r.setUp(single, a, j)
	r.key = key
}

// Several sets r up for the entries of keys, all at once. The slice belongs to the
// scheduler until the request is back. Of a key without an entry the element of
// Entries is nil, if a is not Create.
func (r *Request[V]) Several(keys []string, a Access, j Job[V]) {
	r.setUp(several, a, j)
	r.keys = keys
}

// Range sets r up for the entries of the first limit keys not below from, all at
// once. Vacant ones count: a job that met some, and as many entries as limit, may
// have missed others to their right. a is Share or Alone.
func (r *Request[V]) Range(from string, limit int, a Access, j Job[V]) {
	r.setUp(ranging, min(a, Alone), j)
	r.key, r.limit = from, limit
}

// Of sets r up for entries that the caller has, one at least and none of them nil; one
// may stand there twice. The slice belongs to the scheduler until the request is back.
// a is Share or Alone. If an entry left the scheduler before the request is
// dispatched, Do, Start and TryStart fail with ErrNoEntry.
//
// No key is looked up, and the index of keys is never held while the request waits for
// a partition. Where all requests are of Of and leave no entry vacant nobody does so:
// then Insert and Remove wait for no job, and jobs may call them.
func (r *Request[V]) Of(entries []*Entry[V], a Access, j Job[V]) {
	r.setUp(given, min(a, Alone), j)
	r.entries = entries
}

// Entries returns the entries, in the order of the keys or entries asked for; of a
// range in the order of keys. They may be used while the job runs.
func (r *Request[V]) Entries() []*Entry[V] { return r.entries }

// Epoch returns the epoch by whose map of partitions the request runs.
func (r *Request[V]) Epoch() Epoch { return r.epoch }

// Access returns how the request uses its entries.
func (r *Request[V]) Access() Access { return r.access }

// Partitions returns the partitions the request runs on, ascending.
func (r *Request[V]) Partitions() []int32 { return r.parts }
