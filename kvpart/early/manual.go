package early

import (
	"errors"
	"slices"
)

// Kind is the kind of a step of a [Manual] scheduler.
type Kind uint8

// The kinds of steps. The first is the producer's; the last two are of mode Late alone.
const (
	StepAppend  Kind = iota // append a request to a queue, or add it to the graph
	StepDrain               // take over the queue
	StepNext                // look at the next request of the batch
	StepMarkers             // look for thieves of this thread
	StepEnter               // enter a meeting
	StepLeave               // look whether a meeting is over
	StepArrive              // count the arrival
	StepWatch               // look at the count of arrivals
	StepStart               // start a request, and run it
	StepFinish              // end a request
	StepOpen                // let the other threads go on
	StepSeek                // look for a victim
	StepRob                 // take a victim's queue, under its lock
	StepPlunder             // look at the next stolen request
	StepRestore             // tell the victim that all is done
	StepTake                // take a request from the graph
	StepEnd                 // take an ended request out of the graph
)

// kinds are the kinds of the steps at each place.
var kinds = [...]Kind{
	drain: StepDrain, next: StepNext, markers: StepMarkers, before: StepEnter, gather: StepLeave, arrive: StepArrive,
	watch: StepWatch, start: StepStart, finish: StepFinish, open: StepOpen, after: StepEnter, part: StepLeave,
	seek: StepSeek, rob: StepRob, plunder: StepPlunder, restore: StepRestore,
}

// Outcome is the outcome of a step.
type Outcome uint8

// The outcomes.
const (
	// Moved: the thread has got on.
	Moved Outcome = iota
	// Waiting: the thread waits for another, or the producer for room in a queue.
	Waiting
	// Idle: the thread has no work.
	Idle
	// Stopped: the thread has no work, and the scheduler is closing.
	Stopped
)

// Looks returns how often a thread of a [Scheduler] looks in vain before it parks, after
// steps with an outcome: at once if a processor is free for that, and then with a yield of
// the processor before each look.
func Looks(o Outcome) (atOnce, yielding int) {
	if o == Idle {
		return spins, yieldsIdle
	}
	return spins, yields
}

// Taken describes a step taken.
type Taken struct {
	Kind    Kind
	Outcome Outcome
	// Class is the class of the request at hand, and Cycle the class's counter of arrivals
	// in use. After is set at the meeting after a request, and clear at the one before.
	Class, Cycle int
	After        bool
	// Other is the thread to which the touched queue or mark belongs, or -1.
	Other int
	// Count is the number of requests moved, compared or, for StepMarkers, of marks read.
	Count int
	// Complete says that an arrival or entry was the last, or that all queues of a request
	// have it now.
	Complete bool
	// Guarded says of StepAppend that thieves leave the queue alone. Exposed says that the
	// step ended this for the thread's own queue.
	Guarded, Exposed bool
	// Hunting says that the thread looks for work elsewhere, or has just found none.
	Hunting bool
	// Job is the request that StepStart ran, or StepFinish ended.
	Job Job
	// Woken are the parked threads that the step woke, valid until the next call.
	Woken []int
}

// Manual is a scheduler without goroutines: the caller takes the steps of the producer and
// of each thread, in any order. A simulation drives it. Calls must not overlap, and a Job
// runs within its StepStart.
type Manual struct {
	machine
	graph *graph
	// held is each thread's request from the graph, run whether it has run.
	held    []*node
	run     []bool
	pending task
	left    bool
	// asleep are the parked threads, in the order in which they parked.
	asleep []int
	woken  []int
}

// NewManual returns a scheduler that takes no step by itself. Its errors are those of
// [New].
func NewManual(o Options) (*Manual, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	m := new(Manual)
	m.init(o.Mode, o.Mapping, o.Queue)
	if o.Mode == Late {
		m.graph = newGraph(o.Classes, o.Queue)
		m.held, m.run = make([]*node, o.Mapping.Threads), make([]bool, o.Mapping.Threads)
	}
	return m, nil
}

// errPending is the panic of a second Add.
var errPending = errors.New("early: Add before the last request was in all its queues")

// Add begins to hand over a request: Push appends it to a queue a call, until it reports
// a complete step. Add panics before that.
func (m *Manual) Add(class int, job Job) {
	if m.left {
		panic(errPending)
	}
	m.left = true
	m.pending = task{class: class, job: job}
	if m.graph == nil {
		m.begin(class, job)
	}
}

// Push takes a step of the producer. It waits if the queue, or the graph, is full: the
// step did nothing.
func (m *Manual) Push() Taken {
	t := Taken{Kind: StepAppend, Class: m.pending.class, Other: -1}
	if g := m.graph; g != nil {
		if t.Count = len(g.open); t.Count >= g.bound {
			t.Outcome = Waiting
			return t
		}
		free := len(g.free)
		g.add(m.pending.class, m.pending.job)
		m.left, t.Complete = false, true
		t.Woken = m.signal(len(g.free) - free)
		return t
	}
	c := &m.classes[m.adding.class]
	t.Count = 1
	if t.Other = c.Threads[m.next]; !c.Sequential {
		t.Other = c.Threads[c.turn]
	}
	w := m.workers[t.Other]
	if len(w.ready) >= w.queue {
		t.Outcome = Waiting
		return t
	}
	t.Guarded = w.guarded.Load()
	m.left = m.push(false)
	t.Complete = !m.left
	t.Woken = m.roused()
	return t
}

// Step takes a step of a thread.
func (m *Manual) Step(thread int) Taken {
	if m.graph != nil {
		return m.stepGraph(thread)
	}
	w := m.workers[thread]
	at, stolen, guarded := w.at, m.stolen.Load(), w.guarded.Load()
	t := Taken{Kind: kinds[at], After: at == after || at == part, Other: -1}
	if at == start || at == finish {
		h := w.hand()
		t.Class, t.Job = h.class, h.job
	} else {
		t.Class = w.now.class
	}
	last := w.tried == len(w.workers)-1
	t.Outcome = Outcome(w.step())
	t.Cycle, t.Hunting = w.cycles[w.now.class], w.hunts()
	t.Exposed = guarded && !w.guarded.Load()
	switch at {
	case drain:
		t.Count = len(w.batch)
	case markers:
		t.Count = len(w.robbed)
	case before, after:
		c := &m.classes[t.Class]
		t.Complete = at == before && c.before.count == 0 || at == after && c.after.count == 0
		t.Woken = m.roused()
	case arrive:
		t.Complete = w.leads
	case open:
		t.Woken = m.roused()
	case seek:
		if !last {
			t.Other = w.victim
		}
	case rob:
		t.Other, t.Count = w.victim, int(m.stolen.Load()-stolen)
	case restore:
		t.Other = w.victim
		t.Woken = m.roused()
	}
	return t
}

// stepGraph takes a step of a thread with the graph.
func (m *Manual) stepGraph(thread int) Taken {
	g, n := m.graph, m.held[thread]
	t := Taken{Kind: StepTake, Other: -1}
	switch {
	case n == nil && len(g.free) > 0:
		m.held[thread], g.free = g.free[0], g.free[1:]
		m.run[thread] = false
	case n == nil && m.closing.Load() && len(g.open) == 0:
		t.Outcome = Stopped
	case n == nil:
		t.Outcome = Idle
	case !m.run[thread]:
		t.Kind, t.Class, t.Job = StepStart, n.class, n.job
		n.job.Run(thread)
		m.run[thread] = true
	default:
		t.Kind, t.Class, t.Job, t.Count = StepEnd, n.class, n.job, slices.Index(g.open, n)+1+len(n.then)
		free := len(g.free)
		g.end(n)
		m.ran.Add(1)
		m.held[thread] = nil
		if wake := len(g.free) - free; m.closing.Load() && len(g.open) == 0 {
			t.Woken = m.signal(len(m.asleep))
		} else {
			t.Woken = m.signal(wake)
		}
	}
	return t
}

// Bare takes a step of a thread, and BarePush appends a request to all its queues. They
// describe nothing, so their durations are those of the steps.
func (m *Manual) Bare(thread int) { m.workers[thread].step() }

// BarePush is for a request that all queues have room for.
func (m *Manual) BarePush(class int, job Job) {
	m.begin(class, job)
	for m.push(false) {
	}
}

// Park marks a thread as parked. Threads park as package early's do: the caller takes a
// further step, and if the thread still waits, none until a step names it as woken.
func (m *Manual) Park(thread int) {
	if m.graph == nil {
		m.workers[thread].parked.Store(true)
	}
	m.asleep = append(m.asleep, thread)
}

// Unpark takes the mark back, if no step has woken the thread since.
func (m *Manual) Unpark(thread int) {
	for i, t := range m.asleep {
		if t == thread {
			m.asleep = append(m.asleep[:i], m.asleep[i+1:]...)
			if m.graph == nil {
				m.workers[thread].parked.Store(false)
			}
			return
		}
	}
}

// Close says that no request follows, and returns the threads woken.
func (m *Manual) Close() []int {
	m.closing.Store(true)
	if m.graph != nil {
		m.graph.close()
		return m.signal(len(m.asleep))
	}
	for _, w := range m.workers {
		w.wake()
	}
	return m.roused()
}

// Stats returns the counts.
func (m *Manual) Stats() Stats { return m.stats() }

// roused removes the threads woken from the parked ones, and returns them.
func (m *Manual) roused() []int {
	m.woken = m.woken[:0]
	still := m.asleep[:0]
	for _, t := range m.asleep {
		if w := m.workers[t]; len(w.sema) > 0 {
			<-w.sema
			m.woken = append(m.woken, t)
		} else {
			still = append(still, t)
		}
	}
	m.asleep = still
	return m.woken
}

// signal wakes the n threads that parked first, as the condition of the graph does.
func (m *Manual) signal(n int) []int {
	n = min(n, len(m.asleep))
	m.woken = append(m.woken[:0], m.asleep[:n]...)
	m.asleep = append(m.asleep[:0], m.asleep[n:]...)
	return m.woken
}
