package portion_test

import (
	"fmt"
	"runtime"
	"testing"

	"pgregory.net/rapid"

	"github.com/samya-db/samya/internal/portion"
)

func TestFits(t *testing.T) {
	for _, tc := range []struct {
		name                     string
		bound, all, mine, others int
		n                        int
		want                     bool
	}{
		{"the first", 64, 0, 0, 0, 1, true},
		{"alone, the last before the last part", 64, 55, 55, 0, 1, true},
		{"alone, the first of the last part", 64, 56, 56, 0, 1, false},
		{"a part of the last part", 64, 54, 54, 0, 4, false},
		{"who comes late", 64, 56, 0, 1, 1, true},
		{"one less than an equal part of three", 64, 58, 20, 1, 1, true},
		{"an equal part of three", 64, 58, 21, 1, 1, false},
		{"less than an equal part, and more after it", 64, 58, 20, 1, 6, true},
		{"the last", 64, 63, 0, 1, 1, true},
		{"full", 64, 64, 0, 1, 1, false},
		{"more than is left", 64, 62, 0, 1, 3, false},
		{"more holders than places in a part", 64, 60, 0, 200, 1, true},
		{"one of as many", 64, 60, 1, 200, 1, false},
		{"no last part", 7, 6, 6, 0, 1, true},
		{"no last part, full", 7, 7, 0, 1, 1, false},
		{"a bound of one", 1, 0, 0, 0, 1, true},
		{"a bound of one, full", 1, 1, 0, 1, 1, false},
		{"beyond", 8, 12, 0, 1, 1, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := portion.Fits(tc.bound, tc.all, tc.mine, tc.others, tc.n); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// TestGreedy: a holder that takes all it can get leaves room for others. A holder alone
// has all but the last eighth. Memory comes back.
func TestGreedy(t *testing.T) {
	for _, bound := range []int{1, 2, 7, 8, 64, 8192} {
		var c portion.Counts
		take := func(name string) (portion.Slot, bool) {
			if !c.Fits(name, bound, 1) {
				return portion.Nobody, false
			}
			return c.Take(name, 1), true
		}
		var greedy []portion.Slot
		for at, ok := take("greedy"); ok; at, ok = take("greedy") {
			greedy = append(greedy, at)
		}
		if want := bound - bound/8; len(greedy) != want {
			t.Errorf("bound %d: a holder alone has %d, want %d", bound, len(greedy), want)
		}
		var others []portion.Slot
		for i := range bound {
			at, ok := take(fmt.Sprint("other ", i))
			if !ok {
				break
			}
			others = append(others, at)
		}
		if len(others) != bound-len(greedy) {
			t.Errorf("bound %d: %d others found room beside %d", bound, len(others), len(greedy))
		}
		for _, at := range append(greedy, others...) {
			c.Give(at, 1)
		}
		if c.All() != 0 || c.Holders() != 0 {
			t.Errorf("bound %d: %d of %d holders stay", bound, c.All(), c.Holders())
		}
	}
}

// TestEqualParts: once a bound is nearly full, a new holder gets its equal part and no
// more, and leaves a place for the next holder.
func TestEqualParts(t *testing.T) {
	const bound, many = 64, 7
	var c portion.Counts
	for i := range bound - bound/8 {
		c.Take(fmt.Sprint("early ", i%many), 1)
	}
	for c.Fits("late", bound, 1) {
		c.Take("late", 1)
	}
	if got, want := c.Held("late"), bound/(many+2); got != want {
		t.Errorf("who comes late has %d, an equal part is %d", got, want)
	}
	if !c.Fits("later", bound, 1) {
		t.Error("there is no place for who comes next")
	}
}

// TestAgainstMaps compares the counts with a map.
func TestAgainstMaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c portion.Counts
		model := make(map[string]int)
		slots := make(map[string]portion.Slot)
		nobody, names := 0, rapid.SampledFrom([]string{"", "a", "b", "c", "d", "e"})
		all := func() int {
			n := nobody
			for _, held := range model {
				n += held
			}
			return n
		}
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				name, n := names.Draw(t, "name"), rapid.IntRange(1, 4).Draw(t, "n")
				bound := rapid.IntRange(1, 40).Draw(t, "bound")
				others := len(model)
				if model[name] > 0 {
					others--
				}
				if got, want := c.Fits(name, bound, n), portion.Fits(bound, all(), model[name], others, n); got != want {
					t.Fatalf("%d more of %q beside %d: fits %v, want %v", n, name, others, got, want)
				}
				at := c.Take(name, n)
				if was, ok := slots[name]; ok && was != at {
					t.Fatalf("%q moved from slot %d to %d", name, was, at)
				}
				model[name] += n
				slots[name] = at
			},
			"more": func(t *rapid.T) {
				name := names.Draw(t, "name")
				if at, ok := slots[name]; ok {
					c.More(at, 2)
					model[name] += 2
					return
				}
				c.More(portion.Nobody, 2)
				nobody += 2
			},
			"give": func(t *rapid.T) {
				name := names.Draw(t, "name")
				at, ok := slots[name]
				if !ok {
					c.Give(portion.Nobody, nobody)
					nobody = 0
					return
				}
				n := rapid.IntRange(1, model[name]).Draw(t, "n")
				c.Give(at, n)
				if model[name] -= n; model[name] == 0 {
					delete(model, name)
					delete(slots, name)
				}
			},
			"": func(t *rapid.T) {
				if c.All() != all() || c.Holders() != len(model) {
					t.Fatalf("%d of %d holders, want %d of %d", c.All(), c.Holders(), all(), len(model))
				}
				for name, at := range slots {
					if c.Held(name) != model[name] || c.Name(at) != name || at == portion.Nobody {
						t.Fatalf("%q has %d in slot %d of %q, want %d", name, c.Held(name), at, c.Name(at), model[name])
					}
				}
				if c.Name(portion.Nobody) != "" {
					t.Fatalf("nobody is called %q", c.Name(portion.Nobody))
				}
			},
		})
	})
}

// TestMemoryComesBack: holders that have gone leave no memory behind, and the other
// holders keep their slots.
func TestMemoryComesBack(t *testing.T) {
	const many = 100_000
	heap := func() int {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc) //nolint:gosec // some MB
	}
	var c portion.Counts
	before := heap()
	slots := make([]portion.Slot, 0, many)
	for i := range many {
		slots = append(slots, c.Take(fmt.Sprint("holder ", i), 1))
	}
	full := heap()
	for i, at := range slots {
		if i != 10 && i != 20 {
			c.Give(at, 1)
		}
	}
	stays := [2]portion.Slot{slots[10], slots[20]}
	runtime.KeepAlive(slots)
	if taken, left := full-before, heap()-before; left > taken/100 {
		t.Errorf("%d of %d bytes stay for 2 of %d holders", left, taken, many)
	}
	if c.Name(stays[0]) != "holder 10" || c.Name(stays[1]) != "holder 20" || c.Holders() != 2 || c.All() != 2 {
		t.Errorf("there stay %q and %q, %d holders in all", c.Name(stays[0]), c.Name(stays[1]), c.Holders())
	}
	if at := c.Take("new", 1); at == stays[0] || at == stays[1] || c.Name(at) != "new" {
		t.Errorf("who comes is in slot %d of %v", at, stays)
	}
	runtime.KeepAlive(&c)
}

// TestNoAllocation: a holder that comes and goes again and again costs no allocation.
func TestNoAllocation(t *testing.T) {
	var c portion.Counts
	if n := testing.AllocsPerRun(1000, func() {
		if !c.Fits("a", 1, 1) {
			t.Fatal("it does not fit")
		}
		c.Give(c.Take("a", 1), 1)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
