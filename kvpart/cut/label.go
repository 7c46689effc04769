package cut

import (
	"cmp"
	"math"
	"slices"
)

// hungarianTo is the most parts for which labels are matched exactly.
const hungarianTo = 128

// Relabel renames the k parts so that as few vertices as possible change their part of
// start (-1 for none), and returns how many do. With more than 128 parts it is greedy,
// the largest overlaps first, and may move more.
func Relabel(parts, start []int32, k int) int {
	name := matchLabels(parts, start, k)
	moved := 0
	for v, p := range parts {
		parts[v] = name[p]
		if start[v] >= 0 && start[v] != name[p] {
			moved++
		}
	}
	return moved
}

// overlap is the number of vertices in part now that were in part old.
type overlap struct {
	now, old int32
	count    int64
}

// matchLabels returns the name of each part.
func matchLabels(parts, start []int32, k int) []int32 {
	common := map[[2]int32]int64{}
	for v, p := range parts {
		if start[v] >= 0 {
			common[[2]int32{p, start[v]}]++
		}
	}
	if k <= hungarianTo {
		cost := make([][]int64, k)
		for p := range cost {
			cost[p] = make([]int64, k)
		}
		for at, n := range common {
			cost[at[0]][at[1]] = -n
		}
		return hungarian(cost)
	}
	all := make([]overlap, 0, len(common))
	for at, n := range common {
		all = append(all, overlap{at[0], at[1], n})
	}
	slices.SortFunc(all, func(a, b overlap) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.now, b.now), cmp.Compare(a.old, b.old))
	})
	name, taken := make([]int32, k), make([]bool, k)
	for p := range name {
		name[p] = -1
	}
	for _, o := range all {
		if name[o.now] < 0 && !taken[o.old] {
			name[o.now] = o.old
			taken[o.old] = true
		}
	}
	free := 0
	for p := range name {
		if name[p] >= 0 {
			continue
		}
		for taken[free] {
			free++
		}
		name[p] = int32(free)
		taken[free] = true
	}
	return name
}

// hungarian returns the column of each row such that the sum of cost is least (Kuhn and
// Munkres, with potentials: O(n^3)).
func hungarian(cost [][]int64) []int32 {
	n := len(cost)
	u, v := make([]int64, n+1), make([]int64, n+1)
	row, way := make([]int, n+1), make([]int, n+1) // by column, from 1
	least, used := make([]int64, n+1), make([]bool, n+1)
	for i := 1; i <= n; i++ {
		row[0] = i
		for j := range least {
			least[j], used[j] = math.MaxInt64, false
		}
		j0 := 0
		for row[j0] != 0 {
			used[j0] = true
			i0, j1, delta := row[j0], 0, int64(math.MaxInt64)
			for j := 1; j <= n; j++ {
				if used[j] {
					continue
				}
				if c := cost[i0-1][j-1] - u[i0] - v[j]; c < least[j] {
					least[j], way[j] = c, j0
				}
				if least[j] < delta {
					delta, j1 = least[j], j
				}
			}
			for j := 0; j <= n; j++ {
				if used[j] {
					u[row[j]] += delta
					v[j] -= delta
				} else {
					least[j] -= delta
				}
			}
			j0 = j1
		}
		for j0 != 0 {
			row[j0] = row[way[j0]]
			j0 = way[j0]
		}
	}
	col := make([]int32, n)
	for j := 1; j <= n; j++ {
		col[row[j]-1] = int32(j - 1)
	}
	return col
}
