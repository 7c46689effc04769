package kvoracle

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestRanges compares ranges of keys with a table of all keys.
func TestRanges(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	r := newRanges(rng, 5)
	const keys = 40
	key := func(i int) string { return fmt.Sprintf("k%02d", i) }
	var want [keys]int
	for i := range keys {
		want[i] = r.at(key(i))
	}
	for range 2000 {
		from, to, partition := rng.IntN(keys), rng.IntN(keys), rng.IntN(5)
		from, to = min(from, to), max(from, to)
		r.move(key(from), key(to), partition)
		for i := from; i < to; i++ {
			want[i] = partition
		}
		for i := range keys {
			if got := r.at(key(i)); got != want[i] {
				t.Fatalf("%s is on %d, want %d", key(i), got, want[i])
			}
		}
		if len(r.starts) != len(r.all) || len(r.starts) > keys+1 {
			t.Fatalf("%d starts of %d ranges", len(r.starts), len(r.all))
		}
	}
}
