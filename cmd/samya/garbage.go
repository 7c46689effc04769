package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// The growth of a process's heap between two collections. Garbage comes from single
// requests. A small process keeps little else, so it collects only once the heap is
// worth a collection. A large heap holds many entities or very many remembered requests;
// it may double.
const (
	// worthHeap is the heap, in bytes, below which no collection runs.
	worthHeap = 64 << 20
	// leastPercent and mostPercent bound the growth, in per cent of the live heap.
	leastPercent, mostPercent = 100, 1600
	// heapCheck is the pause between two reads of the live heap.
	heapCheck = 250 * time.Millisecond
)

// paceGarbage sets the growth until ctx ends. The variable GOGC overrides it.
func paceGarbage(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	percent := leastPercent // the loaded state may be large
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

// percentFor returns the growth for a live heap, in bytes. It returns the present
// percent unless the change is a quarter of it or more, or reaches a bound.
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
