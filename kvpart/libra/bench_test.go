package libra_test

import (
	"math/rand/v2"
	"testing"

	"github.com/samya-db/samya/kvpart/libra"
)

// BenchmarkRound plans a round of 10,000 units on 16 nodes.
func BenchmarkRound(b *testing.B) {
	const nodes, n = 16, 10_000
	starts := map[string]func(r *rand.Rand, i int, _ libra.Load) int{
		"random": func(r *rand.Rand, _ int, _ libra.Load) int { return r.IntN(nodes) },
		"one":    func(*rand.Rand, int, libra.Load) int { return 0 },
		"half": func(r *rand.Rand, i int, _ libra.Load) int {
			if i%2 == 0 {
				return 0
			}
			return r.IntN(nodes)
		},
		"two": func(_ *rand.Rand, i int, _ libra.Load) int { return i % 2 },
		"class": func(r *rand.Rand, _ int, l libra.Load) int {
			if l[libra.CPU] > l[libra.Disk] {
				return r.IntN(nodes / 2)
			}
			return nodes/2 + r.IntN(nodes/2)
		},
	}
	for _, start := range []string{"random", "half", "two", "one", "class"} {
		for _, o := range []struct {
			name     string
			affinity bool
			libra.Options
		}{
			{name: "lazy"},
			{name: "eager", Options: libra.Options{Eager: true}},
			{name: "affinity", affinity: true},
			{name: "affinity-eager", affinity: true, Options: libra.Options{Eager: true}},
			{name: "printed", Options: libra.Options{Eager: true, Printed: true}},
			{name: "1d-cpu", Options: libra.Options{Rule: libra.OnlyCPU}},
			{name: "2d-iso", Options: libra.Options{Rule: libra.Isolated}},
			{name: "2d-wtd", Options: libra.Options{Rule: libra.Weighted}},
		} {
			b.Run(start+"/"+o.name, func(b *testing.B) {
				r := rand.New(rand.NewPCG(1, 1))
				units := make([]libra.Unit, n)
				for i := range units {
					l := libra.Load{r.ExpFloat64(), r.ExpFloat64()}
					units[i] = libra.Unit{Node: starts[start](r, i, l), Load: l}
				}
				if o.affinity {
					near := make([]float64, n*nodes)
					for i := range near {
						near[i] = r.Float64()
					}
					o.Affinity = func(unit, node int) float64 { return near[unit*nodes+node] }
				}
				b.ReportAllocs()
				moves, excess := 0, 0.
				for b.Loop() {
					p, err := libra.NewPlan(o.Options, nodes, units)
					if err != nil {
						b.Fatal(err)
					}
					moves = 0
					for a := p.Step(); a.Kind == libra.Migrate || a.Kind == libra.Split; a = p.Step() {
						moves++
					}
					excess = p.Excess()
				}
				b.ReportMetric(float64(moves), "moves")
				b.ReportMetric(excess, "excess")
			})
		}
	}
}
