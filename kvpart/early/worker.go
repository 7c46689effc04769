package early

import (
	"sync"
	"sync/atomic"
)

// place is the next action of a thread.
type place uint8

const (
	drain   place = iota // take over the queue
	next                 // look at the next request of the batch
	markers              // wait for thieves of this thread
	before               // enter the first meeting
	gather               // wait for its end
	arrive               // count the arrival
	watch                // wait for the others to arrive, or for the end of the request
	start                // start the request
	finish               // end the request
	open                 // let the others go on
	after                // enter the last meeting
	part                 // wait for its end
	seek                 // look for a victim
	rob                  // take a victim's queue
	plunder              // look at the next stolen request
	restore              // tell the victim that all is done
)

// outcome is the outcome of a step.
type outcome uint8

const (
	moved   outcome = iota // the thread has got on
	waiting                // it waits for another thread
	idle                   // it has no work
	stopped                // it has no work, and the scheduler is closing
)

// worker is a thread.
type worker struct {
	*machine
	id int

	mu sync.Mutex
	// ready are the requests not taken over yet; sequential counts the sequential ones.
	// room is signalled when ready is taken.
	ready      []task
	sequential int
	room       sync.Cond
	// guarded says that the batch being run has a sequential request: nothing may be stolen.
	// waits is the number of requests in ready. Both are read without the lock too.
	guarded atomic.Bool
	waits   atomic.Int32
	// robbed has a mark for each thread that runs requests stolen from this one.
	robbed []cell

	// The rest is the thread's own.

	at place
	// batch are the requests taken over, from done on; ahead counts the sequential requests
	// that have not ended.
	batch []task
	done  int
	ahead int
	// cycles is the present mark of each class.
	cycles []int
	// now is the request of the batch at hand. leads says that this thread runs it for all.
	now   task
	leads bool
	// generation is the generation of the meeting at hand.
	generation uint64
	// loot are stolen requests, from taken on; robbing is set while they run. victim is the
	// thread robbed, tried the number of victims looked at, and back the place to go on at.
	loot    []task
	taken   int
	robbing bool
	victim  int
	tried   int
	back    place

	parked atomic.Bool
	sema   chan struct{}
}

// append adds a request to the queue, and reports whether it did.
func (w *worker) append(t task, sequential, wait bool) bool {
	w.mu.Lock()
	for len(w.ready) >= w.queue {
		if !wait {
			w.mu.Unlock()
			return false
		}
		if w.quiet {
			// A thread that sleeps may be the one that others wait for.
			w.wakeBusy()
		}
		w.room.Wait()
	}
	w.ready = append(w.ready, t)
	if sequential {
		w.sequential++
	}
	w.waits.Store(int32(len(w.ready)))
	w.mu.Unlock()
	if !w.quiet && !w.wake() {
		w.idlers(w)
	}
	return true
}

// step takes a step.
func (w *worker) step() outcome {
	switch w.at {
	case drain:
		return w.drain()
	case next:
		w.look()
	case markers:
		for i := range w.robbed {
			if w.robbed[i].Load() != 0 {
				return waiting
			}
		}
		w.meet()
	case before:
		return w.enter(&w.classes[w.now.class].before, gather)
	case gather:
		return w.leave(&w.classes[w.now.class].before, w.begins())
	case arrive:
		w.arrive()
	case watch:
		return w.watch()
	case start:
		w.at = finish // also if the job ends the goroutine
		w.begun()
	case finish:
		w.ended()
	case open:
		c := &w.classes[w.now.class]
		c.marks[w.cycles[w.now.class]].Store(0)
		w.wakeAll(c)
		if w.at = next; w.mode.meets() {
			w.at = after
		}
	case after:
		return w.enter(&w.classes[w.now.class].after, part)
	case part:
		return w.leave(&w.classes[w.now.class].after, next)
	case seek:
		return w.seek()
	case rob:
		w.rob()
	case plunder:
		w.plunder()
	case restore:
		v := w.workers[w.victim]
		v.robbed[w.id].Store(0)
		v.wake()
		w.at = w.back
	}
	return moved
}

// drain takes over the queue.
func (w *worker) drain() outcome {
	closing := w.closing.Load()
	w.mu.Lock()
	clear(w.batch)
	w.batch, w.ready = w.ready, w.batch[:0]
	w.ahead, w.sequential = w.sequential, 0
	w.done = 0
	w.guarded.Store(w.ahead > 0)
	w.waits.Store(0)
	w.room.Broadcast()
	w.mu.Unlock()
	switch {
	case len(w.batch) > 0:
		w.at = next
		return moved
	case closing:
		return stopped
	case w.mode.steals():
		w.tried, w.back, w.at = 0, drain, seek
		return moved
	}
	return idle
}

// look looks at the next request of the batch.
func (w *worker) look() {
	if w.done == len(w.batch) {
		w.at = drain
		return
	}
	w.now = w.batch[w.done]
	w.done++
	if w.leads = false; w.classes[w.now.class].Sequential {
		w.at = markers
		return
	}
	w.at = start
}

// meet goes on to a sequential request, once nobody runs requests stolen from here.
func (w *worker) meet() {
	c := &w.classes[w.now.class]
	switch {
	case !c.several():
		w.at = start
	case w.mode.counts():
		w.at = arrive
	default:
		w.at = before
	}
}

// begins is the place after the first meeting: the first thread of the class runs the
// request.
func (w *worker) begins() place {
	if w.leads = w.id == w.classes[w.now.class].Threads[0]; w.leads {
		return start
	}
	return after
}

func (w *worker) enter(b *meeting, then place) outcome {
	c := &w.classes[w.now.class]
	g, complete := b.enter(len(c.Threads))
	w.generation, w.at = g, then
	if complete {
		w.wakeAll(c)
	}
	return moved
}

func (w *worker) leave(b *meeting, then place) outcome {
	if !b.over(w.generation) {
		return waiting
	}
	if w.at = then; then == next {
		w.passed()
	}
	return moved
}

// arrive counts the thread at a request. The last thread to arrive runs it.
func (w *worker) arrive() {
	c := &w.classes[w.now.class]
	k := 1 - w.cycles[w.now.class]
	w.cycles[w.now.class] = k
	if w.leads = int(c.marks[k].Add(1)) == len(c.Threads); w.leads {
		w.at = start
		return
	}
	w.tried, w.back, w.at = 0, watch, watch
}

// watch waits for the end of a request that another thread runs. Where a meeting follows,
// the end of the arrivals is enough.
func (w *worker) watch() outcome {
	c := &w.classes[w.now.class]
	n := int(c.marks[w.cycles[w.now.class]].Load())
	switch {
	case w.mode.meets() && (n == 0 || n == len(c.Threads)):
		w.at = after
		return moved
	case n == 0:
		w.at = next
		w.passed()
		return moved
	case w.mode.stealsWaiting():
		w.tried, w.back, w.at = 0, watch, seek
		return moved
	}
	return waiting
}

// passed notes that a sequential request has ended. After the last of a batch the rest
// may be stolen.
func (w *worker) passed() {
	if w.ahead--; w.ahead == 0 {
		w.guarded.Store(false)
	}
}

// hand is the request that the thread runs: of its loot, or of its batch.
func (w *worker) hand() *task {
	if w.robbing {
		return &w.loot[w.taken-1]
	}
	return &w.now
}

// begun starts the request at hand, and runs it.
func (w *worker) begun() {
	t := w.hand()
	if w.started != nil {
		w.started(*t, w.id)
	}
	t.job.Run(w.id)
}

// ended ends the request at hand.
func (w *worker) ended() {
	if w.finished != nil {
		w.finished(*w.hand(), w.id)
	}
	w.ran.Add(1)
	c := &w.classes[w.now.class]
	switch {
	case w.robbing:
		w.at = plunder
	case !c.Sequential:
		w.at = next
	case !c.several():
		w.at = next
		w.passed()
	case w.mode.counts():
		w.machine.sequential.Add(1)
		w.at = open
		if !w.mode.meets() {
			w.passed()
		}
	default:
		w.machine.sequential.Add(1)
		w.at = after
	}
}
