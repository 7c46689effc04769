package partitions

import (
	"github.com/samya-db/samya/kvpart/control"
	"github.com/samya-db/samya/kvpart/sched"
	"github.com/samya-db/samya/site/core"
)

// Stats are the figures of the partitions since they were made.
type Stats struct {
	// Partitions are their own figures, by number.
	Partitions []PartitionStats
	// Served counts the requests that partitions served, and Cross the requests among
	// them of several partitions. Passed counts the requests that no partition served:
	// they stepped the core alone.
	Served, Cross, Passed uint64
	// Imbalance is the load of the most loaded partition over the mean.
	Imbalance float64
	// Adaptive reports whether entities that are used together are assigned together:
	// whether there is a policy.
	Adaptive bool
	// Control has the figures of the controller, Pause how long dispatch stood still.
	Control control.Stats
	Pause   sched.Pause
	// Split are the entities that are split, by name.
	Split []SplitStats
}

// PartitionStats are the figures of a single partition.
type PartitionStats struct {
	// Entities is the number of entities in the partition, Served the number of
	// requests that it had a part in.
	Entities int
	Served   uint64
	// Queued is the number of requests that wait there.
	Queued int
}

// SplitStats are the figures of a split entity.
type SplitStats struct {
	Name string
	// Left is the number of the entity's tokens in each partition, as of the last look.
	Left []core.Tokens
	// Served counts the requests that took tokens of the entity's stripes since it was
	// split.
	Served uint64
}

// Stats returns the figures of the partitions.
func (p *Partitions) Stats() Stats {
	ran := p.sched.Stats()
	st := Stats{Passed: p.passed.Load(), Pause: ran.Pause, Imbalance: 1, Adaptive: p.control != nil}
	var most, sum int64
	for i, n := range ran.PerPartition {
		st.Partitions = append(st.Partitions, PartitionStats{Served: uint64(n), Queued: ran.Queued[i]}) //nolint:gosec // a count
		most, sum = max(most, n), sum+n
	}
	if sum > 0 {
		st.Imbalance = float64(most) * float64(len(st.Partitions)) / float64(sum)
	}
	st.Partitions[0].Entities = int(p.entities.Load())
	for _, e := range p.sched.Entries(nil, "", p.sched.Keys()) {
		if at := p.sched.Partition(e); at >= 0 {
			st.Partitions[at].Entities++
		}
	}
	if p.control != nil {
		st.Control = p.control.Stats()
	}
	p.Alone(func() {
		st.Passed += p.stepped
		if len(p.shards) == 1 {
			st.Partitions[0].Served = p.shards[0].served
		}
		for i := range p.shards {
			st.Served += p.shards[i].served
			st.Cross += p.shards[i].cross
		}
		for _, s := range p.o.Core.Splits() {
			st.Split = append(st.Split, SplitStats{Name: s.Name, Left: s.Left, Served: s.Served})
		}
	})
	return st
}
