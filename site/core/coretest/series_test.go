package coretest

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSeries compares series, and copies of copies, with maps.
func TestSeries(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		all, want := []*Series[int]{new(Series[int])}, []map[uint64]int{{}}
		last := uint64(0)
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			i := rapid.IntRange(0, len(all)-1).Draw(rt, "which")
			s, m := all[i], want[i]
			switch rapid.SampledFrom([]string{"add", "add", "add", "any", "forget", "copy"}).Draw(rt, "step") {
			case "add":
				last += rapid.Uint64Range(1, 2).Draw(rt, "by")
				s.Set(last, int(last)*10+i)
				m[last] = int(last)*10 + i
			case "any":
				n := rapid.Uint64Range(0, last).Draw(rt, "number")
				s.Set(n, -i)
				m[n] = -i
			case "forget":
				below := rapid.Uint64Range(0, last+1).Draw(rt, "below")
				s.Forget(below)
				maps.DeleteFunc(m, func(n uint64, _ int) bool { return n < below })
			case "copy":
				all, want = append(all, new(s.Copied())), append(want, maps.Clone(m))
			}
			for i, s := range all {
				if got := s.Values(); !slices.Equal(got, InOrder(want[i])) {
					rt.Fatalf("series %d: %v, want %v", i, s.List, want[i])
				}
			}
		}
	})
}
