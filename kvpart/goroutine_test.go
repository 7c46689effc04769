package kvpart

import (
	"sync"
	"testing"
)

// TestGoroutine: goroutines that live at the same time have different names, and keep
// them while their stacks grow and they change threads.
func TestGoroutine(t *testing.T) {
	for what, name := range map[string]func() uintptr{"address": goroutine, "number": numbered} {
		const n = 100
		names := make(chan uintptr, n)
		var all, started sync.WaitGroup
		started.Add(n)
		for range n {
			all.Go(func() {
				before := name()
				started.Done()
				started.Wait()
				if after := deeper(200, name); before == 0 || after != before {
					t.Errorf("%s: %d, and then %d", what, before, after)
				}
				names <- before
			})
		}
		all.Wait()
		close(names)
		seen := make(map[uintptr]bool)
		for id := range names {
			if seen[id] {
				t.Errorf("%s: two goroutines are %d", what, id)
			}
			seen[id] = true
		}
	}
}

func deeper(n int, name func() uintptr) uintptr {
	var room [512]byte
	if n == 0 {
		return name()
	}
	id := deeper(n-1, name)
	room[n%len(room)]++
	return id + uintptr(room[n%len(room)]) - 1
}

func BenchmarkGoroutine(b *testing.B) {
	for b.Loop() {
		goroutine()
	}
}
