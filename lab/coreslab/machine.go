package coreslab

import (
	"time"

	"github.com/samya-db/samya/internal/wan"
	"github.com/samya-db/samya/lab/virtual"
)

// machine runs routines on cores, in virtual time. A routine keeps its core until it
// parks, blocks or yields. Routines that are ready get cores in their order.
type machine struct {
	world *virtual.World
	costs *Costs
	// free is the number of cores without a routine.
	cores, free int
	ready       queue[*routine]
	// slow is how much longer work takes, as other programs take a part of the cores.
	slow float64
	// waking is the number of routines that were woken and do not run yet.
	waking int
	// busy is the time of all cores with a routine, spun the part of it at locks.
	busy, spun time.Duration
}

func newMachine(cores int, taken float64, c *Costs, seed uint64) *machine {
	w := virtual.New(virtual.Options{Places: []string{"us"}, Network: wan.Samya(), Seed: seed})
	return &machine{world: w, costs: c, cores: cores, free: cores, slow: 1 / (1 - taken)}
}

func (m *machine) now() time.Duration { return m.world.Now() }

// routine is a goroutine.
type routine struct {
	m *machine
	// next goes on once the routine has a core.
	next func()
	// parked: the routine waits for a wake. woken: the wake came before the wait.
	parked, woken bool
	// busy is the time that the routine had a core, and did not spin.
	busy time.Duration
}

func (m *machine) routine() *routine { return &routine{m: m} }

// start makes a new routine ready.
func (r *routine) start(do func()) {
	r.next = do
	r.m.enqueue(r)
}

func (m *machine) enqueue(r *routine) {
	m.ready.push(r)
	m.dispatch()
}

// dispatch gives free cores to ready routines.
func (m *machine) dispatch() {
	for m.free > 0 && m.ready.len() > 0 {
		m.free--
		// Later, so that routines do not run within each other.
		m.world.Let(m.now(), m.ready.pop())
	}
}

// Happen implements virtual.Event: the routine has a core.
func (r *routine) Happen() { r.next() }

func (r *routine) leave() {
	r.m.free++
	r.m.dispatch()
}

// work keeps the core for a time in nanoseconds.
func (r *routine) work(nanos float64, then func()) {
	d := time.Duration(nanos*r.m.slow + .5)
	r.busy += d
	r.m.busy += d
	r.m.world.At(r.m.now()+d, then)
}

// park gives up the core until the next wake, or goes on if a wake has come.
func (r *routine) park(then func()) {
	if r.woken {
		r.woken = false
		then()
		return
	}
	r.parked, r.next = true, then
	r.leave()
}

// wake lets a parked routine go on. It returns the cost of the waking routine, in
// nanoseconds. With a free core a thread is woken, and runs a hand-over later, unless a thread
// is on its way already. Else the routine waits for a core.
func (r *routine) wake() float64 {
	if !r.parked {
		r.woken = true
		return 0
	}
	r.parked = false
	return r.m.rouse(r)
}

// rouse makes a routine ready that sleeps.
func (m *machine) rouse(r *routine) float64 {
	if m.free == 0 {
		m.enqueue(r)
		return m.costs.Yield
	}
	cost := m.costs.Yield
	if m.waking == 0 {
		cost = m.costs.Wake
	}
	m.waking++
	m.world.At(m.now()+time.Duration(m.costs.Handover), func() {
		m.waking--
		m.enqueue(r)
	})
	return cost
}

// yield lets all ready routines have the core first.
func (r *routine) yield(then func()) {
	if r.m.ready.len() == 0 {
		then()
		return
	}
	r.next = then
	r.m.ready.push(r)
	r.leave()
}

// lock is a mutex. A routine that spins keeps its core meanwhile; other locks have it park.
type lock struct {
	m     *machine
	spins bool
	held  bool
	// waiters go on in their order.
	waiters queue[waiter]
	// busy is the time that the lock was held.
	busy, since time.Duration
}

type waiter struct {
	r    *routine
	from time.Duration
	then func()
}

// try takes the lock if nobody holds it.
func (l *lock) try() bool {
	if l.held {
		return false
	}
	l.held, l.since = true, l.m.now()
	return true
}

// take goes on once the routine has the lock.
func (l *lock) take(r *routine, then func()) {
	if l.try() {
		then()
		return
	}
	l.waiters.push(waiter{r, l.m.now(), then})
	if !l.spins {
		r.leave()
	}
}

// release hands the lock to the next waiter.
func (l *lock) release() {
	now := l.m.now()
	l.busy += now - l.since
	if l.waiters.len() == 0 {
		l.held = false
		return
	}
	next := l.waiters.pop()
	l.since = now
	if !l.spins {
		next.r.next = next.then
		l.m.rouse(next.r)
		return
	}
	at := now + time.Duration(l.m.costs.Transfer)
	l.m.busy += at - next.from
	l.m.spun += at - next.from
	l.m.world.At(at, next.then)
}

// queue is first in, first out.
type queue[T any] struct {
	all   []T
	first int
}

func (q *queue[T]) len() int { return len(q.all) - q.first }

func (q *queue[T]) push(v T) {
	if q.first > 64 && 2*q.first > len(q.all) {
		n := copy(q.all, q.all[q.first:])
		clear(q.all[n:])
		q.all, q.first = q.all[:n], 0
	}
	q.all = append(q.all, v)
}

func (q *queue[T]) pop() T {
	v := q.all[q.first]
	q.first++
	return v
}
