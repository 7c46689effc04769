package libra_test

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/samya-db/samya/kvpart/libra"
)

// tiny is more than rounding adds to a relative load.
const tiny = 1e-9

// relative returns the units with relative loads, computed the obvious way.
func relative(nodes int, units []libra.Unit) []libra.Unit {
	units = slices.Clone(units)
	for _, d := range libra.Dimensions() {
		mean := 0.
		for i := range units {
			mean += units[i].Load[d] / float64(nodes)
		}
		for i := range units {
			if mean > 0 {
				units[i].Load[d] /= mean
			}
		}
	}
	return units
}

// sums returns the loads of nodes.
func sums(nodes int, units []libra.Unit) []libra.Load {
	loads := make([]libra.Load, nodes)
	for _, u := range units {
		for d := range u.Load {
			loads[u.Node][d] += u.Load[d]
		}
	}
	return loads
}

func excess(loads []libra.Load) float64 {
	worst := -1.
	for _, l := range loads {
		worst = max(worst, l[libra.CPU]-1, l[libra.Disk]-1)
	}
	return worst
}

// round is a round to check.
type round struct {
	libra.Options
	nodes int
	units []libra.Unit
}

// rounds draws a round of the rule Cooperative. Loads are whole numbers often, for ties.
func rounds(t *rapid.T) round {
	r := round{nodes: rapid.IntRange(1, 6).Draw(t, "nodes")}
	node := rapid.IntRange(0, r.nodes-1)
	load := rapid.Custom(func(t *rapid.T) float64 {
		if rapid.Bool().Draw(t, "whole number") {
			return float64(rapid.IntRange(0, 9).Draw(t, "load"))
		}
		return rapid.Float64Range(0, 3).Draw(t, "load")
	})
	last := node.Draw(t, "last node with load") // few nodes with load are a harder start
	r.units = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) libra.Unit {
		u := libra.Unit{Node: min(node.Draw(t, "node"), last), Load: libra.Load{load.Draw(t, "cpu"), load.Draw(t, "disk")}}
		u.Whole = rapid.IntRange(0, 3).Draw(t, "whole") == 0
		if rapid.IntRange(0, 3).Draw(t, "bars") == 0 {
			u.Barred = rapid.SliceOfN(node, 0, 3).Draw(t, "barred")
		}
		return u
	}), 0, 40).Draw(t, "units")
	r.Tolerance = rapid.SampledFrom([]float64{0, .01, .05, .2, .5}).Draw(t, "tolerance")
	r.Benefit = rapid.SampledFrom([]float64{0, 0, .01, .1}).Draw(t, "benefit")
	r.Eager = rapid.Bool().Draw(t, "eager")
	r.Printed = rapid.IntRange(0, 7).Draw(t, "printed") == 0
	r.Moves = rapid.SampledFrom([]int{0, 0, 0, 1, 3}).Draw(t, "moves")
	if rapid.Bool().Draw(t, "affine") {
		near := rapid.SliceOfN(rapid.IntRange(0, 3), 7, 7).Draw(t, "affinity")
		r.Affinity = func(unit, node int) float64 { return float64(near[(unit*5+node*3)%7]) }
	}
	return r
}

// run plays a round, checks each decision against books of its own, and returns the
// decisions with their end.
func (r *round) run(t rapid.TB) []libra.Action {
	t.Helper()
	p, err := libra.NewPlan(r.Options, r.nodes, r.units)
	if err != nil {
		t.Fatal(err)
	}
	tolerance := cmp.Or(r.Tolerance, libra.DefaultTolerance)
	units := relative(r.nodes, r.units)
	start := slices.Clone(units)
	moved, split := map[int]bool{}, map[int]bool{}
	var actions []libra.Action
	var ahead []libra.Load // of the first move of a swap
	var lastSwap bool
	for {
		a := p.Step()
		actions = append(actions, a)
		if len(actions) > 2*len(units)+1 {
			t.Fatalf("no end after %d decisions", len(actions))
		}
		before := sums(r.nodes, units)
		switch a.Kind {
		case libra.Migrate:
			u := &units[a.Unit]
			if moved[a.Unit] || split[a.Unit] {
				t.Fatalf("%+v: decided upon before", a)
			}
			if a.From != u.Node || a.To == u.Node || slices.Contains(u.Barred, a.To) {
				t.Fatalf("%+v of %+v", a, *u)
			}
			last := r.last(units, moved, a, p.Benefit())
			moved[a.Unit] = true
			u.Node = a.To
			switch {
			case !a.Swap:
				r.checkMove(t, a, u.Load, p.Benefit(), last, before, sums(r.nodes, units))
			case ahead == nil:
				if d := a.Dimension; before[a.From][1-d] > before[a.From][d]+tiny || before[a.From][d] < 1+tolerance-tiny ||
					u.Load[d] <= p.Benefit()-tiny {
					t.Fatalf("%+v with %v: source has %v", a, u.Load, before[a.From])
				}
				ahead, lastSwap = before, last
			default:
				r.checkSwap(t, actions[len(actions)-2:], lastSwap, ahead, sums(r.nodes, units))
				ahead = nil
			}
		case libra.Split:
			u := &units[a.Unit]
			if moved[a.Unit] || split[a.Unit] || u.Whole {
				t.Fatalf("%+v of %+v", a, *u)
			}
			split[a.Unit] = true
			most := max(u.Load[0], u.Load[1])
			if a.From != u.Node || a.To != u.Node || u.Load[a.Dimension] < most-tiny || most < tolerance/2-tiny ||
				a.Share*most > largestPart(r.Eager || r.Rule != libra.Cooperative, tolerance)+tiny || a.Parts < 2 || float64(a.Parts-1)*a.Share > 1+tiny {
				t.Fatalf("%+v of %+v", a, *u)
			}
			if r.Rule == libra.Cooperative && max(before[a.From][0], before[a.From][1]) <= 1+tolerance-tiny {
				t.Fatalf("%+v: node has %v", a, before[a.From])
			}
		case libra.Done, libra.Wait, libra.Stuck:
			if r.Rule == libra.Cooperative {
				r.checkEnd(t, p, a.Kind, tolerance, len(moved), len(split))
			}
			if again := p.Step(); again != a {
				t.Fatalf("%+v after the end %+v", again, a)
			}
			return actions
		}
		if p.Decided() == 0 {
			for j, l := range sums(r.nodes, units) {
				if got := p.Loads()[j]; math.Abs(got[0]-l[0]) > tiny || math.Abs(got[1]-l[1]) > tiny {
					t.Fatalf("after %+v node %d has %v, want %v", a, j, got, l)
				}
			}
			if got, want := p.Excess(), excess(sums(r.nodes, units)); math.Abs(got-want) > tiny {
				t.Fatalf("after %+v excess of %v, want %v", a, got, want)
			}
		}
		for i := range start {
			if units[i].Node != start[i].Node && !moved[i] {
				t.Fatalf("unit %d moved", i)
			}
		}
	}
}

// last reports whether the last resort is open to a hot node: none of its units that did not
// move may be split.
func (r *round) last(units []libra.Unit, moved map[int]bool, a libra.Action, benefit float64) bool {
	tolerance := cmp.Or(r.Tolerance, libra.DefaultTolerance)
	for i, u := range units {
		if u.Node == a.From && !moved[i] && !u.Whole && u.Load[a.Dimension] > benefit+tiny && max(u.Load[0], u.Load[1]) > tolerance/2+tiny {
			return false
		}
	}
	return true
}

// checkMove checks a move of a unit with a load, given the loads of nodes before and after.
func (r *round) checkMove(t rapid.TB, a libra.Action, unit libra.Load, benefit float64, last bool, before, after []libra.Load) {
	t.Helper()
	tolerance := cmp.Or(r.Tolerance, libra.DefaultTolerance)
	from, to, left := before[a.From], after[a.To], after[a.From]
	if r.Rule != libra.Cooperative {
		return
	}
	if d := a.Dimension; from[1-d] > from[d]+tiny || unit[d] <= benefit-tiny {
		t.Fatalf("%+v: node with %v, unit with %v, benefit %v", a, from, unit, benefit)
	}
	if hot := max(from[0], from[1]); hot <= 1-tiny || r.Eager && hot <= 1+tolerance-tiny {
		t.Fatalf("%+v: source has %v already", a, from)
	}
	if r.Printed {
		if d := a.Dimension; unit[1-d] >= unit[d]+tiny || to[d] >= 1+tolerance+tiny {
			t.Fatalf("%+v: unit with %v, destination has %v", a, unit, to)
		}
		return
	}
	if excess(after) > excess(before)+tiny {
		t.Fatalf("%+v: excess from %v to %v", a, excess(before), excess(after))
	}
	if last {
		if max(to[0], to[1]) > max(from[0], from[1])+tiny {
			t.Fatalf("%+v: destination has %v, source had %v", a, to, from)
		}
		return
	}
	if max(to[0], to[1]) > 1+tolerance+tiny {
		t.Fatalf("%+v: destination has %v", a, to)
	}
	if left[a.Dimension] < 1-tolerance-tiny {
		t.Fatalf("%+v: source has %v", a, left)
	}
}

// checkSwap checks both moves of a swap, given the loads of nodes before and after.
func (r *round) checkSwap(t rapid.TB, swap []libra.Action, last bool, before, after []libra.Load) {
	t.Helper()
	tolerance := cmp.Or(r.Tolerance, libra.DefaultTolerance)
	hot, d := swap[0].From, swap[0].Dimension
	if r.Printed || r.Rule != libra.Cooperative || !swap[0].Swap || swap[1].From != swap[0].To || swap[1].To != hot {
		t.Fatalf("%+v is no swap", swap)
	}
	for j := range after {
		if last {
			if j == hot && max(after[j][0], after[j][1]) > before[j][d]+tiny {
				t.Fatalf("%+v: source from %v to %v", swap, before[j], after[j])
			}
			continue
		}
		for e := range after[j] {
			if after[j][e] > max(1+tolerance, before[j][e])+tiny {
				t.Fatalf("%+v: node %d from %v to %v", swap, j, before[j], after[j])
			}
		}
	}
	if left := after[hot][d]; !last && (left < 1-tolerance-tiny || left > before[hot][d]-tiny) {
		t.Fatalf("%+v: source from %v to %v", swap, before[hot], after[hot])
	}
	if excess(after) > excess(before)+tiny {
		t.Fatalf("%+v: excess from %v to %v", swap, excess(before), excess(after))
	}
}

// checkEnd checks the end of a round with so many moves and splits.
func (r *round) checkEnd(t rapid.TB, p *libra.Plan, end libra.Kind, tolerance float64, moves, splits int) {
	t.Helper()
	if r.Moves > 0 && moves > r.Moves {
		t.Fatalf("%d moves, bound to %d", moves, r.Moves)
	}
	want := libra.Stuck
	switch {
	case excess(p.Loads()) <= tolerance:
		want = libra.Done
	case splits > 0 || r.Moves > 0 && moves == r.Moves:
		want = libra.Wait
	}
	if end != want {
		t.Fatalf("end is %v with an excess of %v, %d moves, %d splits; want %v", end, p.Excess(), moves, splits, want)
	}
}

// TestSeededRounds checks the same rounds each time.
func TestSeededRounds(t *testing.T) {
	kinds, swaps := map[libra.Kind]int{}, 0
	for seed := range 3000 {
		r := rapid.Custom(rounds).Example(seed)
		for _, a := range r.run(t) {
			kinds[a.Kind]++
			if a.Swap {
				swaps++
			}
		}
	}
	if swaps < 100 {
		t.Errorf("%d swaps only", swaps)
	}
	for _, k := range []libra.Kind{libra.Migrate, libra.Split, libra.Done, libra.Wait, libra.Stuck} {
		if kinds[k] < 100 {
			t.Errorf("%v: %d times only of %v", k, kinds[k], kinds)
		}
	}
}

// TestEveryDecision checks each decision of drawn rounds against a second set of books.
func TestEveryDecision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rounds(t)
		first := r.run(t)
		if again := r.run(t); !slices.Equal(first, again) {
			t.Fatalf("%+v, then %+v", first, again)
		}
	})
}

// TestRulesForComparison checks their books, and that each unit is decided upon once.
func TestRulesForComparison(t *testing.T) {
	for _, rule := range []libra.Rule{libra.OnlyCPU, libra.OnlyDisk, libra.Isolated, libra.Weighted} {
		for seed := range 500 {
			r := rapid.Custom(rounds).Example(seed)
			r.Rule = rule
			r.run(t)
		}
	}
}

// TestNothingIsLeft checks against an exhaustive search that a round without a bound of
// moves ends only when its hot nodes have no allowed move left.
func TestNothingIsLeft(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rounds(t)
		r.checkNothingLeft(t)
	})
}

// TestNothingIsLeftOfSeeds checks the same rounds each time.
func TestNothingIsLeftOfSeeds(t *testing.T) {
	for seed := range 3000 {
		r := rapid.Custom(rounds).Example(seed)
		r.checkNothingLeft(t)
	}
}

// checkNothingLeft plays the round without splits and without a bound of moves, and looks
// for a move that is left.
func (r *round) checkNothingLeft(t rapid.TB) {
	t.Helper()
	r.Moves, r.Printed = 0, false
	for i := range r.units {
		r.units[i].Whole = true
	}
	actions := r.run(t)
	if actions[len(actions)-1].Kind == libra.Done {
		return
	}
	p, err := libra.NewPlan(r.Options, r.nodes, r.units)
	if err != nil {
		t.Fatal(err)
	}
	tolerance := cmp.Or(r.Tolerance, libra.DefaultTolerance)
	units := relative(r.nodes, r.units)
	moved := map[int]bool{}
	for _, a := range actions[:len(actions)-1] {
		units[a.Unit].Node = a.To
		moved[a.Unit] = true
	}
	loads := sums(r.nodes, units)
	for i, u := range units {
		from := loads[u.Node]
		d := libra.Disk
		if from[libra.CPU] > from[libra.Disk] {
			d = libra.CPU
		}
		if moved[i] || from[d] <= 1+tolerance+tiny || u.Load[d] <= p.Benefit()+tiny || from[d]-u.Load[d] < 1-tolerance+tiny ||
			math.Abs(from[0]-from[1]) < tiny || !r.Eager && u.Load[d] > tolerance/2-tiny {
			continue
		}
		for j, l := range loads {
			if j != u.Node && !slices.Contains(u.Barred, j) && max(l[0]+u.Load[0], l[1]+u.Load[1]) <= 1+tolerance-tiny {
				t.Fatalf("unit %d with %v may move from node %d to %d: %v", i, u.Load, u.Node, j, loads)
			}
		}
	}
}

// largestPart is the largest load of a part of a split: a lazy round may leave half of the
// room of an empty node.
func largestPart(small bool, tolerance float64) float64 {
	if small {
		return tolerance / 2 * libra.PartFill
	}
	return max(tolerance/2*libra.PartFill, .5)
}
