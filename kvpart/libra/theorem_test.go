package libra_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/samya-db/samya/kvpart/libra"
)

// families are distributions of the loads of units, between 0 and 1.
var families = []struct {
	name string
	load func(r *rand.Rand) libra.Load
}{
	{"uniform", func(r *rand.Rand) libra.Load { return libra.Load{r.Float64(), r.Float64()} }},
	{"correlated", func(r *rand.Rand) libra.Load {
		x := r.Float64()
		return libra.Load{x, x * (.9 + .1*r.Float64())}
	}},
	{"anti-correlated", func(r *rand.Rand) libra.Load {
		x := r.Float64()
		return libra.Load{x, 1 - x}
	}},
	{"exponential", func(r *rand.Rand) libra.Load {
		return libra.Load{min(r.ExpFloat64()/5, 1), min(r.ExpFloat64()/5, 1)}
	}},
	{"one class", func(r *rand.Rand) libra.Load {
		x := .01 + .99*r.Float64()
		return libra.Load{x, x * r.Float64() * .9}
	}},
	{"two classes", func(r *rand.Rand) libra.Load {
		if r.IntN(2) == 0 {
			return libra.Load{r.Float64(), 0}
		}
		return libra.Load{0, r.Float64()}
	}},
	{"few of disk", func(r *rand.Rand) libra.Load {
		if r.IntN(10) == 0 {
			return libra.Load{.1 * r.Float64(), r.Float64()}
		}
		return libra.Load{r.Float64(), .01}
	}},
	{"all equal", func(*rand.Rand) libra.Load { return libra.Load{1, 1} }},
}

var placements = []struct {
	name string
	node func(r *rand.Rand, nodes int, l libra.Load) int
}{
	{"random", func(r *rand.Rand, nodes int, _ libra.Load) int { return r.IntN(nodes) }},
	{"one node", func(*rand.Rand, int, libra.Load) int { return 0 }},
	{"by class", func(r *rand.Rand, nodes int, l libra.Load) int {
		half := max(nodes/2, 1)
		if l[libra.CPU] > l[libra.Disk] {
			return r.IntN(half)
		}
		return min(half+r.IntN(half), nodes-1)
	}},
}

// small draws units with loads of at most λ/2, and few more than theorem 1 needs.
func small(r *rand.Rand, nodes int, load func(*rand.Rand) libra.Load, place func(*rand.Rand, int, libra.Load) int) []libra.Unit {
	limit := libra.DefaultTolerance / 2
	var units []libra.Unit
	for n := int(float64(nodes) / limit); ; n += n / 4 {
		for len(units) < n {
			l := load(r)
			units = append(units, libra.Unit{Node: place(r, nodes, l), Load: l, Whole: true})
		}
		if !slices.ContainsFunc(relative(nodes, units), func(u libra.Unit) bool {
			return max(u.Load[0], u.Load[1]) > limit
		}) {
			return units
		}
	}
}

// TestUnitsOfHalfTheTolerance measures theorem 1: how often units of at most λ/2 each can be
// balanced. Its proof places units afresh, and never runs out of a class of units. So the
// theorem is no law for moves off the nodes where units are.
func TestUnitsOfHalfTheTolerance(t *testing.T) {
	all, balanced := 0, 0
	for f, family := range families {
		for _, place := range placements {
			for _, eager := range []bool{false, true} {
				worst, done, moves, lower, upper, runs, second := 0., 0, 0., 0., 0., 0, 0
				for seed := range uint64(20) {
					r := rand.New(rand.NewPCG(seed+firstSeed, uint64(f)))
					nodes := 2 + r.IntN(15)
					units := small(r, nodes, family.load, place.node)
					p, err := libra.NewPlan(libra.Options{Eager: eager}, nodes, units)
					if err != nil {
						t.Fatal(err)
					}
					need := leastMoves(nodes, relative(nodes, units))
					a := p.Step()
					for ; a.Kind == libra.Migrate; a = p.Step() {
						units[a.Unit].Node = a.To
						moves++
					}
					lower += need
					upper += printedBound(nodes, relative(nodes, units))
					runs++
					worst = max(worst, p.Excess())
					if a.Kind == libra.Done {
						done++
						continue
					} else if a.Kind != libra.Stuck {
						t.Fatalf("%+v", a)
					}
					// In the next round the same units may move again.
					if p, err = libra.NewPlan(libra.Options{Eager: eager}, nodes, units); err != nil {
						t.Fatal(err)
					}
					for a = p.Step(); a.Kind == libra.Migrate; a = p.Step() {
						moves++
					}
					if a.Kind == libra.Done {
						second++
					}
				}
				// Disk load is in a tenth of the units, all on nodes without processor load. A swap
				// for one of them takes little processor load in return, so the nodes that give
				// processor load are full of disk load before they are relieved.
				if family.name != "few of disk" || place.name != "by class" {
					all, balanced = all+runs, balanced+done
				}
				if runs-done-second > runs/20 {
					t.Errorf("%s %s: %d of %d not balanced after two rounds", family.name, place.name, runs-done-second, runs)
				}
				t.Logf("%-16s %-9s eager=%-5v balanced %3d and in the second round %d of %d, worst excess %.3f, %.2f moves for each that is needed at least, %.4f for each of the paper's bound",
					family.name, place.name, eager, done, second, runs, worst, moves/cmp.Or(lower, math.Inf(1)), moves/cmp.Or(upper, math.Inf(1)))
			}
		}
	}
	if float64(balanced) < .99*float64(all) {
		t.Errorf("balanced %d of %d", balanced, all)
	}
	t.Logf("balanced but for the rare class: %.4f of %d", float64(balanced)/float64(all), all)
}

// firstSeed is held out: the step was made with the seeds from 0.
const firstSeed = 10_000

// printedBound returns the paper's bound on the number of moves (section IV-B): for each
// hot node its excess, or the difference of its dimensions if that is more, in units of the
// least difference of a unit's dimensions. It is without use where that is near 0.
func printedBound(nodes int, units []libra.Unit) float64 {
	least, sum := math.Inf(1), 0.
	for _, u := range units {
		least = min(least, math.Abs(u.Load[0]-u.Load[1]))
	}
	for _, l := range sums(nodes, units) {
		if over := max(l[0], l[1]) - 1; over > libra.DefaultTolerance {
			sum += max(over, math.Abs(l[0]-l[1])) / least
		}
	}
	return sum
}

// leastMoves returns a lower bound on the number of moves that balance nodes: the hot
// nodes' excess over the tolerance in units of their heaviest units.
func leastMoves(nodes int, units []libra.Unit) float64 {
	loads, sum := sums(nodes, units), 0.
	for j, l := range loads {
		need := 0.
		for _, d := range libra.Dimensions() {
			var own []float64
			for _, u := range units {
				if u.Node == j {
					own = append(own, u.Load[d])
				}
			}
			slices.Sort(own)
			over, n := l[d]-1-libra.DefaultTolerance, 0.
			for i := len(own) - 1; i >= 0 && over > 0; i-- {
				over -= own[i]
				n++
			}
			need = max(need, n)
		}
		sum += need
	}
	return sum
}
