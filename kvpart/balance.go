package kvpart

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/samya-db/samya/kvpart/control"
	"github.com/samya-db/samya/kvpart/sched"
)

// balance connects the scheduler with the controller that assigns its keys.
type balance struct {
	*sched.Scheduler[item]
	store   *Store
	control *control.Controller[*entry]
	// moves counts the keys that the next switch moves.
	moves int64
}

// fewMoves decides whether a switch brings a new generation: it does if it moves more
// than 1 in fewMoves keys. Each key moves to a new generation with its next write. After
// a smaller switch keys move within the present generation, as they are written.
const fewMoves = 8

var (
	_ control.Scheduler[*entry] = (*balance)(nil)
	_ sched.Observer[item]      = (*balance)(nil)
)

// Observe implements sched.Observer.
func (b *balance) Observe(entries []*entry) { b.control.Observe(entries) }

// Look implements control.Scheduler.
func (b *balance) Look(e *entry) (partition int, gone bool, slot *atomic.Int32) {
	return b.Partition(e), e.Gone(), &e.Slot
}

// Assign implements control.Scheduler.
func (b *balance) Assign(e *entry, partition int) (bool, error) {
	moves, err := b.Scheduler.Assign(e, partition)
	if moves {
		b.moves++
	}
	return moves, err
}

// Switch implements control.Scheduler. With a hard strategy a switch that moves many keys
// brings a new generation of engines, unless the bound on generations is reached.
func (b *balance) Switch() error {
	few := b.moves <= b.store.live.Load()/fewMoves
	b.moves = 0
	if few || !b.store.strategy.hard() {
		b.Scheduler.Switch(nil)
		b.store.homes.wake()
		return nil
	}
	hs := &b.store.homes
	g, err := hs.next()
	if err != nil {
		return err
	}
	if g == nil {
		b.Scheduler.Switch(nil)
		hs.wake()
		return nil
	}
	b.Scheduler.Switch(func(sched.Epoch) { hs.present.Store(g) })
	hs.follow(g)
	return nil
}

// balances are the ways to balance as package control knows them.
var balances = map[Balance]control.Balance{
	BalanceGraph: control.Graph, BalanceLibra: control.Libra, BalanceBoth: control.Both,
	// With a single load: the meter measures no other.
	BalanceCPU: control.Libra, BalanceDisk: control.Libra,
}

// control returns the options of the controller that runs the policy.
func (o *Options) control(b *balance) control.Options[*entry] {
	co := control.Options[*entry]{
		Scheduler: b, Seed: o.Seed, Now: o.Now, Policy: o.Policy.control(),
		Failed: func(err error) { o.Log.Error("kvpart", "doing", "repartition", "err", err) },
	}
	if s := b.store; s.durable && s.strategy.hard() {
		co.Written = func(dst []int64) ([]int64, bool) {
			return s.homes.written(dst), s.homes.arrived.Load() == uint64(s.sched.Epoch())
		}
	}
	return co
}

// control returns the policy as package control knows it.
func (p *Policy) control() control.Policy {
	kind := control.Async
	if p.Kind == Base {
		kind = control.Base
	}
	return control.Policy{
		Kind: kind, Operations: p.Operations, Window: p.Window, Every: p.Every, Gain: p.Gain,
		Share: p.Share, Sample: p.Sample, Vertices: p.Vertices, Edges: p.Edges,
		Imbalance: p.Imbalance, Stretch: p.Stretch, Replace: p.Replace,
		Balance: balances[p.Balance], Tolerance: p.Tolerance,
	}
}

// Reassign assigns every key to the partition that the function partition returns, and
// switches the map. A key for which it returns -1 is placed anew at its next use.
// Requests run meanwhile. Reassign must not run beside another Reassign, nor in a store
// with a policy. It does nothing in a bare store, which has no partitions. It fails if
// the engines of a new generation cannot be opened; the keys then stay where they were.
func (s *Store) Reassign(partition func(key string) int) error {
	if err := s.outside("reassign"); err != nil {
		return err
	}
	if s.bare != nil {
		return nil
	}
	b := &balance{Scheduler: s.sched, store: s}
	for _, e := range s.sched.Entries(nil, "", math.MaxInt) {
		if _, err := b.Assign(e, partition(e.Key())); err != nil {
			return fmt.Errorf("reassign: %w", err)
		}
	}
	return b.Switch()
}

// Stats returns the counts since the store was opened.
func (s *Store) Stats() Stats {
	if s.bare != nil {
		return s.bare.stats()
	}
	ran := s.sched.Stats()
	st := Stats{
		Operations: ran.Ran, Multi: ran.Multi, Stolen: ran.Early.Stolen, Keys: int(s.live.Load()),
		Queued: ran.Queued, PerPartition: ran.PerPartition, Pause: Pause(ran.Pause),
	}
	st.Generations, st.DiskBytes = s.homes.stats()
	if s.durable {
		st.Written = s.homes.written(nil)
	}
	if s.meter != nil {
		st.CPU = s.meter.spent()
	}
	st.Followed = s.homes.followed.Load()
	if s.control != nil {
		c := s.control.Stats()
		st.Tracked, st.Dropped, st.Vertices, st.Edges = c.Tracked, c.Dropped, c.Vertices, c.Edges
		st.TrackingTime, st.CuttingTime = c.TrackingTime, c.CuttingTime
		st.Computed, st.Applied, st.Skipped, st.Failed, st.Moved = c.Computed, c.Applied, c.Skipped, c.Failed, c.Moved
		st.LastCut, st.LastBalance, st.LastCutTime, st.Hubs = c.LastCut, c.LastBalance, c.LastCutTime, c.Hubs
		st.Sample, st.Interval = c.Sample, c.Interval
	}
	return st
}
