package main

import (
	"maps"
	"math/bits"
	"slices"
)

// graph is a directed graph with weighted arrows.
type graph map[string]map[string]int

// add adds weight to the arrow from a to b. It ignores an arrow from a node to itself.
func (g graph) add(a, b string, weight int) {
	g.node(a)
	g.node(b)
	if a != b {
		g[a][b] += weight
	}
}

func (g graph) node(a string) {
	if g[a] == nil {
		g[a] = make(map[string]int)
	}
}

// circles returns the sets of nodes that reach each other, of two nodes or more, the
// biggest first (Tarjan's algorithm).
func (g graph) circles() [][]string {
	index, low := make(map[string]int), make(map[string]int)
	var stack []string
	on := make(map[string]bool)
	var all [][]string
	var visit func(a string)
	visit = func(a string) {
		index[a] = len(index) + 1
		low[a] = index[a]
		stack = append(stack, a)
		on[a] = true
		for _, b := range slices.Sorted(maps.Keys(g[a])) {
			if index[b] == 0 {
				visit(b)
				low[a] = min(low[a], low[b])
			} else if on[b] {
				low[a] = min(low[a], index[b])
			}
		}
		if low[a] != index[a] {
			return
		}
		at := slices.Index(stack, a)
		circle := slices.Sorted(slices.Values(stack[at:]))
		stack = stack[:at]
		for _, b := range circle {
			on[b] = false
		}
		if len(circle) > 1 {
			all = append(all, circle)
		}
	}
	for _, a := range slices.Sorted(maps.Keys(g)) {
		if index[a] == 0 {
			visit(a)
		}
	}
	slices.SortStableFunc(all, func(a, b []string) int { return len(b) - len(a) })
	return all
}

// maxOrdered is the most nodes that order takes, since it looks at every set of nodes.
const maxOrdered = 20

// order returns the order of nodes with the least weight of arrows against it, and the
// weight. It panics beyond maxOrdered nodes.
func (g graph) order() (order []string, against int) {
	nodes := slices.Sorted(maps.Keys(g))
	if len(nodes) > maxOrdered {
		panic("too many nodes to order")
	}
	// best[set] is the least weight with the nodes of the set at the head, and last[set]
	// the last of these nodes.
	best := make([]int, 1<<len(nodes))
	last := make([]int, 1<<len(nodes))
	for set := 1; set < len(best); set++ {
		best[set] = -1
		for rest := uint(set); rest != 0; rest &= rest - 1 {
			i := bits.TrailingZeros(rest)
			weight := best[set&^(1<<i)]
			for j, b := range nodes {
				if set&(1<<j) != 0 {
					weight += g[nodes[i]][b] // b stands before i
				}
			}
			if best[set] < 0 || weight < best[set] {
				best[set], last[set] = weight, i
			}
		}
	}
	for set := len(best) - 1; set > 0; set &^= 1 << last[set] {
		order = append(order, nodes[last[set]])
	}
	slices.Reverse(order)
	return order, best[len(best)-1]
}
