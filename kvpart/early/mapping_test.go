package early

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/samya-db/samya/internal/race"
)

// TestRules breaks each rule of mappings.
func TestRules(t *testing.T) {
	seq := func(threads ...int) Assignment { return Assignment{Sequential: true, Threads: threads} }
	conc := func(threads ...int) Assignment { return Assignment{Threads: threads} }
	c, err := NewClasses(2)
	if err != nil {
		t.Fatal(err)
	}
	c.Conflict(0, 1)
	c.Conflict(1, 1)
	for _, tc := range []struct {
		a, b Assignment
		want string
	}{
		{conc(0, 1), seq(0, 1), ""},
		{conc(0, 1), seq(0, 1, 2), ""},
		{seq(0, 1), seq(1, 2), ""},
		{conc(), seq(0, 1), "R1: class 0"},
		{seq(0), conc(0), "R2: class 1"},
		{conc(0), conc(0), "R3: classes 0 and 1"},
		{conc(0, 1), seq(0, 2), "R4: class 1 lacks threads of class 0"},
		{seq(0), seq(1), "R5: classes 0 and 1"},
		{seq(0, 3), seq(0), "class 0: threads [0 3]"},
		{seq(1, 0), seq(0), "class 0: threads [1 0]"},
		{seq(0, 0), seq(0), "class 0: threads [0 0]"},
		{seq(-1), seq(-1), "class 0: threads [-1]"},
	} {
		err := c.Validate(&Mapping{Threads: 3, Of: []Assignment{tc.a, tc.b}})
		if (err == nil) != (tc.want == "") || err != nil && (!strings.Contains(err.Error(), tc.want) || !errors.Is(err, ErrMapping)) {
			t.Errorf("%v, %v: %v, want %q", tc.a, tc.b, err, tc.want)
		}
	}
}

// TestMappingsByHand: the paper's mappings are valid, the one of its Section 3.4 too.
func TestMappingsByHand(t *testing.T) {
	for _, k := range []int{1, 2, 4, 8, 16} {
		for _, n := range []int{1, 2, 4} {
			if _, _, err := Shards(k, n); err != nil {
				t.Errorf("%d shards, %d threads each: %v", k, n, err)
			}
		}
	}
	c, _, err := Shards(2, 2)
	if err != nil {
		t.Fatal(err)
	}
	printed := &Mapping{Threads: 4, Of: []Assignment{
		{Threads: []int{0, 2}},
		{Sequential: true, Threads: []int{0, 2}},
		{Threads: []int{1, 3}},
		{Sequential: true, Threads: []int{1, 3}},
		{Sequential: true, Threads: []int{0, 3}},
		{Sequential: true, Threads: []int{0, 1, 2, 3}},
	}}
	if err := c.Validate(printed); err != nil {
		t.Errorf("the paper's example: %v", err)
	}
}

// TestMap: computed mappings are valid, and no worse than the paper's made by hand.
func TestMap(t *testing.T) {
	race.OneGoroutine(t)
	for _, k := range []int{1, 2, 4} {
		for _, n := range []int{1, 2, 4} {
			for _, writes := range []float64{.01, .1, .5} {
				for _, global := range []float64{.01, .15} {
					c, byHand, err := Shards(k, n)
					if err != nil {
						t.Fatal(err)
					}
					weights := make([]float64, c.Len())
					for i := range k {
						weights[2*i] = (1 - writes) * (1 - global) / float64(k)
						weights[2*i+1] = writes * (1 - global) / float64(k)
					}
					weights[2*k], weights[2*k+1] = (1-writes)*global, writes*global
					m, err := c.Map(k*n, weights)
					if err != nil {
						t.Fatal(err)
					}
					got, _ := load(m, weights)
					hand, _ := load(byHand, weights)
					if got > hand*1.0001 {
						t.Errorf("%d shards, %d threads each, %v writes, %v global: busiest thread %.3f, by hand %.3f", k, n, writes, global, got, hand)
					}
				}
			}
		}
	}
}

// TestMapOfRandomClasses compares computed mappings with the best of all mappings, where
// those are few, and validates them everywhere.
func TestMapOfRandomClasses(t *testing.T) {
	race.OneGoroutine(t)
	best, worse := 0, 0.0
	const seeds = 60
	for seed := range uint64(seeds) {
		rnd := rand.New(rand.NewPCG(seed, 77))
		n, threads := 1+rnd.IntN(3), 1+rnd.IntN(3)
		c, err := NewClasses(n)
		if err != nil {
			t.Fatal(err)
		}
		weights := make([]float64, n)
		for i := range n {
			weights[i] = rnd.ExpFloat64()
			for j := range i + 1 {
				if rnd.IntN(2) == 0 {
					c.Conflict(i, j)
				}
			}
		}
		s := sum(weights)
		for i := range weights {
			weights[i] /= s
		}
		m, err := c.Map(threads, weights)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		got, _ := load(m, weights)
		least := exhaust(c, threads, weights)
		if got < least-1e-9 {
			t.Fatalf("seed %d: load %v below the least of all mappings, %v", seed, got, least)
		}
		if got <= least+1e-9 {
			best++
		}
		worse = max(worse, got/least)
	}
	t.Logf("%d of %d are the best, the worst is %.3f of it", best, seeds, worse)
	if best < seeds*9/10 || worse > 1.5 {
		t.Errorf("%d of %d are the best, the worst is %.3f of it", best, seeds, worse)
	}
	for seed := range uint64(10) {
		rnd := rand.New(rand.NewPCG(seed, 78))
		c, err := NewClasses(12)
		if err != nil {
			t.Fatal(err)
		}
		for range 30 {
			c.Conflict(rnd.IntN(12), rnd.IntN(12))
		}
		if _, err := c.Map(8, make([]float64, 12)); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// exhaust returns the least load of all valid mappings.
func exhaust(c *Classes, threads int, weights []float64) float64 {
	m := &Mapping{Threads: threads, Of: make([]Assignment, c.Len())}
	least := 1e9
	var fill func(i int)
	fill = func(i int) {
		if i == c.Len() {
			if c.Validate(m) == nil {
				most, _ := load(m, weights)
				least = min(least, most)
			}
			return
		}
		for set := 1; set < 1<<threads; set++ {
			var ts []int
			for t := range threads {
				if set>>t&1 == 1 {
					ts = append(ts, t)
				}
			}
			for _, sequential := range []bool{false, true} {
				m.Of[i] = Assignment{Sequential: sequential, Threads: ts}
				fill(i + 1)
			}
		}
	}
	fill(0)
	return least
}

func sum(values []float64) (s float64) {
	for _, v := range values {
		s += v
	}
	return s
}

// TestBadOptions: errors name the option and the bound.
func TestBadOptions(t *testing.T) {
	c, m, err := Shards(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]Options{
		"option Mode: 9":            {Mode: 9, Classes: c, Mapping: m},
		"option Classes or Mapping": {},
		"option Mapping":            {Classes: c, Mapping: &Mapping{Threads: 1}},
		"option Queue: -1, must be": {Classes: c, Mapping: m, Queue: -1},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := NewClasses(0); !errors.Is(err, ErrMapping) {
		t.Errorf("no classes: %v", err)
	}
	if _, err := c.Map(0, make([]float64, 4)); !errors.Is(err, ErrMapping) {
		t.Errorf("no threads: %v", err)
	}
	if _, err := c.Map(1, []float64{-1, 0, 0, 0}); !errors.Is(err, ErrMapping) {
		t.Errorf("a negative weight: %v", err)
	}
}
