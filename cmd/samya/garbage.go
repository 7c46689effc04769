package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// The growth of a process's heap between two collections. Garbage comes from single
// requests. A collection costs about what it scans: objects with pointers, of which
// entities have most. It passes by the remembered requests, which are most of a large heap
// and have no pointers. So the heap grows by as many bytes as a collection scans, however
// large it is, but never by less than is worth a collection.
const (
	// worthGarbage is the garbage, in bytes, that is worth a collection.
	worthGarbage = 64 << 20
	// firstPercent is the growth, in per cent of the live heap, before the first look at
	// the heap: the loaded state may be large.
	firstPercent = 100
	// leastPercent and mostPercent bound the growth, in per cent of the live heap.
	leastPercent, mostPercent = 2, 1600
	// heapCheck is the pause between two reads of the live heap.
	heapCheck = 250 * time.Millisecond
)

// paceGarbage sets the growth until ctx ends. The variable GOGC overrides it.
func paceGarbage(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/heap:bytes"}}
	percent := firstPercent
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
		if next := percentFor(sample[0].Value.Uint64(), sample[1].Value.Uint64(), percent); next != percent {
			percent = next
			debug.SetGCPercent(percent)
		}
	}
}

// percentFor returns the growth for a live heap and its part that a collection scans, both
// in bytes. It returns the present percent unless the change is a quarter of it or more, or
// reaches a bound.
func percentFor(live, scanned uint64, percent int) int {
	next := mostPercent
	if live > 0 {
		growth := max(worthGarbage, min(scanned, live))
		next = int(max(leastPercent, min(mostPercent, growth*100/live)))
	}
	if next > leastPercent && next < mostPercent && next > percent*3/4 && next < percent*5/4 {
		return percent
	}
	return next
}
