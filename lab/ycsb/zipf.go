package ycsb

import (
	"math"
	"math/rand/v2"
)

// Theta is the constant of YCSB's Zipf distributions: requests for the k-th most
// wanted of n are in proportion to 1/k^Theta. The standard library draws such ranks
// only for constants above 1.
const Theta = .99

// zipf draws ranks by rejection-inversion (Hörmann and Derflinger, 1996): exactly,
// in constant time, without sums as n grows. YCSB's own formula draws the third
// rank 15 % too often.
type zipf struct {
	n      int
	hn     float64 // integral(n + 1/2)
	accept float64 // how far below k an x that gives k needs no test
}

// hx1 is the start of the integral, chosen to give rank 1 a full share.
var hx1 = integral(1.5) - 1

func newZipf(n int) zipf {
	z := zipf{accept: 2 - inverse(integral(2.5)-weight(2))}
	z.grow(n)
	return z
}

// grow sets the number of ranks.
func (z *zipf) grow(n int) { z.n, z.hn = n, integral(float64(n)+.5) }

// rank draws a rank from 0, the most wanted.
func (z *zipf) rank(rnd *rand.Rand) int {
	for {
		u := z.hn + rnd.Float64()*(hx1-z.hn)
		x := inverse(u)
		k := min(max(math.Floor(x+.5), 1), float64(z.n))
		if k-x <= z.accept || u >= integral(k+.5)-weight(k) {
			return int(k) - 1
		}
	}
}

// weight returns the frequency of rank x, except for a factor.
func weight(x float64) float64 { return math.Pow(x, -Theta) }

// integral returns the integral of weight from 1 to x; inverse is its inverse.
func integral(x float64) float64 { return (math.Pow(x, 1-Theta) - 1) / (1 - Theta) }
func inverse(x float64) float64  { return math.Pow(1+x*(1-Theta), 1/(1-Theta)) }
