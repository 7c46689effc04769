package libraopt

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/samya-db/samya/kvpart/libra"
)

// drawn returns a small case: 2 to 4 nodes with 6 to 12 units.
func drawn(seed uint64) (nodes int, units []libra.Unit) {
	r := rand.New(rand.NewPCG(seed, 7))
	nodes = 2 + r.IntN(3)
	units = make([]libra.Unit, 6+r.IntN(7))
	for i := range units {
		units[i] = libra.Unit{Node: r.IntN(nodes), Load: libra.Load{r.Float64(), r.Float64()}, Whole: true}
		if r.IntN(5) == 0 {
			units[i].Barred = []int{r.IntN(nodes)}
		}
	}
	return nodes, units
}

// TestSolve compares the search with all placements, one after the other.
func TestSolve(t *testing.T) {
	for seed := range uint64(60) {
		nodes, units := drawn(seed)
		units = units[:6]
		got, err := Solve(libra.DefaultTolerance, nodes, units)
		if err != nil {
			t.Fatal(err)
		}
		want := Optimum{Excess: math.Inf(1)}
		for range 2 {
			want.Moves = len(units)
			all := int(math.Pow(float64(nodes), float64(len(units))))
			best := want.Excess
			for code := range all {
				moves, ok, rest := 0, true, code
				placed := slices.Clone(units)
				for i := range placed {
					j := rest % nodes
					rest /= nodes
					if j != placed[i].Node {
						moves++
						ok = ok && !slices.Contains(placed[i].Barred, j)
					}
					placed[i].Node = j
				}
				p, err := libra.NewPlan(libra.Options{}, nodes, placed)
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					continue
				}
				want.Excess = min(want.Excess, p.Excess())
				if p.Excess() <= max(best, libra.DefaultTolerance)+slack {
					want.Moves = min(want.Moves, moves)
				}
			}
		}
		if math.Abs(got.Excess-want.Excess) > slack || got.Moves != want.Moves {
			t.Errorf("seed %d: %+v, want %+v", seed, got, want)
		}
	}
}

func TestInput(t *testing.T) {
	if _, err := Solve(.05, 2, make([]libra.Unit, MaxUnits+1)); !errors.Is(err, ErrInput) {
		t.Error(err)
	}
	if _, err := Solve(.05, 0, nil); !errors.Is(err, libra.ErrInput) {
		t.Error(err)
	}
	if o, err := Solve(.05, 2, nil); err != nil || o != (Optimum{Excess: -1}) {
		t.Error(o, err)
	}
}

// TestLibra measures how far rounds of libra end from the optimum, on small cases.
func TestLibra(t *testing.T) {
	const cases = 200
	for _, seeds := range []uint64{0, 1000, 2000} {
		for _, c := range []struct {
			name string
			libra.Options
		}{
			{name: "lazy"},
			{"eager", libra.Options{Eager: true}},
			{"printed", libra.Options{Eager: true, Printed: true}},
		} {
			var gaps, moves []float64
			reached, reachable := 0, 0
			for seed := range uint64(cases) {
				nodes, units := drawn(seeds + seed)
				best, err := Solve(libra.DefaultTolerance, nodes, units)
				if err != nil {
					t.Fatal(err)
				}
				p, err := libra.NewPlan(c.Options, nodes, units)
				if err != nil {
					t.Fatal(err)
				}
				n := 0
				for p.Step().Kind == libra.Migrate {
					n++
				}
				gap := (1 + p.Excess()) / (1 + max(best.Excess, libra.DefaultTolerance))
				if gap < 1-slack && p.Excess() > libra.DefaultTolerance {
					t.Errorf("seed %d: excess of %v is below the optimum, %v", seeds+seed, p.Excess(), best.Excess)
				}
				gaps = append(gaps, max(gap, 1))
				if best.Excess <= libra.DefaultTolerance {
					reachable++
				}
				if gap <= 1+slack {
					reached++
					if best.Moves > 0 {
						moves = append(moves, float64(n)/float64(best.Moves))
						if n < best.Moves {
							t.Errorf("seed %d: %d moves, fewer than the optimum, %d", seeds+seed, n, best.Moves)
						}
					}
				}
			}
			slices.Sort(gaps)
			slices.Sort(moves)
			t.Logf("seeds from %d, %s: within λ possible in %d of %d; optimum reached in %d; worst load over optimum: median %.3f, worst %.3f; moves over optimum: median %.2f, worst %.2f",
				seeds, c.name, reachable, cases, reached, gaps[cases/2], gaps[cases-1], moves[len(moves)/2], moves[len(moves)-1])
		}
	}
}
