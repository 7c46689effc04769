package spans

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Span is a span as it came.
type Span struct {
	// Trace, ID and Parent are ids in hexadecimal. Parent is empty at the root.
	Trace, ID, Parent string
	Name              string
	// Process is the name of the service and its instance, Resource its description.
	Process  string
	Resource map[string]string
	// Began and Ended are in nanoseconds since the Unix epoch.
	Began, Ended uint64
	Attributes   map[string]string
}

// Node is a span with its children, in the order of their begins.
type Node struct {
	Span
	Children []*Node
}

// Trees returns the trees of a trace: a single tree if no span is missing.
func Trees(spans []Span, trace string) []*Node {
	nodes := make(map[string]*Node)
	var all []*Node
	for _, s := range spans {
		if s.Trace == trace {
			n := &Node{Span: s}
			nodes[s.ID] = n
			all = append(all, n)
		}
	}
	slices.SortStableFunc(all, func(a, b *Node) int { return cmp.Compare(a.Began, b.Began) })
	var roots []*Node
	for _, n := range all {
		if above := nodes[n.Parent]; above != nil {
			above.Children = append(above.Children, n)
		} else {
			roots = append(roots, n)
		}
	}
	return roots
}

// Traces returns the ids of the traces of some spans, in the order in which they came.
func Traces(spans []Span) []string {
	var all []string
	seen := make(map[string]bool)
	for _, s := range spans {
		if !seen[s.Trace] {
			seen[s.Trace] = true
			all = append(all, s.Trace)
		}
	}
	return all
}

// Each calls f with each node of a tree and the node above, nil for the root.
func (n *Node) Each(f func(n, above *Node)) { n.each(nil, f) }

func (n *Node) each(above *Node, f func(n, above *Node)) {
	f(n, above)
	for _, c := range n.Children {
		c.each(n, f)
	}
}

// String shows a tree: a line for each span with its begin after the root's, its length, its
// process and samya's attributes.
func (n *Node) String() string {
	var b strings.Builder
	n.write(&b, n.Began, "", "")
	return b.String()
}

func (n *Node) write(b *strings.Builder, zero uint64, first, rest string) {
	ms := func(ns uint64) float64 { return float64(int64(ns)) / float64(time.Millisecond) }
	var attrs []string
	for _, key := range slices.Sorted(maps.Keys(n.Attributes)) {
		if name, ok := strings.CutPrefix(key, "samya."); ok && name != "site" {
			attrs = append(attrs, name+"="+n.Attributes[key])
		}
	}
	name := first + n.Name
	fmt.Fprintf(b, "%-44s %-20s %7.1f ms +%6.1f ms  %s\n", name, n.Process, ms(n.Began-zero), ms(n.Ended-n.Began), strings.Join(attrs, " "))
	for i, c := range n.Children {
		if i == len(n.Children)-1 {
			c.write(b, zero, rest+"└ ", rest+"  ")
		} else {
			c.write(b, zero, rest+"├ ", rest+"│ ")
		}
	}
}
