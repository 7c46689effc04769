package kvoracle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// edge says that a request took effect before another, and why.
type edge struct {
	to  int32
	key int32 // -1 for time
	why reason
}

type reason uint8

const (
	overwritten reason = iota // a later version was written
	seen                      // its write was seen
	replaced                  // its read was overwritten
	handed                    // handed over before, on the same key
	returned                  // returned before the call
)

func (r reason) String() string {
	return [...]string{"is overwritten by", "is seen by", "saw what is overwritten by", "was handed over before", "returned before"}[r]
}

// graph has a node for each request, and a node for each return. The nodes of
// returns lead to all requests called later.
type graph struct {
	h     *history
	edges [][]edge
	node  map[*op]int32
}

// acyclic fails unless some order of the requests explains the history. In the
// order each request sees the writes before it, and follows all requests that
// returned before its call.
func (h *history) acyclic() *Violation {
	g := &graph{h: h, node: make(map[*op]int32, len(h.ops))}
	for i, o := range h.ops {
		g.node[o] = int32(i)
	}
	g.edges = make([][]edge, 2*len(h.ops))
	g.addTime()
	if v := g.addKeys(); v != nil {
		return v
	}
	for _, edges := range g.edges {
		h.l.Edges += int64(len(edges))
	}
	cycle := g.cycle()
	if cycle == nil {
		return nil
	}
	return g.report(cycle)
}

func (g *graph) add(from, to *op, key int, why reason) {
	if from == nil || to == nil || from == to {
		return
	}
	i, ok := g.node[from]
	j, also := g.node[to]
	if ok && also {
		g.edges[i] = append(g.edges[i], edge{to: j, key: int32(key), why: why})
	}
}

// addTime adds the order of returns and calls: a chain of the returns. Each request
// enters the chain at its return; the chain leads to a request at its call.
func (g *graph) addTime() {
	n := int32(len(g.h.ops))
	byReturn := make([]int32, 0, n)
	for i := range n {
		if g.h.ops[i].ret != never {
			byReturn = append(byReturn, i)
		}
	}
	slices.SortFunc(byReturn, func(a, b int32) int { return cmp.Compare(g.h.ops[a].ret, g.h.ops[b].ret) })
	at := func(i int) int32 { return n + int32(i) }
	for i, o := range byReturn {
		g.edges[o] = append(g.edges[o], edge{to: at(i), key: -1, why: returned})
		if i > 0 {
			g.edges[at(i-1)] = append(g.edges[at(i-1)], edge{to: at(i), key: -1, why: returned})
		}
	}
	next := 0
	for i := range n { // by call
		for next < len(byReturn) && g.h.ops[byReturn[next]].ret < g.h.ops[i].call {
			next++
		}
		if next > 0 {
			g.edges[at(next-1)] = append(g.edges[at(next-1)], edge{to: i, key: -1, why: returned})
		}
	}
	for _, o := range g.h.ops {
		for _, before := range o.before {
			key := -1
			for _, a := range append(before.writes, before.reads...) {
				key = a.key
			}
			g.add(before, o, key, handed)
		}
	}
}

// addKeys adds the order of versions.
func (g *graph) addKeys() *Violation {
	type held struct {
		key int
		id  uint64
	}
	position := make(map[held]int)
	for k, versions := range g.h.versions {
		for i := 1; i < len(versions); i++ {
			g.add(versions[i-1].by, versions[i].by, k, overwritten)
			position[held{k, versions[i].id}] = i
		}
	}
	for _, o := range g.h.ops {
		for _, r := range o.reads {
			if r.id != absent {
				g.add(g.h.writers[r.id], o, r.key, seen)
			}
			if g.h.l.keys[r.key].class == shared {
				continue
			}
			versions := g.h.versions[r.key]
			last := position[held{r.key, r.id}] // 0 for the initial value
			if r.id == absent {
				first, until, ok := absences(versions, o)
				if !ok {
					return violated(o.breaks(), "%s: %s held a value all the while: %s", g.h.l.text(o), g.h.l.keys[r.key].name, g.around(versions, o))
				}
				g.add(versions[first].by, o, r.key, seen)
				last = until
			}
			if last+1 < len(versions) {
				g.add(o, versions[last+1].by, r.key, replaced)
			}
		}
	}
	return nil
}

// breaks returns the invariant that a request breaks with an impossible read.
func (o *op) breaks() Invariant {
	if len(o.reads)+len(o.writes) > 1 {
		return Atomic
	}
	return Order
}

// absences returns the first and the last version at which a request may have seen
// no value.
func absences(versions []version, o *op) (first, last int, ok bool) {
	first = -1
	for i, v := range versions {
		if v.by == o {
			continue
		}
		if v.by != nil && v.by.call > o.ret {
			break
		}
		over := i+1 < len(versions) && versions[i+1].by.ret < o.call
		if v.id == absent && !over {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	return first, last, first >= 0
}

// around renders the versions that a request may have seen.
func (g *graph) around(versions []version, o *op) string {
	var b strings.Builder
	for i, v := range versions {
		if i+1 < len(versions) && versions[i+1].by.ret < o.call || v.by != nil && v.by.call > o.ret {
			continue
		}
		if v.by == nil {
			fmt.Fprintf(&b, "\n  %s from the start", idText(v.id))
		} else {
			fmt.Fprintf(&b, "\n  %s", g.h.l.text(v.by))
		}
	}
	return b.String()
}

// report describes a cycle and names the broken invariant.
func (g *graph) report(cycle []step) *Violation {
	invariant := Order
	keys := make(map[int32]bool)
	var b strings.Builder
	n := int32(len(g.h.ops))
	for _, s := range cycle {
		if s.edge.key >= 0 {
			keys[s.edge.key] = true
		}
		if s.from < n {
			fmt.Fprintf(&b, "\n  %s", g.h.l.text(g.h.ops[s.from]))
			if s.edge.key >= 0 {
				fmt.Fprintf(&b, "\n    %v, by %s,", s.edge.why, g.h.l.keys[s.edge.key].name)
			} else {
				fmt.Fprintf(&b, "\n    %v", s.edge.why)
			}
		}
	}
	if len(keys) > 1 {
		invariant = Atomic
	}
	return violated(invariant, "no order of these requests explains what they saw:%s\n  the first", b.String())
}

// step is an edge of a cycle.
type step struct {
	from int32
	edge edge
}

// cycle returns a short cycle, or nil for none.
func (g *graph) cycle() []step {
	in := make([]int32, len(g.edges))
	for _, edges := range g.edges {
		for _, e := range edges {
			in[e.to]++
		}
	}
	var free []int32
	for i, n := range in {
		if n == 0 {
			free = append(free, int32(i))
		}
	}
	left := len(g.edges)
	for len(free) > 0 {
		i := free[len(free)-1]
		free = free[:len(free)-1]
		left--
		for _, e := range g.edges[i] {
			if in[e.to]--; in[e.to] == 0 {
				free = append(free, e.to)
			}
		}
	}
	if left == 0 {
		return nil
	}
	var best []step
	const tries = 200
	tried := 0
	for i, n := range in {
		if n == 0 || i >= len(g.h.ops) {
			continue
		}
		if c := g.through(int32(i), in); c != nil && (best == nil || len(c) < len(best)) {
			best = c
		}
		if tried++; tried == tries && best != nil {
			break
		}
	}
	return best
}

// through returns a shortest cycle through a node, or nil for none. Nodes with in 0
// are on no cycle.
func (g *graph) through(start int32, in []int32) []step {
	reached := make(map[int32]step)
	queue := []int32{start}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for _, e := range g.edges[at] {
			if in[e.to] == 0 {
				continue
			}
			if _, ok := reached[e.to]; ok {
				continue
			}
			reached[e.to] = step{from: at, edge: e}
			if e.to == start {
				var cycle []step
				for s := reached[start]; ; s = reached[s.from] {
					cycle = append(cycle, s)
					if s.from == start {
						slices.Reverse(cycle)
						return cycle
					}
				}
			}
			queue = append(queue, e.to)
		}
	}
	return nil
}
