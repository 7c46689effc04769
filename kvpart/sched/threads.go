package sched

import (
	"fmt"
	"sync"

	"github.com/samya-db/samya/kvpart/early"
)

// Early are the settings of the mode Threads.
type Early struct {
	// Mode is the way in which the threads wait for each other, and steal.
	Mode early.Mode
	// Threads is the number of threads of each partition: 1 if 0. All partitions have at
	// most early.MaxThreads threads.
	Threads int
}

// threads run dispatched requests in the mode Threads. The class of a request says which
// partitions it uses, and whether it changes them.
type threads[V any] struct {
	*early.Scheduler
	// subsets says that each set of partitions has classes: else all requests of several
	// partitions share two.
	subsets bool
	all     int // the class that conflicts with all
	// door holds the lock under which requests are dispatched, and counts those that wait.
	door    *partition[V]
	closing sync.Once
}

// newThreads starts the threads of a scheduler.
func newThreads[V any](s *Scheduler[V], o *Early) (*threads[V], error) {
	partitions, each := len(s.parts), max(o.Threads, 1)
	t := &threads[V]{subsets: partitions <= early.MaxSubsets, door: newPartition(s, -1)}
	mapped := early.Shards
	if t.subsets {
		mapped = early.Subsets
	}
	if o.Threads < 0 || partitions*each > early.MaxThreads {
		return nil, fmt.Errorf("%w: %d threads of each of %d partitions, want %d in all at most", errOptions, o.Threads, partitions, early.MaxThreads)
	}
	classes, mapping, err := mapped(partitions, each)
	if err != nil {
		return nil, fmt.Errorf("map classes to threads: %w", err)
	}
	t.all = classes.Len() - 1
	// The door bounds the requests that wait, before they are dispatched.
	if t.Scheduler, err = early.New(early.Options{Mode: o.Mode, Classes: classes, Mapping: mapping, Queue: 2 * MaxQueue}); err != nil {
		return nil, fmt.Errorf("%w: start threads: %w", errOptions, err)
	}
	return t, nil
}

// class is the class of a request, whose partitions are known.
func (t *threads[V]) class(r *Request[V]) int {
	switch writes := r.access != Share; {
	case t.subsets:
		return early.SubsetClass(r.parts, writes)
	case len(r.parts) > 1 && writes:
		return t.all
	case len(r.parts) > 1:
		return t.all - 1
	case writes:
		return 2*int(r.parts[0]) + 1
	}
	return 2 * int(r.parts[0])
}

// append dispatches r, see Scheduler.append.
func (t *threads[V]) append(r *Request[V], state uint64) (<-chan struct{}, bool) {
	p := t.door
	p.mu.Lock()
	defer p.mu.Unlock()
	ok := p.s.current(r, state)
	p.s.unpin(r)
	if !ok {
		return nil, false
	}
	if full := p.full(); full != nil {
		return full, false
	}
	r.enter()
	p.count.Add(1)
	r.runs, r.class = p.s, t.class(r)
	t.Submit(r.class, (*threadJob[V])(r))
	return nil, true
}

// sync dispatches the meeting of all threads at a switch, with the door locked.
func (t *threads[V]) sync(r *Request[V]) {
	r.runs, r.class = t.door.s, t.all
	t.Submit(t.all, (*threadJob[V])(r))
}

// threadJob is a request at the threads: early.Job.
type threadJob[V any] Request[V]

// Run implements early.Job.
func (h *threadJob[V]) Run(int) {
	r := (*Request[V])(h)
	s := r.runs
	if r.synch {
		close(r.done)
		return
	}
	s.threads.door.left(false)
	var err error
	defer func() { // also if the job ends the goroutine
		due := s.leave(r)
		s.give(r, err)
		if due {
			s.tidy()
		}
	}()
	s.execute(r, &err)
}
