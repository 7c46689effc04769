// Package libraopt computes the least excess that moves of whole units can reach, and the
// fewest moves that reach a given excess, for cases of a few nodes and units: a measure
// for package libra. It searches all placements, and refuses cases with more units.
package libraopt

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/samya-db/samya/kvpart/libra"
)

// MaxUnits is the largest case: the search takes seconds at the most.
const MaxUnits = 14

// ErrInput says that a case is out of its bounds.
var ErrInput = errors.New("bad input")

// Optimum is the best that moves alone can reach.
type Optimum struct {
	// Excess is the least excess, relative to the mean of nodes.
	Excess float64
	// Moves is the least number of moves to an excess of at most the tolerance, or to the
	// least excess if that is more.
	Moves int
}

// slack is an excess that rounding may add.
const slack = 1e-9

// search is a search by branch and bound over placements, unit by unit.
type search struct {
	units []libra.Unit // with relative loads, the heaviest first
	loads []libra.Load
	bound float64 // on the excess
	moves int     // bound on the moves
	// count says to look for fewer moves within the bound, else for less excess.
	count bool
}

// Solve returns the optimum of units on nodes. A unit may stay where it is barred. It fails
// with ErrInput if there are more than MaxUnits units, or as libra.NewPlan does.
func Solve(tolerance float64, nodes int, units []libra.Unit) (Optimum, error) {
	if len(units) > MaxUnits {
		return Optimum{}, fmt.Errorf("%w: %d units, want %d at most", ErrInput, len(units), MaxUnits)
	}
	if _, err := libra.NewPlan(libra.Options{Tolerance: tolerance}, nodes, units); err != nil {
		return Optimum{}, fmt.Errorf("solve: %w", err)
	}
	s := search{units: slices.Clone(units), loads: make([]libra.Load, nodes), bound: math.Inf(1), moves: len(units)}
	var sum libra.Load
	for _, u := range units {
		for d := range sum {
			sum[d] += u.Load[d]
		}
	}
	for i := range s.units {
		for d := range sum {
			if sum[d] > 0 {
				s.units[i].Load[d] = s.units[i].Load[d] / sum[d] * float64(nodes)
			}
		}
	}
	slices.SortStableFunc(s.units, func(a, b libra.Unit) int {
		if most(a.Load) > most(b.Load) {
			return -1
		}
		return 1
	})
	s.place(0, 0)
	best := Optimum{Excess: s.bound}
	s.bound, s.moves, s.count = max(best.Excess, tolerance)+slack, len(units)+1, true
	s.place(0, 0)
	best.Moves = s.moves
	return best, nil
}

func most(l libra.Load) float64 { return max(l[libra.CPU], l[libra.Disk]) }

// place tries all nodes for the unit i and the later ones, after so many moves.
func (s *search) place(i, moves int) {
	if i == len(s.units) {
		if s.count {
			s.moves = moves
		} else {
			s.bound = -1
			for _, l := range s.loads {
				s.bound = max(s.bound, most(l)-1)
			}
		}
		return
	}
	u := s.units[i]
	for step := range s.loads {
		// The present node first: a placement with few moves bounds the others.
		j := (u.Node + step) % len(s.loads)
		cost := moves
		if j != u.Node {
			if slices.Contains(u.Barred, j) {
				continue
			}
			cost++
		}
		before := s.loads[j]
		for d := range u.Load {
			s.loads[j][d] += u.Load[d]
		}
		over := most(s.loads[j]) - 1
		if s.count && over <= s.bound && cost < s.moves || !s.count && over < s.bound {
			s.place(i+1, cost)
		}
		s.loads[j] = before
	}
}
