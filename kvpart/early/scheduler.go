package early

import (
	"cmp"
	"fmt"
	"sync"
)

// Mode is a way to run requests.
type Mode uint8

// The modes. All but Late go by a mapping.
const (
	// Barriers: the threads of a sequential class meet before and after each of its
	// requests (Algorithms 1 and 2).
	Barriers Mode = iota
	// BusyWait: the last thread to arrive runs the request, and the others watch a counter
	// (Algorithms 3 and 4).
	BusyWait
	// Conservative: Barriers, with threads that steal while they have no work (Algorithms 5
	// to 7).
	Conservative
	// Moderate: threads steal also while they wait for others to arrive.
	Moderate
	// Aggressive: the counter of BusyWait in the place of both meetings.
	Aggressive
	// Optimistic: Aggressive, but threads look for work without locks first (Algorithm 8).
	Optimistic
	// Prefix: Optimistic, but a thief takes the requests of a queue that come before its
	// first sequential one. The paper's thieves leave such a queue alone.
	Prefix
	// Late: threads take requests from a graph of dependencies. The baseline.
	Late
)

var modeNames = [...]string{"barriers", "busy-wait", "conservative", "moderate", "aggressive", "optimistic", "prefix", "late"}

// String returns the name of the mode.
func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return fmt.Sprintf("mode %d", uint8(m))
}

// Modes lists the modes.
func Modes() []Mode {
	return []Mode{Barriers, BusyWait, Conservative, Moderate, Aggressive, Optimistic, Prefix, Late}
}

// meets reports whether threads meet at a barrier after a sequential request, counts
// whether they count arrivals before it.
func (m Mode) meets() bool  { return m == Barriers || m == Conservative || m == Moderate }
func (m Mode) counts() bool { return m != Barriers && m != Conservative }

// steals reports whether threads without work steal, stealsWaiting whether threads steal
// while they wait for others at a sequential request.
func (m Mode) steals() bool        { return m >= Conservative && m <= Prefix }
func (m Mode) stealsWaiting() bool { return m >= Moderate && m <= Prefix }

// Job is the work of a request.
type Job interface {
	// Run does the work on a thread, once. It must not panic, nor submit to the scheduler
	// that runs it. It may end its goroutine; another then goes on.
	Run(thread int)
}

// defaultQueue is the default bound of a thread's queue, in requests.
const defaultQueue = 1024

// Options are the settings of a scheduler.
type Options struct {
	Mode    Mode
	Classes *Classes
	// Mapping must be valid for Classes. Late only uses its number of threads.
	Mapping *Mapping
	// Queue bounds the requests that wait at a thread, or in the graph; 0 is
	// 1,024.
	Queue int
}

// Stats are counts since the start.
type Stats struct {
	// Ran counts requests, Sequential the requests that ran with several threads waiting.
	Ran, Sequential int64
	// Steals counts thefts, Stolen the requests stolen.
	Steals, Stolen int64
}

// check checks the options, and sets the default queue.
func (o *Options) check() error {
	if int(o.Mode) >= len(modeNames) {
		return fmt.Errorf("option Mode: %d, must be at most %d", o.Mode, Late)
	}
	if o.Classes == nil || o.Mapping == nil {
		return fmt.Errorf("%w: option Classes or Mapping is missing", ErrMapping)
	}
	if err := o.Classes.Validate(o.Mapping); err != nil {
		return fmt.Errorf("option Mapping: %w", err)
	}
	o.Queue = cmp.Or(o.Queue, defaultQueue)
	if o.Queue < 1 {
		return fmt.Errorf("option Queue: %d, must be at least 1", o.Queue)
	}
	return nil
}

// Scheduler runs requests in the order of their submission, as far as they conflict.
type Scheduler struct {
	machine
	late    *graph
	submits sync.Mutex
}

// New starts a scheduler. Its errors wrap [ErrMapping] or name the option at fault.
func New(o Options) (*Scheduler, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	s := new(Scheduler)
	s.init(o.Mode, o.Mapping, o.Queue)
	if o.Mode == Late {
		s.late = newGraph(o.Classes, o.Queue)
		for t := range o.Mapping.Threads {
			s.running.Go(func() { s.late.loop(t, &s.machine) })
		}
		return s, nil
	}
	for _, w := range s.workers {
		s.running.Go(w.loop)
	}
	return s, nil
}

// Submit hands a request over, and waits while a queue is full. Submissions may come from
// several goroutines: their order is the order in which Submit takes a lock. It panics if
// the class does not exist.
func (s *Scheduler) Submit(class int, job Job) {
	s.submits.Lock()
	defer s.submits.Unlock()
	if s.late != nil {
		s.late.add(class, job)
		return
	}
	s.begin(class, job)
	for s.push(true) {
	}
}

// Request is a request of a class.
type Request struct {
	Class int
	Job   Job
}

// SubmitAll is Submit for a batch of requests, one after the other, with no other request
// between them. Threads are woken once for the batch, so they take over more requests at a
// time.
func (s *Scheduler) SubmitAll(batch []Request) {
	s.submits.Lock()
	defer s.submits.Unlock()
	s.quiet = true
	for _, r := range batch {
		if s.late != nil {
			s.late.add(r.Class, r.Job)
			continue
		}
		s.begin(r.Class, r.Job)
		for s.push(true) {
		}
	}
	s.quiet = false
	s.wakeBusy()
}

// Close waits until all requests have run, and ends the threads. Nothing may be submitted
// afterwards. It may be called once.
func (s *Scheduler) Close() {
	s.submits.Lock()
	defer s.submits.Unlock()
	if s.late != nil {
		s.late.close()
	}
	s.closing.Store(true)
	for _, w := range s.workers {
		w.wake()
	}
	s.running.Wait()
}

// Stats returns the counts.
func (s *Scheduler) Stats() Stats { return s.stats() }

func (m *machine) stats() Stats {
	return Stats{Ran: m.ran.Load(), Sequential: m.sequential.Load(), Steals: m.steals.Load(), Stolen: m.stolen.Load()}
}
