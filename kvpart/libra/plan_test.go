package libra_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samya-db/samya/internal/testfuzz"
	"github.com/samya-db/samya/kvpart/libra"
)

// plan returns all decisions of a round, each with its kind in words.
func plan(t *testing.T, o libra.Options, nodes int, units ...libra.Unit) []libra.Action {
	t.Helper()
	p, err := libra.NewPlan(o, nodes, units)
	if err != nil {
		t.Fatal(err)
	}
	for actions := []libra.Action{}; ; {
		a := p.Step()
		if actions = append(actions, a); a.Kind >= libra.Done {
			return actions
		}
	}
}

func at(node int, cpu, disk float64) libra.Unit {
	return libra.Unit{Node: node, Load: libra.Load{cpu, disk}, Whole: true}
}

func barred(u libra.Unit, nodes ...int) libra.Unit {
	u.Barred = nodes
	return u
}

func parted(u libra.Unit) libra.Unit {
	u.Whole = false
	return u
}

// many returns n equal units.
func many(n int, u libra.Unit) []libra.Unit {
	units := make([]libra.Unit, n)
	for i := range units {
		units[i] = u
	}
	return units
}

// TestStep shows the conditions of a step by example, most at a tolerance of .2.
func TestStep(t *testing.T) {
	cpu, disk := libra.CPU, libra.Disk
	move := func(unit, from, to int, d libra.Dimension) libra.Action {
		return libra.Action{Kind: libra.Migrate, Unit: unit, From: from, To: to, Dimension: d}
	}
	done, stuck, wait := libra.Action{Kind: libra.Done}, libra.Action{Kind: libra.Stuck}, libra.Action{Kind: libra.Wait}
	weight := .5
	full := []libra.Unit{at(0, 1, .5), at(0, 4.4, 3.4), at(1, 3, 4.6), at(2, 3.6, 3.5)}
	wide, eager := libra.Options{Tolerance: .2}, libra.Options{Tolerance: .2, Eager: true}
	for name, c := range map[string]struct {
		o     libra.Options
		nodes int
		units []libra.Unit
		want  []libra.Action
	}{
		"no units":  {wide, 3, nil, []libra.Action{done}},
		"no load":   {wide, 2, []libra.Unit{at(0, 0, 0), at(0, 0, 0)}, []libra.Action{done}},
		"one node":  {wide, 1, []libra.Unit{at(0, 1, 9)}, []libra.Action{done}},
		"one unit":  {wide, 2, []libra.Unit{at(0, 1, 1)}, []libra.Action{stuck}},
		"balanced":  {wide, 2, []libra.Unit{at(0, 1.1, 1), at(1, .9, 1)}, []libra.Action{done}},
		"no disk":   {wide, 2, []libra.Unit{at(0, 1, 0), at(0, 1, 0)}, []libra.Action{move(0, 0, 1, cpu), done}},
		"tiny load": {wide, 2, []libra.Unit{at(0, 1e-300, 5e-324), at(0, 1e-300, 5e-324)}, []libra.Action{move(0, 0, 1, disk), done}},
		"huge load": {wide, 2, []libra.Unit{at(0, 1e300, 1e-300), at(0, 1e300, 1e-300)}, []libra.Action{move(0, 0, 1, disk), done}},
		// The disk has the larger excess: units are looked at by their disk load.
		"critical dimension": {eager, 2, []libra.Unit{at(0, 5, 1), at(0, 0, 5), at(0, 1, 4), at(1, 4, 0)}, []libra.Action{move(1, 0, 1, disk), done}},
		"largest first":      {eager, 2, []libra.Unit{at(0, 2, 0), at(0, 3, 0), at(0, 5, 0)}, []libra.Action{move(2, 0, 1, cpu), done}},
		// Unit 0 is larger, but as large in the other dimension (condition 2).
		"interference": {libra.Options{Tolerance: .5, Eager: true}, 2, []libra.Unit{at(0, 2.5, 1), at(0, 2, 0), barred(at(0, 3.5, 1), 1), at(1, 2, 2)}, []libra.Action{move(1, 0, 1, cpu), done}},
		// Node 1 has the least processor load and no room for the disk load of unit 0.
		"other dimension full": {eager, 3, full, []libra.Action{move(0, 0, 2, cpu), done}},
		"barred":               {eager, 3, []libra.Unit{barred(at(0, 1, 1), 1), at(0, 1, 1), at(0, 1, 1)}, []libra.Action{move(0, 0, 2, disk), move(1, 0, 1, disk), done}},
		"barred everywhere":    {eager, 2, []libra.Unit{barred(at(0, 1, 1), 1), barred(at(0, 1, 1), 0, 1)}, []libra.Action{stuck}},
		"too small to move":    {libra.Options{Tolerance: .2, Benefit: .5}, 2, []libra.Unit{at(0, 1, 0), at(0, 1, 0), at(0, 1, 0), at(0, 1, 0), at(0, 1, 0)}, []libra.Action{stuck}},
		"bound of moves":       {libra.Options{Tolerance: .2, Moves: 1}, 2, many(10, parted(at(0, 1, 1))), []libra.Action{move(0, 0, 1, disk), wait}},
		// Two parts in the room of the other node; half of the load stays, as one part.
		"split": {wide, 2, []libra.Unit{parted(at(0, 1, 1))}, []libra.Action{{Kind: libra.Split, Dimension: disk, Share: .25, Parts: 3}, wait}},
		"split by the heavier dimension": {eager, 2, []libra.Unit{parted(at(0, 3, 0)), at(1, 1, 1)}, []libra.Action{
			{Kind: libra.Split, Dimension: cpu, Share: 1. / 19, Parts: 19}, wait,
		}},
		// The small unit could move and does not suffice: the lazy rule splits alone.
		"lazy":  {wide, 2, []libra.Unit{parted(at(0, 8, 0)), at(0, 1, 0), at(1, 1, 0)}, []libra.Action{{Kind: libra.Split, Dimension: cpu, Share: 1. / 8, Parts: 5}, wait}},
		"eager": {eager, 2, []libra.Unit{parted(at(0, 8, 0)), at(0, 1, 0), at(1, 1, 0)}, []libra.Action{move(1, 0, 1, cpu), {Kind: libra.Split, Dimension: cpu, Share: 1. / 20, Parts: 20}, wait}},
		// The split frees little, and nothing else helps.
		"little to split": {wide, 2, []libra.Unit{barred(at(0, 8, 0), 1), parted(barred(at(0, 1, 0), 1)), at(1, 1, 0)}, []libra.Action{{Kind: libra.Split, Unit: 1, Dimension: cpu, Share: 1. / 3, Parts: 3}, wait}},
		// The moves suffice: the lazy rule splits nothing.
		"lazy without a split": {wide, 2, []libra.Unit{parted(at(0, 5, 0)), at(0, 5, 0)}, []libra.Action{move(0, 0, 1, cpu), done}},
		"affinity": {
			libra.Options{Tolerance: .2, Affinity: func(unit, _ int) float64 { return float64(unit % 2) }},
			2,
			[]libra.Unit{at(0, 1, 1), at(0, 1, 1)},
			[]libra.Action{move(0, 0, 1, disk), done},
		},
		"affinity of the unit": {
			libra.Options{Tolerance: .2, Affinity: func(unit, node int) float64 { return float64((1 - unit) * (1 - node)) }},
			2,
			[]libra.Unit{at(0, 1, 1), at(0, 1, 1)},
			[]libra.Action{move(1, 0, 1, disk), done},
		},
		"affinity of the node": {
			libra.Options{Tolerance: .2, Affinity: func(_, node int) float64 { return float64(node) }},
			3,
			[]libra.Unit{at(0, 1, 1), at(0, 1, 1), at(0, 1, 1)},
			[]libra.Action{move(0, 0, 2, disk), move(1, 0, 1, disk), done},
		},
		// No node may be a destination.
		"swap": {wide, 2, append(many(4, at(0, 1, 0)), many(4, at(1, 0, 1))...), []libra.Action{
			{Kind: libra.Migrate, Unit: 0, From: 0, To: 1, Dimension: cpu, Swap: true},
			{Kind: libra.Migrate, Unit: 4, From: 1, To: 0, Dimension: disk, Swap: true},
			{Kind: libra.Migrate, Unit: 1, From: 0, To: 1, Dimension: cpu, Swap: true},
			{Kind: libra.Migrate, Unit: 5, From: 1, To: 0, Dimension: disk, Swap: true},
			done,
		}},
		// The first node ends above 1 + λ, the second below 1 - λ: better than before.
		"last resort": {wide, 2, []libra.Unit{at(0, 2, 2), at(0, 1, 1)}, []libra.Action{move(1, 0, 1, disk), stuck}},
		// Section II-C: nodes with 1 and .5, .5 and 1 have a weighted sum of .75 each.
		"weighted sum is blind":  {libra.Options{Rule: libra.Weighted, Weight: &weight}, 2, append(many(20, at(0, .05, .025)), many(20, at(1, .025, .05))...), []libra.Action{done}},
		"one dimension is blind": {libra.Options{Rule: libra.OnlyCPU}, 2, []libra.Unit{at(0, 1, 1), at(1, 1, 0)}, []libra.Action{done}},
		"the other is not":       {libra.Options{Rule: libra.OnlyDisk, Tolerance: .2}, 2, []libra.Unit{at(0, 1, 1), at(0, 1, 1)}, []libra.Action{move(0, 0, 1, disk), done}},
		"isolated in turns": {libra.Options{Rule: libra.Isolated, Tolerance: .2}, 2, []libra.Unit{at(0, 1, 0), at(0, 1, 0), at(0, 0, 1), at(0, 0, 1)}, []libra.Action{
			move(0, 0, 1, cpu), move(2, 0, 1, disk), done,
		}},
		"one split a node": {libra.Options{Rule: libra.OnlyCPU, Tolerance: .2}, 2, []libra.Unit{parted(barred(at(0, 1, 1), 1)), parted(barred(at(0, 1, 1), 1))}, []libra.Action{
			{Kind: libra.Split, Dimension: disk, Share: 1. / 13, Parts: 13}, wait,
		}},
		// The paper looks at the critical dimension of the destination alone.
		"printed": {libra.Options{Tolerance: .2, Eager: true, Printed: true}, 3, full, []libra.Action{move(0, 0, 1, cpu), stuck}},
	} {
		if diff := cmp.Diff(c.want, plan(t, c.o, c.nodes, c.units...)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestCooperativeSeesBoth balances loads that the weighted sum takes for balanced.
func TestCooperativeSeesBoth(t *testing.T) {
	actions := plan(t, libra.Options{}, 2, append(many(20, at(0, .05, .025)), many(20, at(1, .025, .05))...)...)
	if last := actions[len(actions)-1]; last.Kind != libra.Done || len(actions) < 3 {
		t.Errorf("%+v", actions)
	}
}

// TestInput checks that the error names the field and its bound.
func TestInput(t *testing.T) {
	w := 1.5
	for name, c := range map[string]struct {
		o     libra.Options
		nodes int
		units []libra.Unit
	}{
		"0 nodes, want 1 or more":                                 {libra.Options{}, 0, nil},
		"rule 9, want 4 at most":                                  {libra.Options{Rule: 9}, 1, nil},
		"tolerance of 1, want 1e-06 or more and below 1":          {libra.Options{Tolerance: 1}, 1, nil},
		"tolerance of -1, want 1e-06 or more and below 1":         {libra.Options{Tolerance: -1}, 1, nil},
		"tolerance of NaN, want 1e-06 or more and below 1":        {libra.Options{Tolerance: math.NaN()}, 1, nil},
		"benefit of 1, want above 0 and below 1":                  {libra.Options{Benefit: 1}, 1, nil},
		"weight of 1.5, want 0 to 1":                              {libra.Options{Weight: &w}, 1, nil},
		"-1 moves, want 0 or more":                                {libra.Options{Moves: -1}, 1, nil},
		"unit 1 is on node 2, want 0 to 1":                        {libra.Options{}, 2, []libra.Unit{at(0, 0, 0), at(2, 0, 0)}},
		"unit 0 is on node -1, want 0 to 1":                       {libra.Options{}, 2, []libra.Unit{at(-1, 0, 0)}},
		"cpu load of unit 0 is -1, want a number from 0":          {libra.Options{}, 2, []libra.Unit{at(0, -1, 0)}},
		"disk load of unit 0 is NaN, want a number from 0":        {libra.Options{}, 2, []libra.Unit{at(0, 0, math.NaN())}},
		"disk load of unit 0 is +Inf, want a number from 0":       {libra.Options{}, 2, []libra.Unit{at(0, 0, math.Inf(1))}},
		"sum of disk loads is +Inf, want 1.7976931348623157e+308": {libra.Options{}, 2, []libra.Unit{at(0, 0, 1e308), at(0, 0, 1e308)}},
		"unit 0 is barred from node 2, want 0 to 1":               {libra.Options{}, 2, []libra.Unit{barred(at(0, 0, 0), 2)}},
	} {
		if _, err := libra.NewPlan(c.o, c.nodes, c.units); !errors.Is(err, libra.ErrInput) || !strings.Contains(err.Error(), name) {
			t.Errorf("%q, want %q", err, name)
		}
	}
}

// TestScale checks that decisions depend on neither the units of loads nor the numbers of
// nodes, where no two are equal.
func TestScale(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		const nodes = 5
		var units []libra.Unit
		for i := range 60 {
			u := libra.Unit{Node: i % nodes, Load: libra.Load{r.ExpFloat64(), r.ExpFloat64()}}
			if i >= nodes {
				u.Node = r.IntN(2)
			}
			units = append(units, u)
		}
		o := libra.Options{Eager: seed%2 == 0}
		want := plan(t, o, nodes, units...)
		for _, scale := range []libra.Load{{1024, 1}, {1, 1. / 4096}, {0x1p600, 0x1p-600}} {
			scaled := make([]libra.Unit, len(units))
			for i, u := range units {
				u.Load[0], u.Load[1] = u.Load[0]*scale[0], u.Load[1]*scale[1]
				scaled[i] = u
			}
			if diff := cmp.Diff(want, plan(t, o, nodes, scaled...)); diff != "" {
				t.Fatalf("seed %d, scale %v: %s", seed, scale, diff)
			}
		}
		perm := r.Perm(nodes)
		renamed := make([]libra.Unit, len(units))
		for i, u := range units {
			u.Node = perm[u.Node]
			renamed[i] = u
		}
		expected := make([]libra.Action, len(want))
		for i, a := range want {
			if a.Kind == libra.Migrate || a.Kind == libra.Split {
				a.From, a.To = perm[a.From], perm[a.To]
			}
			expected[i] = a
		}
		if o.Eager { // the lazy rule orders splits of several nodes by number
			if diff := cmp.Diff(expected, plan(t, o, nodes, renamed...)); diff != "" {
				t.Fatalf("seed %d, nodes %v: %s", seed, perm, diff)
			}
		}
	}
}

// FuzzNewPlan looks for rounds that do not end, and for loads that are no numbers.
func FuzzNewPlan(tf *testing.F) {
	f := testfuzz.On(tf)
	f.Add(3, 20, .05, .002, uint64(1), 1., 1., byte(0))
	f.Add(2, 9, 1e-6, 1e-9, uint64(2), 1e-300, 1e300, byte(1))
	f.Fuzz(func(t *testing.T, nodes, n int, tolerance, benefit float64, seed uint64, cpu, disk float64, rule byte) {
		nodes, n = min(nodes, 20), min(max(n, 0), 200)
		r := rand.New(rand.NewPCG(seed, 5))
		units := make([]libra.Unit, n)
		for i := range units {
			units[i] = libra.Unit{Node: r.IntN(max(nodes, 1)), Load: libra.Load{cpu * r.Float64(), disk * r.ExpFloat64()}, Whole: r.IntN(3) == 0}
		}
		p, err := libra.NewPlan(libra.Options{Rule: libra.Rule(rule / 2), Eager: rule%2 == 0, Tolerance: tolerance, Benefit: benefit}, nodes, units)
		if err != nil {
			return
		}
		for range 2*n + 1 {
			if p.Step().Kind >= libra.Done {
				if e := p.Excess(); math.IsNaN(e) || math.IsInf(e, 0) {
					t.Fatal(e)
				}
				return
			}
		}
		t.Fatal("no end")
	})
}
