package main

import "testing"

func TestPercentFor(t *testing.T) {
	percent := smallHeapPercent
	for i, step := range []struct {
		live uint64
		want int
	}{
		{0, smallHeapPercent},
		{largeHeap - 1, smallHeapPercent},
		{largeHeap, largeHeapPercent},
		{largeHeap / 4 * 3, largeHeapPercent},
		{largeHeap/4*3 - 1, smallHeapPercent},
		{largeHeap - 1, smallHeapPercent},
	} {
		if percent = percentFor(step.live, percent); percent != step.want {
			t.Errorf("step %d: %d %% for %d bytes, want %d %%", i, percent, step.live, step.want)
		}
	}
}
