// Package sched runs requests over keys on partitions. Requests that share a partition
// run in the order of their arrival, others at the same time. A key's partition may
// change while requests run. The package does not know the work of a request, the value
// of a key, nor why a key should move.
package sched

import (
	"cmp"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The errors of a scheduler. They are wrapped with the operation that failed.
var (
	// errOptions says that an option is out of its range.
	errOptions = errors.New("bad option")
	// ErrClosed says that the scheduler is closed or closing; nothing was done.
	ErrClosed = errors.New("scheduler closed")
	// ErrNoEntry says that a key has no entry, or a given entry is gone; nothing was
	// done.
	ErrNoEntry = errors.New("no such entry")
	// errFull says that TryStart would have to wait; nothing was done.
	errFull = errors.New("queue full")
	// errGivenUp says that a request was given up before it ran; nothing was done.
	errGivenUp = errors.New("given up")
	// ErrUnknown says that a request was given up while it ran: it takes effect, or fails
	// as its job does.
	ErrUnknown = errors.New("outcome unknown")
)

// PanicError says that a job panicked, or ended its goroutine. Its earlier effects stand;
// the partition goes on with the next request.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("job panicked: %v", e.Value) }

// Mode says which goroutines run requests.
type Mode uint8

// The modes.
const (
	// Callers run their own requests, under the locks of the partitions; requests of
	// Access Share run side by side.
	Callers Mode = iota
	// Workers run the requests, a worker for each partition, from its queue.
	Workers
	// Manual is Workers without their goroutines: the caller calls Step instead.
	Manual
	// Threads run the requests, assigned to classes of requests as package early says:
	// requests of Access Share run side by side where a partition has several threads, and
	// threads may steal.
	Threads
)

// The bounds of a scheduler.
const (
	maxPartitions = 1 << 10
	MaxQueue      = 1 << 24
	DefaultQueue  = 1 << 16
)

// Options configures a scheduler.
type Options[V any] struct {
	// Partitions is the number of partitions, from 1 to 1024.
	Partitions int
	Mode       Mode
	// Queue bounds the requests that wait at a worker, in the mode Threads at all threads.
	// It is from 1 to MaxQueue: DefaultQueue if 0.
	Queue int
	// Early are the settings of the mode Threads.
	Early Early
	// Place says where new keys go.
	Place Placement
	// Observer, if not nil, is told of requests.
	Observer Observer[V]
	// Classer chooses the partitions of a request: the partitions of its entries if nil.
	Classer Classer[V]
	// Now is a clock that does not go back, for the pauses of switches; nil measures
	// none.
	Now func() time.Duration
}

// Observer is told which entries requests use.
type Observer[V any] interface {
	// Observe is called once for each request that has entries, by the goroutine that
	// handed it over. Calls come in no order and at the same time: Observe must be quick.
	// An element may be nil. The slice is valid during the call.
	Observe(entries []*Entry[V])
}

// Scheduler runs requests on partitions. Its methods may be called at the same time.
type Scheduler[V any] struct {
	// state is the epoch and two flags, see gate.go. It changes only with the locks of
	// all partitions held, except at the end of a hold.
	state atomic.Uint64
	parts []*partition[V]
	all   []int32 // the numbers of parts
	// doors are the partitions whose locks a request is dispatched under.
	doors   []*partition[V]
	threads *threads[V] // of the mode Threads
	dir     directory[V]

	mode     Mode
	queue    int64
	observer Observer[V]
	classer  Classer[V]
	now      func() time.Duration

	place  placer
	vacant vacancies[V]

	// assign orders preparations of the next map and its switch.
	assign sync.Mutex
	gate   gate
	// multi counts requests of several partitions.
	multi, upkeep atomic.Int64
	pauses        struct {
		sync.Mutex
		*hdrhistogram.Histogram
	}
	running sync.WaitGroup
}

// New returns a scheduler without keys, its workers running. It fails if an option is
// out of range.
func New[V any](o Options[V]) (*Scheduler[V], error) {
	if o.Partitions < 1 || o.Partitions > maxPartitions {
		return nil, fmt.Errorf("%w: %d partitions, want 1 to %d", errOptions, o.Partitions, maxPartitions)
	}
	if o.Mode > Threads {
		return nil, fmt.Errorf("%w: mode %d", errOptions, o.Mode)
	}
	if o.Place > Within {
		return nil, fmt.Errorf("%w: placement %d", errOptions, o.Place)
	}
	o.Queue = cmp.Or(o.Queue, DefaultQueue)
	if o.Queue < 1 || o.Queue > MaxQueue {
		return nil, fmt.Errorf("%w: queue of %d, want 1 to %d", errOptions, o.Queue, MaxQueue)
	}
	s := &Scheduler[V]{
		mode: o.Mode, queue: int64(o.Queue), observer: o.Observer, classer: o.Classer,
		now: o.Now, place: placer{kind: o.Place, partitions: o.Partitions},
	}
	s.dir.init()
	if s.now != nil {
		s.pauses.Histogram = hdrhistogram.New(1, int64(time.Minute), 2)
	}
	s.parts = make([]*partition[V], o.Partitions)
	for i := range s.parts {
		s.parts[i] = newPartition(s, i)
		s.all = append(s.all, int32(i))
	}
	s.doors = s.parts
	switch s.mode {
	case Workers:
		for _, p := range s.parts {
			s.running.Go(p.loop)
		}
	case Threads:
		var err error
		if s.threads, err = newThreads(s, &o.Early); err != nil {
			return nil, err
		}
		s.doors = []*partition[V]{s.threads.door}
	}
	return s, nil
}

// Partitions returns the number of partitions.
func (s *Scheduler[V]) Partitions() int { return len(s.parts) }

// Close refuses new requests, and waits until requests under way have ended. It may be
// called again. In Manual mode it does not wait: call Step until every worker has
// Stopped.
func (s *Scheduler[V]) Close() {
	s.gate.hold.Lock()
	s.lockAll()
	s.state.Or(closed)
	for _, p := range s.parts {
		p.stop()
	}
	s.unlockAll()
	s.gate.hold.Unlock()
	if s.threads != nil {
		s.threads.closing.Do(s.threads.Close)
	}
	s.running.Wait()
}

// guard runs the job of r. If the job panics or ends the goroutine, guard sets failed to
// a PanicError. After runtime.Goexit guard does not return, but failed is set.
func (s *Scheduler[V]) guard(r *Request[V], failed *error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		v := recover()
		if v == nil {
			v = "runtime.Goexit"
		}
		*failed = &PanicError{Value: v, Stack: debug.Stack()}
	}()
	r.job.Run(r)
	returned = true
}
