package main

import "testing"

func TestPercentFor(t *testing.T) {
	const mib = 1 << 20
	percent := firstPercent
	for i, step := range []struct {
		live, scanned uint64
		want          int
	}{
		{0, 0, mostPercent},
		{mib, mib, mostPercent},
		{8 * mib, 8 * mib, 800},
		{7 * mib, 7 * mib, 800}, // 914 is about as much
		{16 * mib, 8 * mib, 400},
		{64 * mib, 32 * mib, 100},
		{256 * mib, 256 * mib, 100}, // all entities: it may double
		{256 * mib, 16 * mib, 25},   // most are remembered requests
		{1 << 30, 32 * mib, 6},
		{1 << 30, 128 * mib, 12},
		{1 << 30, 120 * mib, 12}, // 11 is about as much
		{1 << 40, mib, leastPercent},
		{64 * mib, 1 << 40, 100}, // the two are not read at the same instant
	} {
		if percent = percentFor(step.live, step.scanned, percent); percent != step.want {
			t.Errorf("step %d: %d %% for %d bytes, want %d %%", i, percent, step.live, step.want)
		}
	}
}
