package libralab

import (
	"slices"
	"sort"

	"github.com/samya-db/samya/kvpart/libra"
)

// sampleSeconds is how long requests of a region are sampled.
const sampleSeconds = 10

// mostPlaces is the most places of the requests of a cell in a sample.
const mostPlaces = 4

// sample draws the requests of the keys from low, below high, in sampleSeconds. Requests of
// the same key count as a single request, with the load of all.
func (s *sim) sample(low, high int, d libra.Dimension) []libra.Sample[int] {
	var samples []libra.Sample[int]
	sp := s.space
	for i := sp.cell(low); i < len(sp.starts)-1 && sp.starts[i] < high; i++ {
		from, to := max(low, sp.starts[i]), min(high, sp.starts[i+1])
		f := sp.between(from, to)
		each := f.reads + libra.WriteCost*f.writes
		if d == libra.Disk {
			each = f.bytes
		}
		requests := f.reads + f.writes
		if requests <= 0 {
			continue
		}
		each /= requests
		n := poisson(s.draws, requests*sampleSeconds)
		places := min(n, mostPlaces, to-from)
		for k := range places {
			share := n / places
			if k < n%places {
				share++
			}
			key := from + s.draws.IntN(to-from)
			samples = append(samples, libra.Sample[int]{Start: key, End: min(high-1, key+sp.scan-1), Load: each * float64(share)})
		}
	}
	return samples
}

// splitKeys returns up to parts - 1 keys, ascending: each part but the last has the share
// of all load.
func splitKeys(samples []libra.Sample[int], low, high int, share float64, parts int) []int {
	slices.SortFunc(samples, func(a, b libra.Sample[int]) int { return a.Start - b.Start })
	var keys []int
	left := 1.
	for len(keys) < parts-1 && left > share*1.0001 {
		// SplitKey sorts the samples; those below the last key are gone.
		key, ok := libra.SplitKey(samples, share/left, func(a, b int) int { return a + (b-a)/2 })
		if !ok || key <= low || key >= high {
			break
		}
		keys = append(keys, key)
		low = key
		left -= share
		slices.SortFunc(samples, func(a, b libra.Sample[int]) int { return a.Start - b.Start })
		samples = samples[sort.Search(len(samples), func(i int) bool { return samples[i].Start >= key }):]
	}
	return keys
}
