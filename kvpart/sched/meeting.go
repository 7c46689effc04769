package sched

// Meeting is what a worker does where it has nothing to run itself: at a request of
// several partitions until all of its workers have arrived, when the last runs it,
// and before an empty queue. Methods are called by the worker's own step; those of
// different workers at the same time.
type Meeting[V any] interface {
	// Ready tells whether the worker may arrive at r, which it has reached: all that
	// came before r to its queue has run. It is called at each step until then. It may
	// be called for a worker that is parked, by another that has its lock: it must be
	// quick, and not call the scheduler. r must not be kept.
	Ready(worker int, r *Request[V]) bool
	// Wait is called at each step at which the worker has nothing to run: for the
	// others at a request if met, else for work. tries counts the steps since it last
	// had. No lock is held. It tells whether to try again at once; otherwise the worker
	// parks, until there is something to run.
	Wait(worker int, met bool, tries int) bool
}

// Barrier is a Meeting at which workers park.
type Barrier[V any] struct{}

// Ready tells that a worker may arrive.
func (Barrier[V]) Ready(int, *Request[V]) bool { return true }

// Wait has a worker park.
func (Barrier[V]) Wait(int, bool, int) bool { return false }
