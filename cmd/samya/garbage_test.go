package main

import "testing"

func TestPercentFor(t *testing.T) {
	const mib = 1 << 20
	percent := leastPercent
	for i, step := range []struct {
		live uint64
		want int
	}{
		{0, mostPercent},
		{mib, mostPercent},
		{8 * mib, 700},
		{7 * mib, 700},  // 814 is about as much
		{16 * mib, 300}, // 300 % of 16 MiB beside them are the heap that is worth it
		{18 * mib, 300},
		{worthHeap / 2, leastPercent},
		{worthHeap, leastPercent},
		{1 << 40, leastPercent},
		{worthHeap/2 - 2*mib, leastPercent}, // 113 is about as much
		{worthHeap / 2 / 2, 300},
	} {
		if percent = percentFor(step.live, percent); percent != step.want {
			t.Errorf("step %d: %d %% for %d bytes, want %d %%", i, percent, step.live, step.want)
		}
	}
}
