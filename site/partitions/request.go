package partitions

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/samya-db/samya/kvpart/sched"
	"github.com/samya-db/samya/site/core"
)

// request is an input on its way to a lane.
type request struct {
	sched.Request[core.Place]
	p       *Partitions
	now     core.Now
	in      core.Input
	ms      []*core.Machine
	entries []*entry
	// served says that a lane has served it.
	served bool
}

type entry = sched.Entry[core.Place]

// requests are those to be used again, of all partitions. A free one holds nothing of
// its partitions: a pool keeps what it has for two collections.
var requests = sync.Pool{New: func() any { return new(request) }}

func (p *Partitions) newRequest() *request {
	r := requests.Get().(*request) //nolint:forcetypeassert // the pool has nothing else
	r.p = p
	return r
}

func (r *request) free() {
	r.p, r.in, r.served = nil, nil, false
	clear(r.ms)
	clear(r.entries)
	r.ms, r.entries = r.ms[:0], r.entries[:0]
	requests.Put(r)
}

// Serve has an input served, and reports whether it was: if not nothing was done, and
// it is for the core to be stepped with, alone. In the modes that have queues it
// reports whether it was handed over; if it is then not served, it is passed on. One
// partition that callers run serves nothing.
func (p *Partitions) Serve(now core.Now, in core.Input) bool {
	if p.bare() {
		return false
	}
	r := p.newRequest()
	r.in, r.now = in, now
	ms, ok := p.o.Core.Route(in, r.ms[:0])
	r.ms = ms
	switch {
	case !ok:
		return p.ended(r, nil)
	case len(ms) == 0:
		// All that it charges is split: any lane will do.
		r.serve(p.anyLane(), false)
		return p.ended(r, nil)
	}
	for _, m := range ms {
		r.entries = append(r.entries, m.Seat().(*entry))
	}
	r.Of(r.entries, sched.Alone, r)
	if p.o.Mode == sched.Callers {
		return p.ended(r, p.sched.Do(context.Background(), &r.Request))
	}
	if err := p.sched.TryStart(&r.Request); err != nil {
		return p.ended(r, err)
	}
	return true
}

// Run implements sched.Job.
func (r *request) Run(s *sched.Request[core.Place]) {
	on := s.Partitions()
	if r.p.o.Mode != sched.Callers {
		// It has waited in a queue.
		r.now = r.p.o.Now()
	}
	r.serve(int(on[0]), len(on) > 1)
	if len(on) > 1 && r.p.control != nil {
		r.p.hubs.crossed(r.entries, r.p.sched)
	}
}

// End implements sched.Job: it is of the modes that have queues.
func (r *request) End(err error) {
	in, p := r.in, r.p
	if !p.ended(r, err) {
		p.o.Pass(in)
	}
}

// ended frees a request, and reports whether it was served.
func (p *Partitions) ended(r *request, err error) bool {
	if err != nil {
		failIfPanicked(err)
	}
	served := r.served
	if !served && p.o.Mode != sched.Callers {
		p.passed.Add(1)
	}
	r.free()
	return served
}

// failIfPanicked goes on with the panic of a request: the books may be anything now.
func failIfPanicked(err error) {
	if panicked, ok := errors.AsType[*sched.PanicError](err); ok {
		panic(fmt.Sprintf("serving a request: %v\n%s", panicked.Value, panicked.Stack))
	}
}

// serve has the core serve the request on a lane, if it can.
func (r *request) serve(number int, cross bool) {
	l := &r.p.lanes[number]
	l.Lock()
	if r.served = r.p.o.Core.Serve(number, r.now, r.in, r.ms); r.served {
		l.served++
		if cross {
			l.cross++
		}
		if l.gathered.Add(1) == r.p.most {
			r.p.full.Store(true)
		}
	}
	l.Unlock()
}

// laneLock has a lane to itself.
type laneLock struct {
	sync.Mutex
	served, cross uint64
	// gathered is how many were served since Drained.
	gathered atomic.Int64
	_        [64]byte
}

// anyLane is a lane that nobody has, as far as can be seen.
func (p *Partitions) anyLane() int {
	n := len(p.lanes)
	first := int(p.o.Rand() % uint64(n)) //nolint:gosec // far below
	for i := range n {
		at := (first + i) % n
		if p.lanes[at].TryLock() {
			p.lanes[at].Unlock()
			return at
		}
	}
	return first
}
