// Package partitions keeps the machines of a core's entities in partitions of
// kvpart, which serve side by side what needs the books of their entities only, and
// learns which of them belong together. It refuses to decide what becomes of a
// request: what no partition serves is passed on, for the core to step alone.
package partitions

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/samya-db/samya/kvpart/control"
	"github.com/samya-db/samya/kvpart/sched"
	"github.com/samya-db/samya/site/core"
)

// ErrOptions says that an option is out of its range; it is wrapped with which.
var ErrOptions = errors.New("bad option")

// Options says what to keep in how many partitions. Core and Clock are needed.
type Options struct {
	Core *core.Core
	// Count is how many partitions there are, from 1 to MaxCount.
	Count int
	// Mode says who runs requests.
	Mode sched.Mode
	// Most is how many requests are to be served before the core is drained, about; see
	// Full.
	Most int
	// Policy says when entities are assigned anew, and that hubs are split; nil for
	// never.
	Policy *control.Policy
	// Place says where entities go that came lately.
	Place sched.Placement
	// Clock does not go back.
	Clock func() time.Duration
	// Seed is that of the cuts, and Rand draws lanes: that of math/rand/v2 if nil.
	Seed uint64
	Rand func() uint64
	// Pass takes, in the modes that have queues, the inputs that were handed over and
	// that no partition serves, and Now is the site's time. They may be called at the
	// same time, and must not block.
	Pass func(in core.Input)
	Now  func() core.Now
	// Failed is told of cuts that failed, if not nil.
	Failed func(error)
}

// MaxCount bounds the partitions of a site.
const MaxCount = 64

// Partitions has the requests of one core served by partitions.
type Partitions struct {
	o       Options
	sched   *sched.Scheduler[core.Place]
	control *control.Controller[*entry]
	lanes   []laneLock
	passed  atomic.Uint64
	// entities counts those that have no entry; see bare.
	entities atomic.Int64
	// stepped counts what was not offered to any partition.
	stepped uint64
	// most is how many requests make a lane full.
	most int64
	full atomic.Bool
	hubs hubs
}

// New puts the machines of a core into partitions. Nobody else may use the core from
// then on, but under Alone.
func New(o Options) (*Partitions, error) {
	if o.Count < 1 || o.Count > MaxCount {
		return nil, fmt.Errorf("%w: %d partitions, want 1 to %d", ErrOptions, o.Count, MaxCount)
	}
	if o.Rand == nil {
		o.Rand = rand.Uint64
	}
	p := &Partitions{o: o, lanes: make([]laneLock, o.Count), most: int64(o.Most/o.Count) + 1}
	p.hubs.odd = make(map[*entry]uint64)
	b := new(balance)
	so := sched.Options[core.Place]{Partitions: o.Count, Mode: o.Mode, Place: o.Place, Now: o.Clock}
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

// Start has the entities assigned anew when that pays, until Close.
func (p *Partitions) Start() {
	if p.control != nil {
		p.control.Start()
	}
}

// Close ends that, and waits until what was handed over was served or passed on.
func (p *Partitions) Close() {
	if p.control != nil {
		p.control.Close()
	}
	p.sched.Close()
}

// Alone runs fn while no partition runs: it may use the core.
func (p *Partitions) Alone(fn func()) {
	for i := range p.lanes {
		p.lanes[i].Lock()
	}
	defer func() {
		for i := range p.lanes {
			p.lanes[i].Unlock()
		}
	}()
	fn()
	p.o.Core.Resume()
}

// Stepped counts requests with which the core was stepped that a partition might have
// served: with one partition they are that one's. What was passed on by Pass is counted
// already. It is called under Alone.
func (p *Partitions) Stepped(n int) {
	if len(p.lanes) == 1 {
		p.lanes[0].served += uint64(n) //nolint:gosec // a count
		return
	}
	p.stepped += uint64(n) //nolint:gosec // a count
}

// Gathered is how many requests were served since Drained. It may be called at any
// time; what was served before the call is counted.
func (p *Partitions) Gathered() int {
	n := int64(0)
	for i := range p.lanes {
		n += p.lanes[i].gathered.Load()
	}
	return int(n)
}

// Full reports whether some partition has served its part of Options.Most since
// Drained. It costs less than Gathered.
func (p *Partitions) Full() bool { return p.full.Load() }

// Drained starts Gathered and Full anew. It is called under Alone.
func (p *Partitions) Drained() {
	p.full.Store(false)
	for i := range p.lanes {
		p.lanes[i].gathered.Store(0)
	}
}

// Tend splits the entities that most requests go to, and makes those whole that few
// do. It is called under Alone, as often as is convenient.
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
	for i := range p.lanes {
		served += p.lanes[i].served
	}
	split, whole := p.hubs.decide(now, served, p.o.Core.Splits(), st.Hubs, st.Applied+st.Skipped > 0)
	for _, name := range split {
		p.o.Core.Split(name, true)
	}
	for _, name := range whole {
		p.o.Core.Split(name, false)
	}
}

// Split has the escrow of an entity split over the partitions, or not any more. It is
// called under Alone.
func (p *Partitions) Split(name string, on bool) bool { return p.o.Core.Split(name, on) }
