// Package cut partitions a weighted graph into k parts of about equal weight such that
// the edges between parts weigh little. The method is multilevel. It coarsens the graph
// by clusters or matchings and partitions the coarsest graph. It refines the partition
// while projecting it back (Karypis and Kumar, SIAM J. Sci. Comput. 20(1), 1998, and J.
// Parallel Distrib. Comput. 48(1), 1998). The package does not know the meaning of a
// vertex, reads no clock, and draws randomness only from the seed. The same graph,
// options and seed give the same parts.
package cut

import (
	"errors"
)

// The errors of this package. They are wrapped with the fault and its place.
var (
	// errGraph says that a graph is malformed: not symmetric, a negative weight, a
	// neighbour out of range.
	errGraph = errors.New("malformed graph")
	// ErrOptions says that an option is out of its range.
	ErrOptions = errors.New("bad option")
)

// Graph is undirected and weighted, in compressed sparse rows: the neighbours of vertex v
// are Neighbors[Offsets[v]:Offsets[v+1]]. Each edge stands in the rows of both its ends
// with the same weight. A vertex is not its own neighbour.
type Graph struct {
	// Offsets has an element more than there are vertices.
	Offsets []int32
	// Neighbors and EdgeWeights have the same length; weights are positive.
	Neighbors   []int32
	EdgeWeights []int32
	// Dims is the number of weights of a vertex: 1, or 2 (processor time and I/O).
	Dims int
	// VertexWeights has Dims weights a vertex, side by side and not negative.
	VertexWeights []int64
}

// Options configures a partition.
type Options struct {
	// Parts is the number of parts, from 1 to MaxParts.
	Parts int
	// Imbalance bounds the weight of the heaviest part above the mean, as a share of the
	// mean, in each dimension: .03 if 0, at most 1000.
	Imbalance float64
	// Stretch replaces Imbalance where that cuts much less: a third less, and .5 % of all
	// edges. It is .05 if 0, at most 1000, and off if below Imbalance. It does not apply to
	// graphs of more than 1<<18 vertices and neighbours, which are cut only once.
	Stretch float64
	// Loose replaces Imbalance for graphs of components that each fit a part whole, but
	// cannot be balanced within Imbalance: .1 if 0, at most 1000, and off if below
	// Imbalance. It applies only if it at most halves the cut. Stretch, if below Loose, is
	// tried first, and saving .2 % of all edges is enough.
	Loose float64
	// Seed seeds all random choices.
	Seed uint64
	// Start is the present part of each vertex, or -1 for a vertex without a part; nil
	// for a cold start. A warm start keeps vertices where they are unless moving them
	// pays.
	Start []int32
	// Yield, if not nil, is called after about every hundred microseconds of work, so
	// that others get the processor.
	Yield func()
}

// MaxParts bounds Options.Parts.
const MaxParts = 1 << 12

// maxImbalance bounds Options.Imbalance, Options.Stretch and Options.Loose.
const maxImbalance = 1e3

// Result is a partition.
type Result struct {
	// Parts is the part of each vertex.
	Parts []int32
	// Cut is the weight of the edges between parts, each counted once.
	Cut int64
	// Balance is the weight of the heaviest part divided by the mean, by dimension; 1 if
	// all vertices weigh nothing.
	Balance []float64
	// Hubs are the vertices that alone outweigh a part, Imbalance included: no placement
	// balances them. They are placed all the same.
	Hubs []int32
	// Moved is the number of vertices in another part than in Options.Start, after the
	// labels of a cold start were matched.
	Moved int
}
