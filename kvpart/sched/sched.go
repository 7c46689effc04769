// Package sched runs requests over keys on partitions: those that share a
// partition one after the other in the order of their arrival, the others at the
// same time. Which partition a key belongs to may change while requests run. It
// refuses to know what a request does, what a key holds, and why a key should move.
package sched

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The errors of a scheduler; they are wrapped with what was being done.
var (
	// ErrOptions says that an option is out of its range.
	ErrOptions = errors.New("bad option")
	// ErrClosed says that the scheduler is closed or closing; nothing was done.
	ErrClosed = errors.New("scheduler closed")
	// ErrNoEntry says that there is no entry of a key; nothing was done.
	ErrNoEntry = errors.New("no such entry")
	// ErrFull says that the queue of a worker is full; nothing was done.
	ErrFull = errors.New("queue full")
	// ErrGivenUp says that a request was given up before it ran; nothing was done.
	ErrGivenUp = errors.New("given up")
	// ErrUnknown says that a request was given up while it ran: it takes effect, or
	// fails as its job does.
	ErrUnknown = errors.New("outcome unknown")
)

// PanicError says that a job panicked, or ended its goroutine. What it did until
// then stands; the partition goes on with the next request.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("job panicked: %v", e.Value) }

// Mode says who runs requests.
type Mode uint8

// The modes.
const (
	// Callers run their requests themselves, under the locks of the partitions:
	// those that are read-only side by side.
	Callers Mode = iota
	// Workers run them, one for each partition, from its queue.
	Workers
	// Manual is Workers without their goroutines: Step stands for them.
	Manual
)

// The bounds of a scheduler.
const (
	MaxPartitions = 1 << 10
	MaxQueue      = 1 << 24
	DefaultQueue  = 1 << 16
)

// Options says what scheduler to make.
type Options[V any] struct {
	// Partitions is how many there are, from 1 to MaxPartitions.
	Partitions int
	Mode       Mode
	// Queue is how many requests may wait at a worker, up to MaxQueue: DefaultQueue
	// if 0.
	Queue int
	// Place says where new keys go.
	Place Placement
	// Observer is told of requests, if not nil.
	Observer Observer[V]
	// Classer says which partitions a request runs on: those of its entries if nil.
	Classer Classer[V]
	// Meeting is what workers do when they wait: a Barrier if nil.
	Meeting Meeting[V]
	// Now is a clock that does not go back, for the pauses of switches; nil measures
	// none.
	Now func() time.Duration
}

// Observer is told which entries requests use.
type Observer[V any] interface {
	// Observe is called for each request that has entries, once, by whoever handed
	// it over, without an order and by several at the same time: it must be quick. An
	// element may be nil. The slice is valid during the call.
	Observe(entries []*Entry[V])
}

// Scheduler runs requests on partitions. Its methods may be called at the same time.
type Scheduler[V any] struct {
	// state is the epoch and two flags, see gate.go. It changes with the locks of
	// all partitions held, but for the end of a hold.
	state atomic.Uint64
	parts []*partition[V]
	all   []int32 // the numbers of parts
	dir   directory[V]

	mode     Mode
	queue    int64
	observer Observer[V]
	classer  Classer[V]
	meeting  Meeting[V]
	parks    bool // workers never wait but parked
	now      func() time.Duration

	place  placer
	vacant vacancies[V]

	// assign orders preparations of the next map and its switch.
	assign sync.Mutex
	gate   gate
	// multi counts requests of several partitions, extra their partitions but one.
	multi, extra atomic.Int64
	pauses       struct {
		sync.Mutex
		*hdrhistogram.Histogram
	}
	running sync.WaitGroup
}

// New returns a scheduler without keys, its workers running.
func New[V any](o Options[V]) (*Scheduler[V], error) {
	if o.Partitions < 1 || o.Partitions > MaxPartitions {
		return nil, fmt.Errorf("%w: %d partitions, want 1 to %d", ErrOptions, o.Partitions, MaxPartitions)
	}
	if o.Mode > Manual {
		return nil, fmt.Errorf("%w: mode %d", ErrOptions, o.Mode)
	}
	if o.Place > Together {
		return nil, fmt.Errorf("%w: placement %d", ErrOptions, o.Place)
	}
	if o.Queue == 0 {
		o.Queue = DefaultQueue
	}
	if o.Queue < 1 || o.Queue > MaxQueue {
		return nil, fmt.Errorf("%w: queue of %d, want 1 to %d", ErrOptions, o.Queue, MaxQueue)
	}
	if o.Meeting == nil {
		o.Meeting = Barrier[V]{}
	}
	s := &Scheduler[V]{
		mode: o.Mode, queue: int64(o.Queue), observer: o.Observer, classer: o.Classer,
		meeting: o.Meeting, now: o.Now, place: placer{kind: o.Place, partitions: o.Partitions},
	}
	_, s.parks = s.meeting.(Barrier[V])
	s.dir.init()
	if s.now != nil {
		s.pauses.Histogram = hdrhistogram.New(1, int64(time.Minute), 2)
	}
	s.parts = make([]*partition[V], o.Partitions)
	for i := range s.parts {
		s.parts[i] = newPartition(s, i)
		s.all = append(s.all, int32(i))
	}
	if s.mode == Workers {
		for _, p := range s.parts {
			s.running.Go(p.loop)
		}
	}
	return s, nil
}

// Partitions returns how many partitions there are.
func (s *Scheduler[V]) Partitions() int { return len(s.parts) }

// Close refuses new requests, and waits until those under way have ended. It may
// be called again. In Manual mode it does not wait: call Step until nothing is left.
func (s *Scheduler[V]) Close() {
	s.gate.hold.Lock()
	s.lockAll()
	s.state.Or(closed)
	for _, p := range s.parts {
		p.stop()
	}
	s.unlockAll()
	s.gate.hold.Unlock()
	s.running.Wait()
}

// guard runs the job of r. It sets failed to a PanicError if that panics or ends the
// goroutine; in that case guard does not return, but failed is set.
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
