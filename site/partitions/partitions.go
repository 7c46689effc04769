// Package partitions keeps the machines of a core's entities in partitions of kvpart,
// and learns which entities belong together. The partitions serve, side by side,
// requests that need only the books of their entities. The package does not decide the
// outcome of a request: the core is stepped alone with requests that no partition
// serves.
package partitions

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/samya-db/samya/kvpart/control"
	"github.com/samya-db/samya/kvpart/sched"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/input"
)

// Options configure Partitions. Core and Clock are needed.
type Options struct {
	Core *core.Core
	// Count is the number of partitions, from 1 to MaxCount.
	Count int
	// Mode says who runs requests, Early how the mode Threads does.
	Mode  sched.Mode
	Early sched.Early
	// Most is about how many requests to serve before the core is drained; see Full.
	Most int
	// Policy says when entities are assigned anew, and that hubs are split; nil for
	// never.
	Policy *control.Policy
	// Place says where new entities go.
	Place sched.Placement
	// Clock does not go back.
	Clock func() time.Duration
	// Seed is the seed of the cuts. Rand draws shards; nil: math/rand/v2.
	Seed uint64
	Rand func() uint64
	// Pass takes, in the modes that have queues, the inputs that were handed over and
	// that no partition serves. Now is the site's time. Both may be called at the same
	// time, and must not block.
	Pass func(in input.Input)
	Now  func() input.Now
	// Failed is told of cuts that failed, if not nil.
	Failed func(error)
}

// MaxCount bounds the partitions of a site.
const MaxCount = 64

// Partitions serves the requests of a core in partitions.
type Partitions struct {
	o       Options
	sched   *sched.Scheduler[core.Handle]
	control *control.Controller[*entry]
	shards  []shardLock
	passed  atomic.Uint64
	// entities counts the entities without an entry; see bare.
	entities atomic.Int64
	// stepped counts the requests that were not offered to any partition.
	stepped uint64
	// most is how many requests make a shard full.
	most int64
	full atomic.Bool
	hubs hubs
}

// New puts the machines of a core into partitions. From then on nobody else may use the
// core, except under Alone.
func New(o Options) (*Partitions, error) {
	if o.Count < 1 || o.Count > MaxCount {
		return nil, fmt.Errorf("bad option: %d partitions, want 1 to %d", o.Count, MaxCount)
	}
	if o.Rand == nil {
		o.Rand = rand.Uint64
	}
	p := &Partitions{o: o, shards: make([]shardLock, o.Count), most: int64(o.Most/o.Count) + 1}
	p.hubs.odd = make(map[*entry]uint64)
	b := new(balance)
	so := sched.Options[core.Handle]{Partitions: o.Count, Mode: o.Mode, Early: o.Early, Place: o.Place, Now: o.Clock}
	if o.Policy != nil && o.Count > 1 {
		so.Observer = b
	}
	var err error
	if p.sched, err = sched.New(so); err != nil {
		return nil, fmt.Errorf("making partitions: %w", err)
	}
	b.Scheduler = p.sched
	if o.Policy != nil && o.Count > 1 {
		p.control, err = control.New(control.Options[*entry]{
			Scheduler: b, Policy: *o.Policy, Seed: o.Seed, Now: o.Clock, Failed: o.Failed,
		})
		if err != nil {
			p.sched.Close()
			return nil, fmt.Errorf("making partitions: %w", err)
		}
		b.control = p.control
	}
	o.Core.Partition(o.Count, p)
	o.Core.Resume()
	return p, nil
}

// Start lets the controller assign entities anew when that pays, until Close.
func (p *Partitions) Start() {
	if p.control != nil {
		p.control.Start()
	}
}

// Close stops the controller, and waits until all inputs handed over were served or
// passed on.
func (p *Partitions) Close() {
	if p.control != nil {
		p.control.Close()
	}
	p.sched.Close()
}

// Alone runs fn while no partition runs: it may use the core.
func (p *Partitions) Alone(fn func()) {
	for i := range p.shards {
		p.shards[i].Lock()
	}
	defer func() {
		for i := range p.shards {
			p.shards[i].Unlock()
		}
	}()
	fn()
	p.o.Core.Resume()
}

// Stepped counts requests that stepped the core although a partition might have served
// them. A single partition counts them as its own. Requests passed on by Pass are
// counted already. It is called under Alone.
func (p *Partitions) Stepped(n int) {
	if len(p.shards) == 1 {
		p.shards[0].served += uint64(n) //nolint:gosec // a count
		return
	}
	p.stepped += uint64(n) //nolint:gosec // a count
}

// Gathered returns the number of requests served since Drained. It may be called at any
// time, and counts all requests served before the call.
func (p *Partitions) Gathered() int {
	n := int64(0)
	for i := range p.shards {
		n += p.shards[i].gathered.Load()
	}
	return int(n)
}

// Full reports whether some partition has served its part of Options.Most since
// Drained. It costs less than Gathered.
func (p *Partitions) Full() bool { return p.full.Load() }

// Drained starts Gathered and Full anew. It is called under Alone.
func (p *Partitions) Drained() {
	p.full.Store(false)
	for i := range p.shards {
		p.shards[i].gathered.Store(0)
	}
}

// Tend splits the entities that most requests go to, and makes whole the split entities
// that few requests go to. It is called under Alone, as often as is convenient.
func (p *Partitions) Tend() {
	if p.control == nil {
		return
	}
	now := p.o.Clock()
	if !p.hubs.due(now) {
		return
	}
	st := p.control.Stats()
	served := uint64(0)
	for i := range p.shards {
		served += p.shards[i].served
	}
	split, whole := p.hubs.decide(now, served, p.o.Core.Splits(), st.Hubs, st.Applied+st.Skipped > 0)
	for _, name := range split {
		p.o.Core.Split(name, true)
	}
	for _, name := range whole {
		p.o.Core.Split(name, false)
	}
}

// Split has the escrow of an entity split over the partitions, or ends that. It reports
// whether the entity exists and was not so before. It is called under Alone.
func (p *Partitions) Split(name string, on bool) bool { return p.o.Core.Split(name, on) }
