package early

import (
	"sync"
	"sync/atomic"
)

// task is a request under way. A task of a sequential class is in the queues of all
// threads of the class.
type task struct {
	class int
	job   Job
}

// cell is a counter with a cache line of its own.
type cell struct {
	atomic.Int32
	_ [60]byte
}

// meeting is a reusable barrier: generation grows as the last thread enters.
type meeting struct {
	sync.Mutex
	count      int
	generation uint64
}

// enter enters a meeting of n. It returns the generation to wait for the end of, and
// whether the meeting is complete.
func (b *meeting) enter(n int) (uint64, bool) {
	b.Lock()
	defer b.Unlock()
	g := b.generation
	if b.count++; b.count == n {
		b.count = 0
		b.generation++
		return g, true
	}
	return g, false
}

func (b *meeting) over(g uint64) bool {
	b.Lock()
	defer b.Unlock()
	return b.generation != g
}

// class is a class with its threads' means to wait for each other.
type class struct {
	Assignment
	// marks count the threads that have reached a request, for two requests in turns: no
	// thread comes to the request after the next before all have left this one.
	marks [2]cell
	// before and after are the meetings of a request.
	before, after meeting
	// turn is the next thread of a concurrent class.
	turn int
}

// several reports whether the class's threads wait for each other.
func (c *class) several() bool { return c.Sequential && len(c.Threads) > 1 }

// machine is the state of all threads. Its steps are small: each touches one shared
// place, so that a test may take them in any order.
type machine struct {
	mode    Mode
	classes []class
	workers []*worker
	queue   int
	closing atomic.Bool
	running sync.WaitGroup
	// adding is the request being appended to queues, from the thread numbered next in its
	// class on. The caller of begin and push owns both.
	adding task
	next   int
	// quiet says that threads are woken after a batch. It belongs to the caller of push.
	quiet bool

	ran, sequential, steals, stolen atomic.Int64
	// started and finished, if not nil, see each request as it starts and ends; a test
	// takes steps between the two.
	started, finished func(t task, thread int)
}

func (m *machine) init(mode Mode, mapping *Mapping, queue int) {
	m.mode, m.queue = mode, queue
	m.classes = make([]class, len(mapping.Of))
	for i, a := range mapping.Of {
		m.classes[i].Assignment = a
	}
	if mode == Late {
		return
	}
	for t := range mapping.Threads {
		m.workers = append(m.workers, &worker{
			machine: m, id: t, cycles: make([]int, len(m.classes)), robbed: make([]cell, mapping.Threads), sema: make(chan struct{}, 1),
		})
	}
	for _, w := range m.workers {
		w.room.L = &w.mu
	}
}

// begin begins to append a request to the queues of its threads.
func (m *machine) begin(class int, job Job) {
	m.adding, m.next = task{class: class, job: job}, 0
}

// push appends the request to one further queue, and reports whether another is left. If a
// queue is full it waits, or does nothing.
func (m *machine) push(wait bool) bool {
	c := &m.classes[m.adding.class]
	t := c.Threads[m.next]
	if !c.Sequential {
		t = c.Threads[c.turn]
	}
	if !m.workers[t].append(m.adding, c.Sequential, wait) {
		return true
	}
	if !c.Sequential {
		c.turn = (c.turn + 1) % len(c.Threads)
		return false
	}
	m.next++
	return m.next < len(c.Threads)
}

// wakeBusy wakes the threads with requests in their queues, or one that may steal.
func (m *machine) wakeBusy() {
	for _, w := range m.workers {
		if w.waits.Load() > 0 && !w.wake() {
			m.idlers(w)
		}
	}
}

// idlers wakes a thread without work, if there is one, for work that waits elsewhere.
func (m *machine) idlers(but *worker) {
	if !m.mode.steals() {
		return
	}
	for _, w := range m.workers {
		if w != but && w.parked.Load() && w.wake() {
			return
		}
	}
}
