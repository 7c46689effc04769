package earlylab

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/samya-db/samya/kvpart/early"
)

// Waits says how threads wait.
type Waits uint8

const (
	// SpinThenPark is the way of package kvpart/early: some looks, some more that give the
	// processor to others, then the thread parks.
	SpinThenPark Waits = iota
	// ParkAtMeetings is the way of the paper: threads at a meeting park at once, as those of
	// a barrier do. Threads at a counter, or without work, look for ever. Late parks threads
	// without work in any case.
	ParkAtMeetings
	// SpinLonger is SpinThenPark with a longer wait: a thread looks for twice as long as a
	// parked thread takes to run again.
	SpinLonger
)

// fruitless is the number of rounds of all victims after which a thief with locks waits
// for a change.
const fruitless = 4

// leastLook is the least time in nanoseconds between two looks of a thread that waits: a look
// that was measured as free would have it look for ever at the same time.
const leastLook = .1

// Virtual is a run in virtual time: each thread, and the producer, has a core and a clock
// of its own. The actor with the least clock takes the next step of an early.Manual, and
// its clock moves on by the cost of the step. Equal runs have equal results.
type Virtual struct {
	// Mode is a mode of package kvpart/early. Sequential replaces it by a single thread.
	Mode       early.Mode
	Sequential bool
	Waits      Waits
	Costs      Costs
	Work       Work
	// Single hands a request over only when the one before has ended.
	Single bool
	// Observe, if not nil, sees each step, with its beginning and end in nanoseconds. The
	// producer is the thread after the last.
	Observe func(thread int, from, to float64, t *early.Taken)
}

// Played is the result of a run in virtual time.
type Played struct {
	early.Stats
	// Nanos is the time until the last request ended, and Rate the requests a second.
	Nanos, Rate float64
	// Waited is the mean time from the hand-over of a request to its start, and Ran the
	// mean time that it ran, in nanoseconds.
	Waited, Ran float64
	// Steps is the number of steps taken, Parks how often a thread slept.
	Steps, Parks int
}

// actor is a thread, or the producer, of a simulation.
type actor struct {
	// next is the time of the next step.
	next float64
	// vain counts vain looks in a row. parking is set while the thread takes a further
	// look before it sleeps, and asleep while it sleeps.
	vain            int
	parking, asleep bool
	// locked says that the thread has looked at a queue under its lock since the last vain
	// look, and changed that a place has changed that it looked at before it began to look
	// for work.
	locked, changed bool
	// waits is the time at which a thread began to wait, if vain is above 0.
	waits float64
	// watching says that the looks until next are vain unless a step changes the watched
	// place. The thread has looked at it each period since a time, and may until deadline.
	watching                bool
	since, period, deadline float64
	last                    early.Taken
}

// simulation is a run under way.
type simulation struct {
	*Virtual
	mapping *early.Mapping
	trace   []*request
	mode    early.Mode
	*memory
	*early.Manual
	threads int
	actors  []actor
	// given counts the requests handed over, and adding says that the last lacks a queue.
	// blocked is the thread with the full queue that the producer waits for, or -1;
	// awaited is the request that a Single producer waits for, or -1.
	given            int
	adding           bool
	blocked, awaited int
	waitsFor         bool
	delivered        []float64
	started, ended   []float64
	steps, parks     int
}

// mute is a request that does nothing.
type mute int

// Run implements early.Job.
func (mute) Run(int) {}

// Virtual runs the requests of a round in virtual time. It fails if ctx ends, or if an
// option is wrong.
func (o *Options) Virtual(ctx context.Context, v *Virtual) (*Played, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	classes, mapping, err := o.mapping()
	if err != nil {
		return nil, err
	}
	if v.Sequential {
		mapping = oneThread(classes)
	}
	return v.play(ctx, classes, mapping, cmp.Or(o.Queue, 1<<16), o.trace(o.Seed))
}

// play runs a trace.
func (v *Virtual) play(ctx context.Context, classes *early.Classes, mapping *early.Mapping, queue int, trace []*request) (*Played, error) {
	options := early.Options{Mode: v.Mode, Classes: classes, Mapping: mapping, Queue: queue}
	if v.Sequential {
		options.Mode = early.BusyWait
	}
	m, err := early.NewManual(options)
	if err != nil {
		return nil, fmt.Errorf("start a scheduler: %w", err)
	}
	threads, n := mapping.Threads, len(trace)
	s := &simulation{
		Virtual: v, mode: options.Mode, mapping: mapping, trace: trace, Manual: m, threads: threads, actors: make([]actor, threads+1), awaited: -1,
		memory:    newMemory(3*threads+4*len(mapping.Of)+2, threads+1, v.Costs.Transfer),
		delivered: make([]float64, n), started: make([]float64, n), ended: make([]float64, n),
	}
	for {
		least := 0
		for i := range s.actors {
			if s.actors[i].next < s.actors[least].next {
				least = i
			}
		}
		switch {
		case math.IsInf(s.actors[least].next, 1):
			return s.result()
		case least == threads:
			s.produce()
		default:
			s.step(least)
		}
		if s.steps++; s.steps&0xffff == 0 {
			if err := context.Cause(ctx); err != nil {
				return nil, fmt.Errorf("run in virtual time: %w", err)
			}
		}
	}
}

func (s *simulation) result() (*Played, error) {
	p := &Played{Stats: s.Stats(), Steps: s.steps, Parks: s.parks}
	n := float64(len(s.trace))
	if p.Stats.Ran != int64(len(s.trace)) {
		return nil, fmt.Errorf("%v: %d of %d requests ran, and no step is left", s.mode, p.Stats.Ran, len(s.trace))
	}
	for i := range s.trace {
		p.Nanos = max(p.Nanos, s.ended[i])
		p.Waited += (s.started[i] - s.delivered[i]) / n
		p.Ran += (s.ended[i] - s.started[i]) / n
	}
	p.Rate = n / max(p.Nanos, 1) * 1e9
	return p, nil
}

// work is the duration of a request.
func (s *simulation) work(j early.Job) float64 { return s.Work.of(s.trace[j.(mute)]) }

// produce takes a step of the producer.
func (s *simulation) produce() {
	a := &s.actors[s.threads]
	switch {
	case s.adding:
	case s.given == len(s.trace):
		woken := s.Close()
		for i := range s.actors[:s.threads] {
			s.signal(i, early.StepDrain, a.next)
		}
		s.wake(woken, &a.next)
		a.next = math.Inf(1)
		return
	default:
		s.Add(s.trace[s.given].class, mute(s.given))
		s.delivered[s.given] = a.next
		s.given++
	}
	from := a.next
	t := s.Push()
	a.next = s.charge(s.threads, from, &t)
	s.adding = !t.Complete
	if t.Outcome == early.Waiting {
		s.waitsFor, s.blocked = true, t.Other
		s.parks++
	} else if t.Other >= 0 {
		s.signal(t.Other, early.StepDrain, a.next)
		if !t.Guarded {
			s.signalThieves(a.next)
		}
	}
	s.wake(t.Woken, &a.next)
	if s.Observe != nil {
		s.Observe(s.threads, from, a.next, &t)
	}
	if s.waitsFor {
		a.next = math.Inf(1)
	} else if s.Single && t.Complete {
		s.awaited, a.next = s.given-1, math.Inf(1)
	}
}

// step takes a step of a thread.
func (s *simulation) step(i int) {
	a := &s.actors[i]
	if a.watching {
		a.watching = false
		if a.next >= a.deadline {
			s.park(i)
		}
	}
	from := a.next
	t := s.Step(i)
	if t.Kind == early.StepDrain || t.Kind == early.StepWatch {
		a.changed = false
	}
	a.next = s.charge(i, from, &t)
	switch t.Kind {
	case early.StepStart:
		at := t.Job.(mute)
		s.started[at], s.ended[at] = from, a.next
	case early.StepFinish, early.StepEnd:
		if s.awaited >= 0 && t.Job.(mute) == mute(s.awaited) {
			s.awaited = -1
			s.actors[s.threads].next = a.next
		}
	case early.StepArrive, early.StepOpen:
		// Threads of Moderate go on to a meeting once all have arrived.
		for j := range s.actors[:s.threads] {
			if l := &s.actors[j].last; l.Class == t.Class && l.Cycle == t.Cycle && (t.Kind == early.StepOpen || t.Complete && s.mode == early.Moderate) {
				s.signal(j, early.StepWatch, a.next)
			}
		}
	case early.StepRestore:
		s.signal(t.Other, early.StepMarkers, a.next)
	}
	a.locked = a.locked || t.Kind == early.StepRob
	if t.Exposed {
		s.signalThieves(a.next)
	}
	if s.waitsFor && (t.Kind == early.StepDrain && s.blocked == i || t.Kind == early.StepRob && t.Count > 0 && s.blocked == t.Other || t.Kind == early.StepEnd) {
		s.waitsFor = false
		a.next += s.Costs.Wake
		s.actors[s.threads].next = a.next + s.Costs.Handover
	}
	s.wake(t.Woken, &a.next)
	if s.Observe != nil {
		s.Observe(i, from, a.next, &t)
	}
	s.settle(i, from, &t)
	a.last = t
}

// steals reports whether threads without work steal.
func (s *simulation) steals() bool { return s.mode >= early.Conservative && s.mode <= early.Prefix }

// settle decides how a thread goes on after a step.
func (s *simulation) settle(i int, from float64, t *early.Taken) {
	a := &s.actors[i]
	switch {
	case t.Outcome == early.Moved && t.Hunting:
		return
	case t.Outcome == early.Moved || t.Outcome == early.Stopped:
		a.vain = 0
		if a.parking {
			a.parking, a.asleep = false, false
			s.Unpark(i)
		}
		if t.Outcome == early.Stopped {
			a.next = math.Inf(1)
		}
		return
	case s.mode == early.Late: // the thread gives the lock up as it parks
		s.Park(i)
		a.asleep, a.next = true, math.Inf(1)
		s.parks++
		return
	case a.parking:
		a.parking, a.vain = false, 0
		if a.asleep { // nobody has woken the thread meanwhile
			a.next = math.Inf(1)
			s.parks++
		}
		return
	}
	a.next = max(a.next, from+leastLook)
	if a.vain++; a.vain == 1 {
		a.waits = a.next
	}
	period := max(a.next-from, s.Costs.Watch)
	// A thief that has found nothing several times does not look again before something
	// changes. Its locks meanwhile delay nobody: a change comes first, and ends the wait.
	hunts := t.Kind == early.StepSeek && s.steals() && !a.changed && (s.mode >= early.Optimistic && !a.locked || a.vain >= fruitless)
	if hunts {
		period = float64(s.threads)*s.Costs.Seek + s.Costs.Watch
		if s.mode < early.Optimistic {
			period += float64(s.threads) * s.Costs.Rob
		}
	}
	a.locked = false
	rest := s.patience(t, period)
	switch {
	case rest == 0:
		s.park(i)
	case hunts || t.Kind == early.StepMarkers || !s.steals() && (t.Kind == early.StepDrain || t.Kind == early.StepWatch):
		if a.deadline = a.waits + rest; a.next >= a.deadline {
			s.park(i)
			return
		}
		a.watching, a.since, a.period = true, a.next, period
		if hunts {
			a.period = max(s.Costs.Seek, leastLook)
		}
		a.next = a.deadline
	case s.Waits == SpinThenPark:
		spins, yields := early.Looks(t.Outcome)
		if a.vain >= spins+yields {
			s.park(i)
		} else if a.vain >= spins {
			a.next += s.Costs.Yield
		}
	case a.next >= a.waits+rest:
		s.park(i)
	}
}

// patience is how long a thread looks in vain before it parks; a look takes a period.
func (s *simulation) patience(t *early.Taken, period float64) float64 {
	switch {
	case s.Waits == SpinLonger:
		return 2 * s.Costs.Handover
	case s.Waits == ParkAtMeetings && t.Kind == early.StepLeave:
		return 0
	case s.Waits == ParkAtMeetings:
		return math.Inf(1)
	}
	spins, yields := early.Looks(t.Outcome)
	return float64(spins)*period + float64(yields)*(period+s.Costs.Yield)
}

// park has a thread take a further look before it sleeps.
func (s *simulation) park(i int) {
	s.Park(i)
	a := &s.actors[i]
	a.parking, a.asleep, a.vain = true, true, 0
}

// signal has a thread that watches a place see a change of it.
func (s *simulation) signal(i int, kind early.Kind, at float64) {
	a := &s.actors[i]
	a.changed = true
	if a.watching && (a.last.Kind == kind || a.last.Kind == early.StepSeek && kind != early.StepMarkers) {
		periods := math.Ceil(max(0, at-a.since) / a.period)
		a.next = min(a.since+periods*a.period, a.next)
	}
}

// signalThieves has all threads that look for work see that a queue may have some.
func (s *simulation) signalThieves(at float64) {
	if !s.steals() {
		return
	}
	for i := range s.actors[:s.threads] {
		s.signal(i, early.StepSeek, at)
	}
}

// wake lets parked threads go on. Each costs the thread that wakes them.
func (s *simulation) wake(woken []int, now *float64) {
	for _, i := range woken {
		a := &s.actors[i]
		*now += s.Costs.Wake
		if a.asleep = false; !a.parking {
			a.next = *now + s.Costs.Handover
		}
	}
}
