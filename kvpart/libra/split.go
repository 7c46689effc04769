package libra

import (
	"cmp"
	"slices"
)

// Sample is a request of a range of keys: its first and last key, equal for a request of
// a single key, and its load, a number of at least 0.
type Sample[K cmp.Ordered] struct {
	Start, End K
	Load       float64
}

// SplitKey returns a key such that about the given share of the load of samples is of
// requests below it (paper, section IV-B and figure 7). It is exact where requests have
// a single key, up to the load of a single key. Where requests of ranges overlap, the share
// lies between two bounds, and mid returns their middle; mid may return either bound.
// SplitKey orders samples anew. ok is false if no key has requests on both sides.
func SplitKey[K cmp.Ordered](samples []Sample[K], share float64, mid func(low, high K) K) (key K, ok bool) {
	if keys := SplitKeys(samples, share, 2, mid); len(keys) > 0 {
		return keys[0], true
	}
	return key, false
}

// SplitKeys returns the keys at which to cut a unit into parts, ascending: each part has
// about the given share of the load, the last part the rest, as an Action says. Parts of
// no key of their own are left out, so there may be fewer keys than cuts between parts.
func SplitKeys[K cmp.Ordered](samples []Sample[K], share float64, parts int, mid func(low, high K) K) []K {
	if !(share > 0 && share < 1) || len(samples) == 0 {
		return nil
	}
	first, last, sum := samples[0].Start, samples[0].End, 0.
	for _, s := range samples {
		first, last, sum = min(first, s.Start), max(last, s.End), sum+s.Load
	}
	var wants []float64
	for i := 1; i < parts && float64(i)*share < 1; i++ {
		wants = append(wants, float64(i)*share*sum)
	}
	// The low bound is the start of the next request after the requests that begin first and
	// have the load. The high bound is the end of the first of the requests that end last and
	// have the rest.
	slices.SortFunc(samples, func(a, b Sample[K]) int { return cmp.Compare(a.Start, b.Start) })
	_, lows := cuts(samples, func(s *Sample[K]) K { return s.Start }, wants)
	for i := range wants {
		wants[i] = sum - wants[i]
	}
	slices.Reverse(wants)
	slices.SortFunc(samples, func(a, b Sample[K]) int { return cmp.Compare(b.End, a.End) })
	highs, _ := cuts(samples, func(s *Sample[K]) K { return s.End }, wants)
	var keys []K
	for i, low := range lows {
		key, high := low, highs[len(highs)-1-i]
		switch {
		case low < high:
			key = mid(low, high)
		case high < low:
			key = mid(high, low)
		}
		if first < key && key <= last && (len(keys) == 0 || keys[len(keys)-1] < key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// cuts returns, for each wanted load, the two keys between which to cut samples in their
// order, so that the samples before have about that load. Samples of the same key go
// together, to the side to which they bring the cut nearer. Wants ascend.
func cuts[K cmp.Ordered](samples []Sample[K], of func(*Sample[K]) K, wants []float64) (before, after []K) {
	have, last := 0., of(&samples[0])
	for i := 0; i < len(samples); {
		key, same := of(&samples[i]), 0.
		j := i
		for ; j < len(samples) && cmp.Compare(of(&samples[j]), key) == 0; j++ {
			same += samples[j].Load
		}
		for i > 0 && len(after) < len(wants) && have+same/2 > wants[len(after)] {
			before, after = append(before, last), append(after, key)
		}
		have, last, i = have+same, key, j
	}
	for len(after) < len(wants) {
		before, after = append(before, last), append(after, last)
	}
	return before, after
}
