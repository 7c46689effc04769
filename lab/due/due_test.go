package due_test

import (
	"slices"
	"sort"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/samya-db/samya/lab/due"
)

// TestQueue: things come out by their times, things of the same time as they went in, and
// nothing before it is due.
func TestQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q due.Queue[time.Duration, int]
		type thing struct {
			at time.Duration
			id int
		}
		var want []thing // as they should come out
		var now time.Duration
		for id := range rapid.IntRange(1, 60).Draw(t, "steps") {
			at := now + time.Duration(rapid.IntRange(0, 5).Draw(t, "at"))
			q.Push(at, id)
			i := sort.Search(len(want), func(i int) bool { return want[i].at > at })
			want = slices.Insert(want, i, thing{at, id})
			now += time.Duration(rapid.IntRange(0, 2).Draw(t, "passes"))
			for {
				next, some := q.Next()
				popped, ok := q.Pop(now)
				if some != (len(want) > 0) || ok && next != popped.At {
					t.Fatalf("at %d: %v is next, at %d; popped %+v", now, some, next, popped)
				}
				if ok != (len(want) > 0 && want[0].at <= now) {
					t.Fatalf("at %d: popped %v, want %v", now, ok, want)
				}
				if !ok {
					break
				}
				if got := (thing{popped.At, popped.What}); got != want[0] || popped.Number != uint64(popped.What+1) {
					t.Fatalf("popped %v, want %v", got, want[0])
				}
				want = want[1:]
			}
		}
	})
}
