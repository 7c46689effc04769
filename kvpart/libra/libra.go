// Package libra balances load of two dimensions, processor and disk, over nodes. It
// decides the moves of units of load between nodes, and the splits of units before
// (Zhang et al., "Mitigating Dual Load Imbalance via Dynamic Cooperative Scheduling in
// Distributed Key-Value Stores"). It is a pure step: loads in, a decision out. It does
// not measure, move nor split anything, and does not know the nature of a unit: a range of
// keys, a group of keys, an entity. Nodes are equal; a node of twice the power is refused.
//
// # Words
//
// The load of a node is the sum of the loads of its units. All bounds are on relative
// loads: a load divided by the mean load of all nodes in the same dimension (paper,
// equations 1 and 2), so 1 is the mean. The excess of a node is the larger of its two
// relative loads, less 1 (equation 3); the excess of a plan, the paper's Δ, is the largest
// of all nodes (equation 4). Excess up to the tolerance λ is balance.
package libra

import (
	"cmp"
	"errors"
	"fmt"
	"math"
)

// ErrInput says that an option or a load is out of its range; it is wrapped with the field
// and its bound.
var ErrInput = errors.New("bad input")

// Dimension is a dimension of load.
type Dimension uint8

// The dimensions.
const (
	CPU Dimension = iota
	Disk
	dimensions = 2
)

// Dimensions returns both dimensions.
func Dimensions() []Dimension { return []Dimension{CPU, Disk} }

func (d Dimension) String() string { return [...]string{"cpu", "disk"}[d] }

// other returns the other dimension.
func (d Dimension) other() Dimension { return 1 - d }

// Load is a load by dimension, in any unit, such as nanoseconds a second and bytes a
// second. It is finite and not below 0.
type Load [dimensions]float64

// plus returns l + sign·by.
func (l Load) plus(by Load, sign float64) Load {
	return Load{l[CPU] + sign*by[CPU], l[Disk] + sign*by[Disk]}
}

// most returns the larger of both dimensions.
func (l Load) most() float64 { return max(l[CPU], l[Disk]) }

// critical returns the dimension with the larger load, Disk if they are equal (paper,
// section III-B).
func (l Load) critical() Dimension {
	if l[CPU] > l[Disk] {
		return CPU
	}
	return Disk
}

// Unit is a load that moves as a whole, or is split.
type Unit struct {
	Node int // where it is, from 0
	Load Load
	// Barred are nodes that must not get the unit, such as nodes with a replica of it.
	Barred []int
	// Whole says that the unit cannot be split.
	Whole bool
}

// Kind is the kind of an action.
type Kind uint8

// The kinds of actions. Done, Wait and Stuck end a round.
const (
	// Migrate moves a unit to another node.
	Migrate Kind = iota
	// Split cuts a unit into parts. The loads of its parts are unknown until they are
	// measured, so the round does not move them. A unit that turns out to have a single key
	// should be Whole in the next round, else the next round orders the split again.
	Split
	// Done says that the excess is within the tolerance once all decisions are carried out;
	// with a rule for comparison, the excess in the dimensions that the rule looks at.
	Done
	// Wait says that the rest depends on the parts of ordered splits, or on a bound on the
	// moves of a round.
	Wait
	// Stuck says that nothing more helps in this round: no move is allowed, and no unit can
	// be split. If the round moved units a next round may move them again.
	Stuck
)

func (k Kind) String() string { return [...]string{"migrate", "split", "done", "wait", "stuck"}[k] }

// Action is a decision of a round.
type Action struct {
	Kind Kind
	Unit int // index of the unit, of Migrate and Split
	// From and To are the nodes of a Migrate.
	From, To int
	// Dimension is the critical dimension of a Migrate, and the heavier dimension of a Split's
	// unit, by which to split it.
	Dimension Dimension
	// Swap marks two Migrates in a row that swap units of two nodes. Until the
	// second, the first may raise the excess, by at most the load of its unit.
	Swap bool
	// Share is the share of the load of a Split's unit that each of its Parts parts should
	// have, of the whole unit; the last part has the rest (paper, section IV-B).
	Share float64
	Parts int
}

// Rule is a way to balance. All rules but Cooperative are for comparison (paper, section
// II-C).
type Rule uint8

// The rules.
const (
	// Cooperative looks at both dimensions at once: the paper's contribution.
	Cooperative Rule = iota
	// OnlyCPU and OnlyDisk balance a single dimension.
	OnlyCPU
	OnlyDisk
	// Isolated runs OnlyCPU and OnlyDisk in turns, neither looking at the other.
	Isolated
	// Weighted balances the weighted sum of both dimensions, as if it were a single load.
	Weighted
)

func (r Rule) String() string {
	return [...]string{"libra", "1d-cpu", "1d-disk", "2d-iso", "2d-wtd"}[r]
}

// The defaults of options that are 0, and a bound.
const (
	DefaultTolerance = .05
	defaultBenefit   = 1. / 500
	defaultWeight    = .5
	leastTolerance   = 1e-6
)

// Options says how to balance. The zero value is the product's way.
type Options struct {
	Rule Rule
	// Tolerance is λ, from 1e-6, so far above rounding, and below 1: DefaultTolerance if 0.
	// Excess up to λ is balance, and units above λ/2 may be split.
	Tolerance float64
	// Benefit is the relative load above which a unit is worth a move. If 0 it is the paper's
	// 1/500, or a quarter of a mean unit if that is less: 1/500 of a node is more than nearly
	// all of 10,000 units have.
	Benefit float64
	// Weight is the weight of the processor in Weighted, the disk's is 1 - Weight: .5 if
	// nil, as 0 is a weight.
	Weight *float64
	// Eager splits a unit as soon as its node finds no lighter unit to move. Otherwise
	// splits wait until the moves of a node are known (paper, section IV-C).
	Eager bool
	// Printed applies the conditions as the paper prints them, to reproduce it: only the
	// critical dimension counts at the destination, which is the node with the least load
	// there, a source may fall below the mean by any amount, and no units are swapped.
	Printed bool
	// Moves bounds the moves of a round; 0 means no bound but the number of units.
	Moves int
	// Affinity, if not nil, returns how much a unit belongs to a node, such as the weight of
	// its edges to the node's units. Balance comes first: of the allowed moves the plan
	// takes the move that loses least affinity for the load it takes off the source. The
	// answers must be numbers, and stay the same within a round.
	Affinity func(unit, node int) float64
}

// check sets defaults. It fails with ErrInput if a field is out of its range.
func (o *Options) check(nodes, units int) error {
	o.Tolerance = cmp.Or(o.Tolerance, DefaultTolerance)
	if o.Benefit == 0 {
		o.Benefit = min(defaultBenefit, float64(nodes)/float64(4*max(units, 1)))
	}
	if o.Weight == nil {
		w := defaultWeight
		o.Weight = &w
	}
	switch {
	case o.Rule > Weighted:
		return fmt.Errorf("%w: rule %d, want %d at most", ErrInput, o.Rule, Weighted)
	case !(o.Tolerance >= leastTolerance && o.Tolerance < 1):
		return fmt.Errorf("%w: tolerance of %v, want %v or more and below 1", ErrInput, o.Tolerance, leastTolerance)
	case !(o.Benefit > 0 && o.Benefit < 1):
		return fmt.Errorf("%w: benefit of %v, want above 0 and below 1", ErrInput, o.Benefit)
	case !(*o.Weight >= 0 && *o.Weight <= 1):
		return fmt.Errorf("%w: weight of %v, want 0 to 1", ErrInput, *o.Weight)
	case o.Moves < 0:
		return fmt.Errorf("%w: %d moves, want 0 or more", ErrInput, o.Moves)
	}
	return nil
}

// check fails with ErrInput if a field of the unit is out of its range.
func (u *Unit) check(i, nodes int) error {
	if u.Node < 0 || u.Node >= nodes {
		return fmt.Errorf("%w: unit %d is on node %d, want 0 to %d", ErrInput, i, u.Node, nodes-1)
	}
	for _, d := range Dimensions() {
		if l := u.Load[d]; !(l >= 0) || math.IsInf(l, 0) {
			return fmt.Errorf("%w: %s load of unit %d is %v, want a number from 0", ErrInput, d, i, l)
		}
	}
	for _, n := range u.Barred {
		if n < 0 || n >= nodes {
			return fmt.Errorf("%w: unit %d is barred from node %d, want 0 to %d", ErrInput, i, n, nodes-1)
		}
	}
	return nil
}
