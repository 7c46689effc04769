package partitions

import (
	"slices"
	"testing"
	"time"

	"github.com/samya-db/samya/kvpart/sched"
	"github.com/samya-db/samya/site/core"
)

// entriesOn are entries of a scheduler, on the partitions given.
func entriesOn(t *testing.T, on ...int) []*entry {
	t.Helper()
	s, err := sched.New(sched.Options[core.Handle]{Partitions: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	var all []*entry
	for i, at := range on {
		e, err := s.Insert(string(rune('a'+i)), at, core.Handle{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

func TestOddOne(t *testing.T) {
	for _, tc := range []struct {
		on   []int
		want int // its place, -1 for none
	}{
		{[]int{0, 0, 1}, 2},
		{[]int{1, 0, 0}, 0},
		{[]int{0, 1, 0}, 1},
		{[]int{0, 0, 1, 0}, 2},
		// Both entries are alone on their partitions: the entry higher up the tree is
		// taken.
		{[]int{0, 1}, 1},
		{[]int{1, 0}, 1},
		// Without any single entry the others are still on several partitions.
		{[]int{0, 1, 2}, -1},
		{[]int{0, 0, 1, 1}, -1},
		{[]int{0, 1, 1, 0}, -1},
		{[]int{0, 0, 1, 2}, -1},
	} {
		all := entriesOn(t, tc.on...)
		got := oddOne(all, func(e *entry) int { return tc.on[slices.Index(all, e)] })
		if at := slices.Index(all, got); at != tc.want {
			t.Errorf("%v: the one at %d, want %d", tc.on, at, tc.want)
		}
	}
}

// TestHubs goes through looks at an entity that many requests cross to.
func TestHubs(t *testing.T) {
	e := entriesOn(t, 0)[0]
	h := hubs{odd: make(map[*entry]uint64)}
	served, now := uint64(0), time.Duration(0)
	look := func(more, odd uint64, splits []core.SplitState, heavy []string, mapped bool) (split, whole []string) {
		served += more
		now += lookEvery
		h.odd[e] = odd / sampleOf
		return h.decide(now, served, splits, heavy, mapped)
	}
	want := func(what string, split, whole, wantSplit, wantWhole []string) {
		t.Helper()
		if !slices.Equal(split, wantSplit) || !slices.Equal(whole, wantWhole) {
			t.Errorf("%s: split %q, make whole %q; want %q, %q", what, split, whole, wantSplit, wantWhole)
		}
	}
	a := []string{"a"}
	split, whole := look(10_000, 9000, nil, nil, false)
	want("before there is a map", split, whole, nil, nil)
	split, whole = look(10_000, 300, nil, nil, true)
	want("3 % cross to it", split, whole, nil, nil)
	split, whole = look(enough-1, enough, nil, nil, true)
	want("too few requests", split, whole, nil, nil)
	split, whole = look(10_000, 1000, nil, nil, true)
	want("10 % cross to it", split, whole, a, nil)
	split, whole = look(10_000, 0, nil, a, true)
	want("it outweighs a partition", split, whole, a, nil)
	split, whole = h.decide(now+lookEvery/2, served+10_000, nil, a, true)
	want("too early", split, whole, nil, nil)
	of := uint64(0)
	use := func(n uint64) []core.SplitState {
		of += n
		return []core.SplitState{{Name: "a", Served: of}}
	}
	for range 2 * dullLooks {
		split, whole = look(10_000, 0, use(5000), a, true)
		want("half of the requests use it", split, whole, nil, nil)
	}
	for range dullLooks - 1 {
		split, whole = look(10_000, 0, use(10), nil, true)
		want("few requests use it", split, whole, nil, nil)
	}
	split, whole = look(10_000, 0, use(5000), nil, true)
	want("many do again", split, whole, nil, nil)
	for range dullLooks - 1 {
		split, whole = look(10_000, 0, use(10), nil, true)
		want("few requests use it again", split, whole, nil, nil)
	}
	split, whole = look(10_000, 0, use(10), nil, true)
	want("few do for long", split, whole, nil, a)
	many := make([]string, mostSplit+4)
	for i := range many {
		many[i] = string(rune('A' + i))
	}
	split, _ = look(10_000, 0, nil, many, true)
	if len(split) != mostSplit {
		t.Errorf("%d split at once", len(split))
	}
}

// TestHubsLookAnew: each look goes by the requests since the look before. Entities
// already split leave room for as many fewer.
func TestHubsLookAnew(t *testing.T) {
	e := entriesOn(t, 0)[0]
	h := hubs{odd: make(map[*entry]uint64)}
	served := uint64(0)
	for n := range 5 {
		served += 10_000
		h.odd[e] += 300 / sampleOf // 3 %
		if split, _ := h.decide(time.Duration(n+1)*lookEvery, served, nil, nil, true); len(split) != 0 {
			t.Errorf("look %d: %q are split, to which 3 %% cross", n, split)
		}
	}
	var splits []core.SplitState
	for i := range mostSplit - 3 {
		splits = append(splits, core.SplitState{Name: string(rune('a' + i)), Served: 10_000})
	}
	split, _ := h.decide(time.Minute, served+10_000, splits, []string{"A", "B", "C", "D", "E"}, true)
	if len(split) != 3 {
		t.Errorf("%q are split, and %d are already", split, len(splits))
	}
}
