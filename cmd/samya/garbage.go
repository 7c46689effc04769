package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// How much a site's heap may grow between two collections, in per cent of what
// is live. The garbage is that of single requests: half as many collections as
// by default give some 5 % of throughput, for memory that a site with a small
// heap has. A large one is that of many entities, or of very many remembered
// requests, which hold no pointers and so cost a collection little.
const (
	smallHeapPercent, largeHeapPercent = 200, 100
	// largeHeap is from which live heap on the lower one holds, in bytes.
	largeHeap = 32 << 20
	// heapCheck is the pause between two looks at the live heap.
	heapCheck = time.Second
)

// paceGarbage sets when the site collects garbage, until ctx ends. GOGC
// overrides it.
func paceGarbage(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	percent := largeHeapPercent // what is loaded may be much
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

// percentFor is what is due for a live heap, given what is set: a heap that is
// about as large as largeHeap does not go back and forth.
func percentFor(live uint64, percent int) int {
	switch {
	case live >= largeHeap:
		return largeHeapPercent
	case live < largeHeap/4*3:
		return smallHeapPercent
	}
	return percent
}
