package graphs

import (
	"math"
	"math/rand/v2"
	"sort"
)

// zipf draws ranks below n, rank i with a probability in proportion to 1/(i+1)^exponent.
// (The Zipf of math/rand requires an exponent above 1.)
type zipf []float64

func newZipf(n int, exponent float64) zipf {
	z := make(zipf, n)
	sum := 0.0
	for i := range z {
		sum += math.Pow(float64(i+1), -exponent)
		z[i] = sum
	}
	return z
}

func (z zipf) draw(r *rand.Rand) int32 {
	at := r.Float64() * z[len(z)-1]
	return int32(min(sort.SearchFloat64s(z, at), len(z)-1))
}
