package kvlab

import (
	"fmt"
	"runtime/metrics"
	"syscall"
	"time"

	"github.com/samya-db/samya/kvpart"
)

// usage is the use of resources so far.
type usage struct {
	processor time.Duration // of this process
	memory    int64         // bytes
	stats     kvpart.Stats
}

// readUsage reads the resources used by the process and by a store.
func readUsage(s Store) (usage, error) {
	var self syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &self); err != nil {
		return usage{}, fmt.Errorf("read the processor time of this process: %w", err)
	}
	memory := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(memory)
	return usage{
		processor: time.Duration(self.Utime.Nano() + self.Stime.Nano()),
		memory:    int64(memory[0].Value.Uint64() - memory[1].Value.Uint64()),
		stats:     s.Stats(),
	}, nil
}

// since subtracts the sums of a store before from the sums after.
func since(after, before kvpart.Stats) kvpart.Stats {
	s := after
	s.Operations -= before.Operations
	s.Multi -= before.Multi
	s.Tracked -= before.Tracked
	s.Dropped -= before.Dropped
	s.TrackingTime -= before.TrackingTime
	s.CuttingTime -= before.CuttingTime
	s.Computed -= before.Computed
	s.Applied -= before.Applied
	s.Skipped -= before.Skipped
	s.Moved -= before.Moved
	s.Followed -= before.Followed
	s.CPU, s.Written = growth(s.CPU, before.CPU), growth(s.Written, before.Written)
	s.PerPartition = nil
	for i, n := range after.PerPartition {
		if i < len(before.PerPartition) {
			n -= before.PerPartition[i]
		}
		s.PerPartition = append(s.PerPartition, n)
	}
	return s
}

// growth returns after less before, element by element.
func growth[T int64 | time.Duration](after, before []T) []T {
	all := make([]T, len(after))
	for i := range after {
		all[i] = after[i] - before[i]
	}
	return all
}
