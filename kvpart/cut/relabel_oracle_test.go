package cut_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/samya-db/samya/kvpart/cut"
)

// moved counts the vertices that were in a part and are in another.
func moved(before, after []int32) int {
	n := 0
	for v := range after {
		if before[v] >= 0 && before[v] != after[v] {
			n++
		}
	}
	return n
}

// TestRelabelAgainstAllPermutations holds the labels against all permutations of them.
func TestRelabelAgainstAllPermutations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.IntRange(1, 5).Draw(t, "k")
		n := rapid.IntRange(1, 30).Draw(t, "vertices")
		before := rapid.SliceOfN(rapid.Int32Range(-1, int32(k-1)), n, n).Draw(t, "before")
		after := rapid.SliceOfN(rapid.Int32Range(0, int32(k-1)), n, n).Draw(t, "after")
		got := slices.Clone(after)
		told := cut.Relabel(got, before, k)
		// The same vertices are together as were.
		labels := map[int32]int32{}
		for v, p := range after {
			if label, seen := labels[p]; seen && label != got[v] {
				t.Fatalf("part %d has two labels", p)
			}
			labels[p] = got[v]
		}
		used := map[int32]bool{}
		for _, label := range labels {
			if used[label] || label < 0 || int(label) >= k {
				t.Fatalf("label %d of two parts, or out of range: %v", label, labels)
			}
			used[label] = true
		}
		best := n
		permute(k, func(p []int32) {
			other := make([]int32, n)
			for v := range after {
				other[v] = p[after[v]]
			}
			best = min(best, moved(before, other))
		})
		if m := moved(before, got); m != best || told != m {
			t.Fatalf("%d vertices move, said to be %d, %d need to", m, told, best)
		}
	})
}

// permute calls f with each permutation of the numbers below n.
func permute(n int, f func([]int32)) {
	p := make([]int32, n)
	for i := range p {
		p[i] = int32(i)
	}
	var from func(int)
	from = func(i int) {
		if i == n {
			f(p)
			return
		}
		for j := i; j < n; j++ {
			p[i], p[j] = p[j], p[i]
			from(i + 1)
			p[i], p[j] = p[j], p[i]
		}
	}
	from(0)
}
