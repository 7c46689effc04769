package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// How much a process's heap may grow between two collections. The garbage is
// that of single requests, and what lives beside them is little in a small
// process: it collects only once the heap is worth it. A large heap is that of
// many entities, or of very many remembered requests; it may double.
const (
	// worthHeap is the heap, in bytes, below which nothing is collected.
	worthHeap = 64 << 20
	// leastPercent and mostPercent bound the growth, in per cent of what is live.
	leastPercent, mostPercent = 100, 1600
	// heapCheck is the pause between two looks at the live heap.
	heapCheck = 250 * time.Millisecond
)

// paceGarbage sets when the process collects garbage, until ctx ends. GOGC
// overrides it.
func paceGarbage(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	percent := leastPercent // what is loaded may be much
	debug.SetGCPercent(percent)
	tick := time.NewTicker(heapCheck)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		metrics.Read(sample)
		if next := percentFor(sample[0].Value.Uint64(), percent); next != percent {
			percent = next
			debug.SetGCPercent(percent)
		}
	}
}

// percentFor is what is due for a live heap, in bytes, given what is set: a heap
// that goes a little up and down changes nothing.
func percentFor(live uint64, percent int) int {
	next := mostPercent
	if live > 0 {
		goal := max(worthHeap, 2*live)
		next = int(min(mostPercent, (goal-live)*100/live))
	}
	if next > leastPercent && next < mostPercent && next > percent*3/4 && next < percent*5/4 {
		return percent
	}
	return next
}
