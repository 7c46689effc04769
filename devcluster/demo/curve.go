package demo

import (
	"math"
	"time"
)

// A region's holdings over a day, as shares of the limit: at night nightShare,
// at noon dayShare more. With five regions whose noons are spread evenly over
// the day, the holdings add up to two thirds of the limit at any time, while
// each region's pass a fifth of it, what its site has at the start, at noon.
const (
	nightShare = 0.02
	dayShare   = 0.30
)

// holdings returns the curve of region i of n: with the limit 5000
//
//	100 + 1500·((1 + cos 2π(t/day − i/n)) / 2)²
func holdings(limit int64, day time.Duration, i, n int) func(time.Duration) float64 {
	phase := float64(i) / float64(n)
	return func(t time.Duration) float64 {
		sun := (1 + math.Cos(2*math.Pi*(t.Seconds()/day.Seconds()-phase))) / 2
		return float64(limit) * (nightShare + dayShare*sun*sun)
	}
}

// heldAtAnyTime is what n regions hold together, as a share of the limit.
func heldAtAnyTime(n int) float64 { return float64(n) * (nightShare + dayShare*3/8) }

// maxTokens is the most tokens of one request, so that the holdings can follow
// the curve of any limit at the same rate of requests: 5 with the limit 5000.
func maxTokens(limit int64) int64 { return max(1, limit/1000) }
