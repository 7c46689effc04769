// Package cut partitions a weighted graph into k parts of about equal weight
// such that the edges between parts weigh little. It is multilevel: the graph is
// coarsened by matchings, the coarsest one is partitioned, and that is refined
// while it is projected back (Karypis and Kumar, SIAM J. Sci. Comput. 20(1),
// 1998, and J. Parallel Distrib. Comput. 48(1), 1998). It refuses to know what a
// vertex stands for, to read a clock, and to draw randomness but from the seed:
// the same graph, options and seed give the same parts.
package cut

import (
	"errors"
)

// The errors of this package; they are wrapped with what was wrong and where.
var (
	// ErrGraph says that a graph is malformed: not symmetric, a negative weight, a
	// neighbour out of range.
	ErrGraph = errors.New("malformed graph")
	// ErrOptions says that an option is out of its range.
	ErrOptions = errors.New("bad option")
)

// Graph is undirected and weighted, in compressed sparse rows: the neighbours of
// vertex v are Neighbors[Offsets[v]:Offsets[v+1]]. Each edge stands in the rows
// of both its ends with the same weight; a vertex is not its own neighbour.
type Graph struct {
	// Offsets has one more element than there are vertices.
	Offsets []int32
	// Neighbors and EdgeWeights are of the same length; weights are positive.
	Neighbors   []int32
	EdgeWeights []int32
	// Dims is how many weights a vertex has: 1, or 2 (processor time and I/O).
	Dims int
	// VertexWeights has Dims weights a vertex, none negative, those of one vertex
	// side by side.
	VertexWeights []int64
}

// Options says what is asked for.
type Options struct {
	// Parts is into how many parts, from 1 to MaxParts.
	Parts int
	// Imbalance is how much the heaviest part may weigh above the mean, as a share
	// of the mean, in each dimension: .03 if 0.
	Imbalance float64
	// Loose is how much it may weigh above the mean where the graph falls apart into
	// components that could each be kept whole, but not balanced within Imbalance,
	// if that cuts half as much at most: .1 if 0, and no less than Imbalance. Between
	// the two, .05 is tried first, which need not save as much.
	Loose float64
	// Seed decides what is left to chance.
	Seed uint64
	// Start is the part of each vertex at present, or -1 where it has none; nil for
	// a cold start. A warm start keeps vertices where they are unless moving them
	// pays.
	Start []int32
	// Yield is called about every hundred microseconds of work, if not nil, so that
	// others get the processor.
	Yield func()
}

// MaxParts bounds Options.Parts.
const MaxParts = 1 << 12

// MaxImbalance bounds Options.Imbalance.
const MaxImbalance = 1e3

// Result is a partition.
type Result struct {
	// Parts is the part of each vertex.
	Parts []int32
	// Cut is the weight of the edges between parts, each counted once.
	Cut int64
	// Balance is the weight of the heaviest part divided by the mean, by dimension;
	// 1 where all weigh nothing.
	Balance []float64
	// Hubs are the vertices that alone outweigh a part, Imbalance included: no
	// placement balances them. They are placed all the same.
	Hubs []int32
	// Moved is how many vertices are in another part than Options.Start says, after
	// the labels of a cold start were matched.
	Moved int
}
