package core

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestQueueModel holds the queue against a plain list.
func TestQueueModel(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		q, list := new(queue), []*waiting(nil)
		gone := func(w *waiting) { list = slices.DeleteFunc(list, func(x *waiting) bool { return x == w }) }
		most := 1 + r.IntN(200)
		first := func(pick func(w *waiting) bool) *waiting {
			if i := slices.IndexFunc(list, pick); i >= 0 {
				return list[i]
			}
			return nil
		}
		for range 3000 {
			switch k := r.IntN(10); {
			case k < 5 && len(list) < most:
				w := &waiting{needs: Tokens(1 + r.IntN(50)), until: Tick(r.IntN(1000))}
				q.push(w)
				list = append(list, w)
			case k < 8 && len(list) > 0:
				w := list[r.IntN(len(list))]
				q.remove(w)
				gone(w)
			case k == 8 && len(list) > 0:
				w := list[r.IntN(len(list))]
				w.until += Tick(r.IntN(100))
				q.fix(w)
			case k == 9 && r.IntN(20) == 0:
				needs, until := Tokens(r.IntN(50)), Tick(r.IntN(1000))
				q.hasten(until, needs, func(*waiting) bool { return false })
				for _, w := range list {
					if w.needs <= needs && w.until > until {
						t.Fatalf("seed %d: %d tokens wait until %d, at most %d", seed, w.needs, w.until, until)
					}
				}
			case k == 9 && r.IntN(20) == 0:
				odd := func(w *waiting) bool { return w.number%2 == 1 }
				for _, w := range q.take(odd) {
					if first(odd) != w {
						t.Fatalf("seed %d: taken out of order", seed)
					}
					gone(w)
				}
			}
			left, now := Tokens(r.IntN(60)), Tick(r.IntN(1100))
			var asked Tokens
			for _, w := range list {
				asked += w.needs
			}
			switch {
			case q.fits(left) != first(func(w *waiting) bool { return w.needs <= left }):
				t.Fatalf("seed %d: the first that needs at most %d is another", seed, left)
			case q.due(now) != first(func(w *waiting) bool { return w.until <= now }):
				t.Fatalf("seed %d: the first due at %d is another", seed, now)
			case q.len() != len(list) || q.asked() != asked || !slices.Equal(q.items(), list):
				t.Fatalf("seed %d: %d of %d tokens, want %d of %d", seed, q.len(), q.asked(), len(list), asked)
			}
		}
	}
}
