package sched

// Meeting decides how a worker waits. A worker waits at a request of several partitions
// until all its workers have arrived, when the last runs it, and before an empty queue.
// The worker's own step calls the methods; different workers do so at the same time.
type Meeting[V any] interface {
	// Ready reports whether the worker may arrive at r, the request it has reached: all
	// earlier requests in its queue have run. It is called at each step until it reports
	// true. For a parked worker another goroutine may call it with the worker's lock
	// held: it must be quick, and not call the scheduler. It must not keep r.
	Ready(worker int, r *Request[V]) bool
	// Wait is called at each step at which the worker has nothing to run. With met it
	// waits for the others at a request, else for work. tries counts the steps since it
	// last had work. No lock is held. Wait reports whether to try again at once;
	// otherwise the worker parks, until there is something to run.
	Wait(worker int, met bool, tries int) bool
}

// barrier is a Meeting at which workers park.
type barrier[V any] struct{}

// Ready reports true: a worker may always arrive.
func (barrier[V]) Ready(int, *Request[V]) bool { return true }

// Wait reports false: a worker always parks.
func (barrier[V]) Wait(int, bool, int) bool { return false }
