package libra_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samya-db/samya/internal/testfuzz"
	"github.com/samya-db/samya/kvpart/libra"
)

type sample = libra.Sample[uint64]

func middle(low, high uint64) uint64 { return low + (high-low+1)/2 }

// below returns the load below a key: a request of a range has its load evenly on its keys.
func below(samples []sample, key uint64) (load float64) {
	for _, s := range samples {
		switch {
		case s.End < key:
			load += s.Load
		case s.Start < key:
			load += s.Load * float64(key-s.Start) / float64(s.End-s.Start+1)
		}
	}
	return load
}

// keyspace is the number of keys of a drawn range.
const keyspace = 1000

// drawSamples draws requests of a range: of single keys, skewed, or of overlapping ranges.
func drawSamples(r *rand.Rand, kind string) []sample {
	zipf := rand.NewZipf(r, 1.05+r.Float64()/4, 40, keyspace-1)
	perm := r.Perm(keyspace)
	shuffled := r.IntN(2) == 0
	var samples []sample
	for range 2000 {
		k := zipf.Uint64()
		if shuffled {
			k = uint64(perm[k/20*20%keyspace])/20*20 + k%20
		}
		s := sample{k, k, .5 + r.Float64()}
		if kind == "scans" || kind == "mixed" && r.IntN(2) == 0 {
			n := 1 + r.Uint64N(50)
			s.End = min(k+n, keyspace-1)
			s.Load *= float64(n) / 10
		}
		samples = append(samples, s)
	}
	return samples
}

// TestSplitAccuracy measures the error of the share below a split key, as figure 16 of the
// paper does, beside a split at the middle key and the best split of all keys.
func TestSplitAccuracy(t *testing.T) {
	for _, kind := range []string{"points", "mixed", "scans"} {
		var byLoad, bySize, best []float64
		for seed := range uint64(500) {
			r := rand.New(rand.NewPCG(seed, 16))
			samples := drawSamples(r, kind)
			share := .1 + .8*r.Float64()
			sum := below(samples, math.MaxUint64)
			off := func(key uint64) float64 { return math.Abs(below(samples, key)/sum-share) / share }
			key, ok := libra.SplitKey(samples, share, middle)
			if !ok {
				t.Fatalf("%s, seed %d: no key", kind, seed)
			}
			byLoad = append(byLoad, off(key))
			bySize = append(bySize, off(uint64(share*keyspace)))
			least := math.Inf(1)
			for k := range uint64(keyspace) {
				least = min(least, off(k))
			}
			best = append(best, least)
		}
		tell := func(name string, errors []float64) float64 {
			slices.Sort(errors)
			sum := 0.
			for _, e := range errors {
				sum += e
			}
			mean := sum / float64(len(errors))
			t.Logf("%s, %s: mean error %.1f %%, median %.1f %%, worst %.1f %%", kind, name,
				100*mean, 100*errors[len(errors)/2], 100*errors[len(errors)-1])
			return mean
		}
		least := tell("best key", best)
		if mean := tell("by load", byLoad); mean > .1 || kind == "points" && mean > least+1e-9 {
			t.Errorf("%s: error of %v by load, %v at the best key", kind, mean, least)
		}
		if mean := tell("by size", bySize); mean < .4 {
			t.Errorf("%s: error of %v by size", kind, mean)
		}
	}
}

// TestSplitKey shows the rule by example.
func TestSplitKey(t *testing.T) {
	for name, c := range map[string]struct {
		samples []sample
		share   float64
		key     uint64 // 0 for none
	}{
		"none":             {nil, .5, 0},
		"one key":          {[]sample{{5, 5, 1}, {5, 5, 3}}, .5, 0},
		"two keys":         {[]sample{{7, 7, 1}, {5, 5, 3}}, .1, 6},
		"half":             {[]sample{{1, 1, 1}, {2, 2, 1}, {3, 3, 1}, {4, 4, 1}}, .5, 3},
		"quarter":          {[]sample{{1, 1, 1}, {2, 2, 1}, {3, 3, 1}, {4, 4, 1}}, .25, 2},
		"nearest is below": {[]sample{{1, 1, 1}, {2, 2, 10}, {3, 3, 1}}, .3, 2},
		"nearest is above": {[]sample{{1, 1, 1}, {2, 2, 10}, {3, 3, 1}}, .6, 3},
		"one range":        {[]sample{{0, 10, 1}}, .5, 5},
		"nested ranges":    {[]sample{{0, 100, 1}, {40, 60, 1}}, .5, 70},
		// Figure 7: between the start of the next request, 20, and the end of the current one
		// from above, 30. With many requests both are near the best key, 11 to 20.
		"apart":             {[]sample{{0, 10, 1}, {20, 30, 1}}, .5, 25},
		"share of nothing":  {[]sample{{1, 1, 1}, {2, 2, 1}}, 0, 0},
		"share of all":      {[]sample{{1, 1, 1}, {2, 2, 1}}, 1, 0},
		"share of no value": {[]sample{{1, 1, 1}, {2, 2, 1}}, math.NaN(), 0},
		"without load":      {[]sample{{1, 1, 0}, {2, 2, 0}}, .5, 2},
	} {
		if key, ok := libra.SplitKey(c.samples, c.share, middle); key != c.key || ok != (c.key != 0) {
			t.Errorf("%s: %d, %v; want %d", name, key, ok, c.key)
		}
	}
}

// TestSplitKeys cuts a range of equal keys into equal parts.
func TestSplitKeys(t *testing.T) {
	var samples []sample
	for k := range uint64(100) {
		samples = append(samples, sample{k, k, 1})
	}
	for _, c := range []struct {
		share float64
		parts int
		want  []uint64
	}{
		{.25, 4, []uint64{25, 50, 75}},
		{.25, 2, []uint64{25}},
		{.3, 4, []uint64{30, 60, 90}},
		{.5, 9, []uint64{50}},
		{.4, 1, nil},
	} {
		if diff := cmp.Diff(c.want, libra.SplitKeys(samples, c.share, c.parts, middle)); diff != "" {
			t.Errorf("%v in %d parts: %s", c.share, c.parts, diff)
		}
	}
	hot := []sample{{1, 1, 1}, {2, 2, 50}, {3, 3, 1}}
	if diff := cmp.Diff([]uint64{2, 3}, libra.SplitKeys(hot, .05, 20, middle)); diff != "" {
		t.Errorf("hot key: %s", diff)
	}
}

// TestSplitStrings splits keys of bytes at the same places as the numbers that they spell.
func TestSplitStrings(t *testing.T) {
	spell := func(n uint64) string { return string(binary.BigEndian.AppendUint64(nil, n)) }
	value := func(s string) uint64 { return binary.BigEndian.Uint64([]byte(s)) }
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 17))
		numbers := drawSamples(r, "mixed")
		var texts []libra.Sample[string]
		for _, s := range numbers {
			texts = append(texts, libra.Sample[string]{Start: spell(s.Start), End: spell(s.End), Load: s.Load})
		}
		want := libra.SplitKeys(numbers, .1, 10, middle)
		got := libra.SplitKeys(texts, .1, 10, func(a, b string) string { return spell(middle(value(a), value(b))) })
		if len(got) != len(want) {
			t.Fatalf("%d keys, want %d", len(got), len(want))
		}
		for i := range got {
			if value(got[i]) != want[i] {
				t.Errorf("%d, want %d", value(got[i]), want[i])
			}
		}
	}
}

// FuzzSplitKeys looks for keys out of order or out of the range, and for keys that are not
// numbers, which equal nothing.
func FuzzSplitKeys(tf *testing.F) {
	f := testfuzz.On(tf)
	f.Add(1., 2., 3., 1., 1., 1., .5, 3)
	f.Add(math.NaN(), math.NaN(), 3., 1., 0., 2., .1, 20)
	f.Fuzz(func(t *testing.T, a, b, c, x, y, z, share float64, parts int) {
		samples := []libra.Sample[float64]{{a, a, x}, {min(a, b), max(a, b), y}, {c, c, z}, {b, b, x}}
		keys := libra.SplitKeys(samples, share, parts%1000, func(low, _ float64) float64 { return low })
		for i, k := range keys {
			if k <= min(a, b, c) || k > max(a, b, c) || i > 0 && k <= keys[i-1] {
				t.Errorf("keys %v of %v", keys, samples)
			}
		}
	})
}
