package demo

import (
	"math"
	"time"
)

// A region's holdings over a day, as shares of the limit: nightShare at night,
// nightShare+dayShare at noon. With five regions and noons spread evenly over the day,
// the holdings add up to two thirds of the limit at any time. At noon the holdings of a
// region pass a fifth of the limit, the tokens of its site at the start.
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

// heldAtAnyTime is the sum of the holdings of n regions at any time, as a share of the
// limit.
func heldAtAnyTime(n int) float64 { return float64(n) * (nightShare + dayShare*3/8) }

// maxTokens is the most tokens of a request: 5 with the limit 5000. It grows with the
// limit, so that the same rate of requests follows the curve of any limit.
func maxTokens(limit int64) int64 { return max(1, limit/1000) }
