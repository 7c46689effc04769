package libra_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/samya-db/samya/kvpart/libra"
)

// TestMapCPU shows the rule by example: a write costs 1.63 reads.
func TestMapCPU(t *testing.T) {
	for name, c := range map[string]struct {
		measured      float64
		reads, writes []float64
		want          []float64
	}{
		"reads":            {10, []float64{1, 3}, []float64{0, 0}, []float64{2.5, 7.5}},
		"a read, a write":  {2.63, []float64{1, 0}, []float64{0, 1}, []float64{1, 1.63}},
		"both of each":     {2 * 2.63, []float64{1, 1}, []float64{1, 1}, []float64{2.63, 2.63}},
		"without requests": {5, []float64{0, 0}, []float64{0, 0}, []float64{0, 0}},
		"without units":    {5, nil, nil, nil},
	} {
		got := libra.MapCPU(nil, c.measured, c.reads, c.writes, libra.WriteCost)
		if !slices.EqualFunc(got, c.want, func(a, b float64) bool { return math.Abs(a-b) < tiny }) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestMapCPUSharesAll checks that the shares are all of the measured time, and no less than
// 0, appended to what is there.
func TestMapCPUSharesAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.SliceOfN(rapid.Float64Range(0, 1e9), 1, 20)
		reads := count.Draw(t, "reads")
		writes := rapid.SliceOfN(rapid.Float64Range(0, 1e9), len(reads), len(reads)).Draw(t, "writes")
		measured := rapid.Float64Range(0, 1e9).Draw(t, "measured")
		got := libra.MapCPU([]float64{-1}, measured, reads, writes, rapid.Float64Range(0, 10).Draw(t, "cost"))
		sum := 0.
		for _, l := range got[1:] {
			if l < 0 {
				t.Fatalf("share %v", l)
			}
			sum += l
		}
		if len(got) != len(reads)+1 || got[0] != -1 || sum != 0 && math.Abs(sum-measured) > tiny*measured {
			t.Fatalf("%v of %v", got, measured)
		}
	})
}

// TestGuard plays beats of two nodes.
func TestGuard(t *testing.T) {
	type beat []libra.Load
	even := beat{{10, 10}, {10, 10}}
	for name, c := range map[string]struct {
		limit float64
		beats []beat
		want  []bool
	}{
		"constant":              {0, []beat{even, even, even}, []bool{false, true, true}},
		"a quarter more":        {0, []beat{even, {{12.5, 10}, {10, 10}}, {{12.5, 10}, {10, 10}}}, []bool{false, false, true}},
		"a quarter less":        {0, []beat{even, {{10, 10}, {10, 7.5}}}, []bool{false, false}},
		"a tenth":               {0, []beat{even, {{11, 9}, {9, 11}}}, []bool{false, true}},
		"a tenth each time":     {0, []beat{even, {{11, 10}, {10, 10}}, {{12, 10}, {10, 10}}, {{13, 10}, {10, 10}}}, []bool{false, true, true, true}},
		"two small steps back":  {0, []beat{even, {{13, 10}, {10, 10}}, even, even}, []bool{false, false, false, true}},
		"another limit":         {.3, []beat{even, {{12.5, 10}, {10, 10}}}, []bool{false, true}},
		"first of an idle node": {0, []beat{{{10, 10}, {0, 0}}, {{10, 10}, {.5, .5}}}, []bool{false, true}},
		"much of an idle node":  {0, []beat{{{10, 10}, {0, 0}}, {{10, 10}, {5, .5}}}, []bool{false, false}},
		"another node":          {0, []beat{even, {{10, 10}, {10, 10}, {10, 10}}, {{10, 10}, {10, 10}, {10, 10}}}, []bool{false, false, true}},
		"no number":             {0, []beat{even, {{math.NaN(), 10}, {10, 10}}, even, even}, []bool{false, false, false, true}},
		"no nodes":              {0, []beat{{}, {}}, []bool{false, false}},
		"no load":               {0, []beat{{{}, {}}, {{}, {}}}, []bool{false, true}},
	} {
		g := libra.Guard{Limit: c.limit}
		for i, b := range c.beats {
			if got := g.Steady(b); got != c.want[i] {
				t.Errorf("%s, beat %d: %v", name, i, got)
			}
		}
	}
}

// TestMerges checks that few cold neighbours merge, each once, on the same node, and that the
// next round finds the same excess.
func TestMerges(t *testing.T) {
	merged := 0
	check := func(t rapid.TB, r round, most int) {
		t.Helper()
		pairs, err := libra.Merges(r.Options, r.nodes, r.units, most)
		if err != nil {
			t.Fatal(err)
		}
		units := relative(r.nodes, r.units)
		next := 0
		for _, i := range pairs {
			a, b := units[i], units[i+1]
			if i < next || a.Node != b.Node {
				t.Fatalf("pair %d of %v: nodes %d and %d", i, pairs, a.Node, b.Node)
			}
			next = i + 2
			if sum := max(a.Load[0]+b.Load[0], a.Load[1]+b.Load[1]); sum > .05/8+tiny {
				t.Fatalf("pair %d has %v", i, sum)
			}
		}
		if len(pairs) > max(most, 0) {
			t.Fatalf("%d pairs, want %d at most", len(pairs), most)
		}
		merged += len(pairs)
		joined := slices.Clone(r.units)
		for _, i := range slices.Backward(pairs) {
			for d := range joined[i].Load {
				joined[i].Load[d] += joined[i+1].Load[d]
			}
			joined = slices.Delete(joined, i+1, i+2)
		}
		if before, after := excess(sums(r.nodes, units)), excess(sums(r.nodes, relative(r.nodes, joined))); math.Abs(before-after) > tiny {
			t.Fatalf("excess from %v to %v", before, after)
		}
		all, err := libra.Merges(r.Options, r.nodes, r.units, len(r.units))
		if err != nil || !slices.Equal(all[:min(len(all), max(most, 0))], pairs) {
			t.Fatalf("%v, then %v: %v", pairs, all, err)
		}
	}
	draw := func(t *rapid.T) round {
		r := rounds(t)
		r.Tolerance = 0
		for i := range r.units {
			if rapid.IntRange(0, 2).Draw(t, "cold") > 0 {
				r.units[i].Load = libra.Load{rapid.Float64Range(0, .1).Draw(t, "cpu"), rapid.Float64Range(0, .1).Draw(t, "disk")}
			}
		}
		return r
	}
	for seed := range 500 {
		check(t, rapid.Custom(draw).Example(seed), seed%7-1)
	}
	if merged < 100 {
		t.Errorf("%d pairs only", merged)
	}
	rapid.Check(t, func(t *rapid.T) { check(t, draw(t), rapid.IntRange(-1, 9).Draw(t, "most")) })
	if _, err := libra.Merges(libra.Options{}, 0, nil, 1); !errors.Is(err, libra.ErrInput) {
		t.Error(err)
	}
}
