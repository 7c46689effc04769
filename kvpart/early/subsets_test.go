package early_test

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/samya-db/samya/kvpart/early"
)

// TestSubsets: two requests conflict if they share a shard and one writes, and then share
// a thread. Requests without a common shard share none.
func TestSubsets(t *testing.T) {
	for k := 1; k <= early.MaxSubsets; k++ {
		n := 1 + k%3
		c, m, err := early.Subsets(k, n)
		if err != nil {
			t.Fatal(err)
		}
		shards := func(set int) (s []int32) {
			for i := range int32(k) {
				if set&(1<<i) != 0 {
					s = append(s, i)
				}
			}
			return s
		}
		for a := 1; a < 1<<k; a++ {
			for b := 1; b < 1<<k; b++ {
				for _, writes := range [][2]bool{{false, false}, {false, true}, {true, true}} {
					x, y := early.SubsetClass(shards(a), writes[0]), early.SubsetClass(shards(b), writes[1])
					if want := a&b != 0 && (writes[0] || writes[1]); c.Conflicts(x, y) != want {
						t.Fatalf("%d shards: sets %b and %b, writes %v: conflict %v", k, a, b, writes, !want)
					}
					common := false
					for _, thread := range m.Of[x].Threads {
						for _, other := range m.Of[y].Threads {
							common = common || thread == other
						}
					}
					if a&b == 0 && common {
						t.Fatalf("%d shards: sets %b and %b share a thread", k, a, b)
					}
				}
			}
		}
	}
	for _, k := range []int{0, early.MaxSubsets + 1} {
		if _, _, err := early.Subsets(k, 1); !errors.Is(err, early.ErrMapping) {
			t.Errorf("%d shards: %v", k, err)
		}
	}
}

type call func()

func (c call) Run(int) { c() }

// TestJobEndsItsGoroutine: the thread goes on with the next request, in all modes.
func TestJobEndsItsGoroutine(t *testing.T) {
	for _, mode := range early.Modes() {
		classes, mapping, err := early.Shards(2, 1)
		if err != nil {
			t.Fatal(err)
		}
		s, err := early.New(early.Options{Mode: mode, Classes: classes, Mapping: mapping})
		if err != nil {
			t.Fatal(err)
		}
		ran := make(chan int, 12)
		for class := range 6 {
			s.Submit(class, call(func() { ran <- class; runtime.Goexit() }))
			s.Submit(class, call(func() { ran <- class }))
		}
		patience := time.NewTimer(20 * time.Second)
		for n := range 12 {
			select {
			case <-ran:
			case <-patience.C:
				t.Fatalf("%v: %d of 12 requests ran", mode, n)
			}
		}
		patience.Stop()
		s.Close()
		if st := s.Stats(); st.Ran != 12 {
			t.Errorf("%v: %d requests counted", mode, st.Ran)
		}
	}
}
