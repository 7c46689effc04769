package partitions

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/samya-db/samya/kvpart/sched"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/input"
)

// request is an input on its way to a shard.
type request struct {
	sched.Request[core.Handle]
	p       *Partitions
	now     input.Now
	in      input.Input
	ms      []*core.Machine
	entries []*entry
	// served says that a shard has served it.
	served bool
}

type entry = sched.Entry[core.Handle]

// requests is the pool of unused requests, of all partitions. A free request holds
// nothing of its partitions: a pool keeps its content for two collections.
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

// Serve has an input served, and reports whether it was. If not, nothing was done, and
// the caller steps the core with the input, alone. In the modes that have queues it
// reports whether the input was handed over; if no partition then serves the input, it
// is passed on. A single partition that callers run serves nothing.
func (p *Partitions) Serve(now input.Now, in input.Input) bool {
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
		// Every entity that it charges is split: any shard will do.
		r.serve(p.anyShard(), false)
		return p.ended(r, nil)
	}
	for _, m := range ms {
		r.entries = append(r.entries, m.Owner().(*entry))
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
func (r *request) Run(s *sched.Request[core.Handle]) {
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

// End implements sched.Job, for the modes that have queues.
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

// failIfPanicked repeats the panic of a request: the books may be in any state now.
func failIfPanicked(err error) {
	if panicked, ok := errors.AsType[*sched.PanicError](err); ok {
		panic(fmt.Sprintf("serving a request: %v\n%s", panicked.Value, panicked.Stack))
	}
}

// serve has the core serve the request on a shard, if it can.
func (r *request) serve(number int, cross bool) {
	l := &r.p.shards[number]
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

// shardLock guards a shard.
type shardLock struct {
	sync.Mutex
	served, cross uint64
	// gathered counts the requests served since Drained.
	gathered atomic.Int64
	_        [64]byte
}

// anyShard returns a shard that seems to be free.
func (p *Partitions) anyShard() int {
	n := len(p.shards)
	first := int(p.o.Rand() % uint64(n)) //nolint:gosec // far below
	for i := range n {
		at := (first + i) % n
		if p.shards[at].TryLock() {
			p.shards[at].Unlock()
			return at
		}
	}
	return first
}
