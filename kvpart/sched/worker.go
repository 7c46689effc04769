package sched

// Outcome is the outcome of a step of a worker.
type Outcome uint8

// The outcomes.
const (
	// Ran: it ran a request, or went on from a request that another worker ran.
	Ran Outcome = iota
	// Idle: it parked before an empty queue.
	Idle
	// Met: it parked at a request of several partitions, for others to arrive.
	Met
	// Stopped: the scheduler is closed, and nothing is left to run.
	Stopped
)

// Step takes the next step of a partition's worker, in Manual mode. It does not wait.
// Steps of the same partition must not be taken at the same time.
func (s *Scheduler[V]) Step(partition int) Outcome { return s.parts[partition].step() }

// loop is a worker's goroutine.
func (p *partition[V]) loop() {
	ended := false
	defer func() {
		if !ended { // a job ended the goroutine
			p.s.running.Go(p.loop)
		}
	}()
	for {
		switch p.step() {
		case Ran:
		case Idle, Met:
			<-p.wake
		case Stopped:
			ended = true
			return
		}
	}
}

func (p *partition[V]) step() Outcome {
	if p.at.Load() != nil {
		return p.await()
	}
	r, o := p.pop()
	if r == nil {
		return o
	}
	n := len(r.parts)
	if n == 1 {
		p.execute(r)
		return Ran
	}
	p.at.Store(r)
	if int(r.arrived.Add(1)) < n { // now another worker may run and end r
		return p.await()
	}
	p.at.Store(nil)
	p.execute(r)
	return Ran
}

// await waits at a request of several partitions.
func (p *partition[V]) await() Outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at.Load() == nil {
		return Ran
	}
	p.parked = true
	return Met
}

// depart lets the worker go on from a request that has run.
func (p *partition[V]) depart() {
	p.mu.Lock()
	p.at.Store(nil)
	wake := p.parked && (len(p.queue) > 0 || p.next < len(p.taken) || p.stopping)
	if wake {
		p.parked = false
	}
	p.mu.Unlock()
	if wake {
		p.signal()
	}
}

// pop takes the next request. Without a request it returns the outcome of the step.
func (p *partition[V]) pop() (*Request[V], Outcome) {
	if p.next == len(p.taken) {
		if o := p.swap(); o != Ran {
			return nil, o
		}
	}
	r := p.taken[p.next]
	p.taken[p.next] = nil
	p.next++
	if !r.synch {
		p.left(p.next == len(p.taken))
	}
	return r, Ran
}

// left notes that a request waits no more. When it is worthwhile, and after the last that
// the worker has taken, left wakes everybody who waits for room.
func (p *partition[V]) left(last bool) {
	if n := p.count.Add(-1); !p.wanted.Load() || n > p.s.queue/2 && !last {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.room != nil { // another thread may have come first
		close(p.room)
		p.room = nil
		p.wanted.Store(false)
	}
}

// swap takes over the requests in the queue.
func (p *partition[V]) swap() Outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case len(p.queue) > 0:
		p.parked = false
		p.taken, p.queue = p.queue, p.taken[:0]
		p.next = 0
		return Ran
	case p.stopping:
		return Stopped
	default:
		p.parked = true
		return Idle
	}
}

// execute runs a request at which all its workers have arrived.
func (p *partition[V]) execute(r *Request[V]) {
	if r.synch {
		p.departed(r)
		close(r.done)
		return
	}
	var err error
	defer func() { // also if the job ends the goroutine
		due := p.s.leave(r)
		p.departed(r)
		p.s.give(r, err)
		if due {
			p.s.tidy()
		}
	}()
	p.s.execute(r, &err)
}

// execute runs a request unless it was given up.
func (s *Scheduler[V]) execute(r *Request[V], err *error) {
	if !r.phase.CompareAndSwap(waiting, running) {
		*err = errGivenUp
		return
	}
	s.guard(r, err)
	s.count(r)
}

// departed lets the other workers go on from r.
func (p *partition[V]) departed(r *Request[V]) {
	if len(r.parts) == 1 {
		return
	}
	for _, i := range r.parts {
		if int(i) != p.id {
			p.s.parts[i].depart()
		}
	}
}

// leave takes a request off its entries, and reports whether it is time to sweep.
func (s *Scheduler[V]) leave(r *Request[V]) bool {
	due := r.access != Share && s.vacate(r)
	for _, e := range r.entries {
		if e != nil {
			e.queued.Add(-1)
		}
	}
	return due
}

// give gives a request back to its owner. The scheduler does not use it any more.
func (s *Scheduler[V]) give(r *Request[V], err error) {
	r.err = err
	if was := r.phase.Swap(ended); r.async || was != running {
		r.job.End(err)
	} else {
		r.done <- struct{}{}
	}
}
