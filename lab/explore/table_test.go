package explore

import (
	"testing"

	"pgregory.net/rapid"
)

func TestTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var got table
		want := make(map[uint64]uint32)
		for _, key := range rapid.SliceOf(rapid.Uint64Range(1, 5000)).Draw(t, "keys") {
			v, ok := got.get(key)
			if w, known := want[key]; ok != known || v != w {
				t.Fatalf("%d is %d, %v, want %d, %v", key, v, ok, w, known)
			}
			if !ok {
				want[key] = uint32(len(want))
				got.put(key, want[key])
			}
		}
	})
}

func TestQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		open := make(map[uint32]int)
		var next uint32
		for _, rank := range rapid.SliceOf(rapid.IntRange(-1, 9)).Draw(t, "ranks") {
			if rank >= 0 {
				q.push(rank, next)
				open[next] = rank
				next++
				continue
			}
			i, ok := q.pop()
			if ok != (len(open) > 0) {
				t.Fatalf("pop says %v of %d", ok, len(open))
			}
			for other, rank := range open {
				if rank < open[i] || rank == open[i] && other < i {
					t.Fatalf("%d of rank %d comes before %d of rank %d", i, open[i], other, rank)
				}
			}
			delete(open, i)
		}
	})
}
