package partitions

import (
	"fmt"
	"sync/atomic"

	"github.com/samya-db/samya/kvpart/control"
	"github.com/samya-db/samya/kvpart/sched"
	"github.com/samya-db/samya/site/core"
)

var (
	_ core.Home                   = (*Partitions)(nil)
	_ control.Scheduler[*entry]   = (*balance)(nil)
	_ sched.Observer[core.Handle] = (*balance)(nil)
)

// Came implements core.Home.
func (p *Partitions) Came(m *core.Machine) *core.Handle {
	if p.bare() {
		p.entities.Add(1)
		return nil
	}
	e, err := p.sched.Insert(m.Name(), sched.Unplaced, core.Handle{})
	if err != nil {
		// The core has a single machine of a name at a time.
		panic(fmt.Sprintf("partitions: entity %q: %v", m.Name(), err))
	}
	e.Value.Owner = e
	return &e.Value
}

// Gone implements core.Home.
func (p *Partitions) Gone(m *core.Machine) {
	if p.bare() {
		p.entities.Add(-1)
		return
	}
	p.sched.Remove(m.Owner().(*entry))
}

// bare reports whether there are no entries. Stepping the core costs less than a single
// partition that callers run, and an entry takes memory.
func (p *Partitions) bare() bool { return len(p.shards) == 1 && p.o.Mode == sched.Callers }

// balance stands between the scheduler and the controller.
type balance struct {
	*sched.Scheduler[core.Handle]
	control *control.Controller[*entry]
}

// Observe implements sched.Observer.
func (b *balance) Observe(entries []*entry) { b.control.Observe(entries) }

// Look implements control.Scheduler. A split entity weighs on no partition, and draws
// no entity used with it to another partition.
func (b *balance) Look(e *entry) (partition int, gone bool, slot *atomic.Int32) {
	return b.Partition(e), e.Gone() || e.Value.Split(), &e.Slot
}

// Switch implements control.Scheduler.
func (b *balance) Switch() error {
	b.Scheduler.Switch(nil)
	return nil
}

// Assign has an entity belong to another partition from the next Switch on. It is for
// simulations, which choose the partitions themselves.
func (p *Partitions) Assign(name string, partition int) error {
	e := p.sched.Entry(name)
	if e == nil {
		return nil
	}
	if _, err := p.sched.Assign(e, partition); err != nil {
		return fmt.Errorf("assigning entity %q: %w", name, err)
	}
	return nil
}

// Switch makes assignments count. In Manual mode it is called when Settled.
func (p *Partitions) Switch() { p.sched.Switch(nil) }

// Settled reports, in Manual mode, whether all partitions have come to the last
// Switch.
func (p *Partitions) Settled() bool { return p.sched.Settled() }

// Step does the next task of a partition, in Manual mode.
func (p *Partitions) Step(partition int) sched.Outcome { return p.sched.Step(partition) }
