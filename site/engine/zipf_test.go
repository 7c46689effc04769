package engine_test

import (
	"math"
	"math/rand/v2"
	"sort"
)

// zipf chooses entities: the k-th most wanted as often as 1/k^0.99, which rand.Zipf does
// not offer. The most wanted entities lie anywhere among the others.
type zipf struct {
	// upTo are the shares of all choices that fall on the most wanted, up to each.
	upTo  []float64
	ranks []int
}

func newZipf(entities int) *zipf {
	z := &zipf{upTo: make([]float64, entities), ranks: rand.New(rand.NewPCG(1, 2)).Perm(entities)}
	sum := 0.0
	for k := range z.upTo {
		sum += math.Pow(float64(k+1), -0.99)
		z.upTo[k] = sum
	}
	for k := range z.upTo {
		z.upTo[k] /= sum
	}
	return z
}

// choose returns the number of an entity.
func (z *zipf) choose(rnd *rand.Rand) int {
	if len(z.ranks) == 1 {
		return 0
	}
	return z.ranks[sort.SearchFloat64s(z.upTo, rnd.Float64())]
}
