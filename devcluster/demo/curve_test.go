package demo

import (
	"math"
	"testing"
	"time"
)

func TestHoldings(t *testing.T) {
	const limit, day = 5000, 20 * time.Second
	n := len(Regions())
	for i := range n {
		curve := holdings(limit, day, i, n)
		lowest, highest := math.Inf(1), 0.0
		for at := time.Duration(0); at < day; at += 10 * time.Millisecond {
			lowest, highest = min(lowest, curve(at)), max(highest, curve(at))
		}
		if math.Abs(lowest-100) > 1 || math.Abs(highest-1600) > 1 {
			t.Errorf("region %d holds %.1f to %.1f, want 100 to 1600", i, lowest, highest)
		}
		noon := day * time.Duration(i) / time.Duration(n)
		if got := curve(noon); math.Abs(got-1600) > 1e-6 {
			t.Errorf("region %d holds %.1f at its noon, want 1600", i, got)
		}
		if a, b := curve(3*time.Second), curve(3*time.Second+day); math.Abs(a-b) > 1e-6 {
			t.Errorf("region %d holds %.1f, a day later %.1f", i, a, b)
		}
	}
	for at := time.Duration(0); at < day; at += 100 * time.Millisecond {
		var sum float64
		for i := range n {
			sum += holdings(limit, day, i, n)(at)
		}
		if math.Abs(sum-3312.5) > 1 {
			t.Errorf("all regions hold %.1f at %s, want 3312.5 at any time", sum, at)
		}
	}
}
