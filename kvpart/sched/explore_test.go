package sched

import (
	"fmt"
	"slices"
	"testing"

	"github.com/samya-db/samya/internal/race"
)

// explore takes all orders of the steps of a world, but skips steps to a state seen
// before.
func explore(t *testing.T, start func() *world) {
	t.Helper()
	seen := map[string]bool{}
	longest := 0
	replay := func(path []byte) *world {
		w := start()
		for _, i := range path {
			if !w.take(int(i)) {
				t.Fatal("a step of a replay is not possible")
			}
		}
		return w
	}
	for paths := [][]byte{nil}; len(paths) > 0; {
		path := paths[0]
		paths = paths[1:]
		w, moved := replay(path), false
		longest = len(path)
		for i := range w.choices() {
			if !w.take(i) {
				continue
			}
			moved = true
			longer := append(slices.Clip(path), byte(i))
			if bad := w.broken(); bad != "" {
				t.Fatalf("after steps %v: %s", longer, bad)
			}
			if mark := w.mark(); !seen[mark] {
				seen[mark] = true
				paths = append(paths, longer)
			}
			w = replay(path)
		}
		if !moved {
			if bad := w.stuck(); bad != "" {
				t.Fatalf("after steps %v: %s", path, bad)
			}
		}
	}
	t.Logf("%d states, the last after %d steps", len(seen), longest)
}

// Small worlds in all orders: the invariants of a moving map hold, nobody is stuck.
func TestEveryOrder(t *testing.T) {
	race.OneGoroutine(t)
	for _, c := range []struct {
		name       string
		partitions int
		queue      int
		giveUps    int
		script     []act
		clients    [][]*op
	}{
		{
			"a key moves", 2, 4, 0,
			[]act{assign("a", 1), switching(), assign("a", 0), switching()},
			[][]*op{{write("a"), read("a")}, {write("a")}},
		},
		{
			"pairs cross", 2, 4, 0,
			[]act{assign("a", 1), assign("b", 0), switching()},
			[][]*op{{write("a"), write("a", "b")}, {write("b", "a")}},
		},
		{
			"a range while keys come", 2, 4, 0,
			[]act{assign("b", 0), switching()},
			[][]*op{{write("a"), write("b")}, {scan("a"), scan("a")}},
		},
		{
			"absent keys of a pair", 2, 4, 0,
			[]act{sweeping()},
			[][]*op{{write("a"), write("b")}, {read("a", "b")}},
		},
		{
			"keys go and are swept", 2, 4, 0,
			[]act{sweeping(), assign("a", 1), switching()},
			[][]*op{{write("a"), remove("a"), write("a")}, {read("a")}},
		},
		{
			"short queues", 2, 1, 0,
			[]act{assign("a", 1), switching()},
			[][]*op{{write("a", "b")}, {write("b")}, {write("a")}},
		},
		{
			"given up", 2, 2, 1,
			[]act{assign("a", 1), switching()},
			[][]*op{{write("a"), write("a", "b")}, {read("a", "b")}},
		},
		{
			"three partitions", 3, 4, 0, nil,
			[][]*op{{write("a", "b"), write("b", "c")}, {write("c", "a")}},
		},
		{
			"given entries go and come", 2, 4, 0,
			[]act{inserting("a", 0), inserting("b", 1), assign("a", 1), switching(), removing("a"), inserting("a", 0)},
			[][]*op{{of(write("a")), of(write("a", "b"))}, {of(read("a")), of(write("b"))}},
		},
		{
			"given entries stand twice", 2, 2, 1,
			[]act{inserting("a", 0), inserting("b", 1), inserting("a", 1), sweeping()},
			[][]*op{{of(write("a", "a"))}, {of(read("a", "b", "a"))}, {of(write("b"))}},
		},
	} {
		for _, m := range []Mode{Callers, Manual} {
			t.Run(fmt.Sprintf("%s/%d", c.name, m), func(t *testing.T) {
				explore(t, func() *world {
					return newWorld(m, c.partitions, c.queue, c.giveUps, c.script, c.clients...)
				})
			})
		}
	}
}
