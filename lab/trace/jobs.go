package trace

import (
	"math"
	"math/rand/v2"
)

// job is work that begins at fixed local times: what forecasts can know.
type job struct {
	// It begins in the bins that are at modulo every, of local time, and as many
	// bins later as its region says in after.
	every, at int
	after     [Regions]int
	// tokens is the mean of how many it acquires, each of them at any time within
	// so many bins of its begin.
	tokens, within float64
	// All are held until it ends, so many bins after its begin.
	shortest, longest float64
}

// A job takes up to a tenth more or less than its mean.
const jobSpread = .1

var (
	// hourly is a pipeline that runs on the hour, in some regions a few minutes
	// later: at no time is more than one of the five at its peak.
	hourly = job{
		every: 12, after: [Regions]int{0, 2, 5, 7, 9}, tokens: 750, within: .2, shortest: 1.5, longest: 2.2,
	}
	// nightly runs at one o'clock in the night of its region.
	nightly = job{every: syntheticDay, at: 12, tokens: 1350, within: 1, shortest: 8, longest: 14}
)

// starts says whether it begins in a bin of local time.
func (j *job) starts(local int, region Region) bool {
	since := local - j.at - j.after[region]
	return since-j.every*floorDiv(since, j.every) == 0
}

// run draws its leases.
func (j *job) run(r *rand.Rand, from float64, yield func(Lease) bool) bool {
	n := int(math.Round(j.tokens * (1 + jobSpread*(2*r.Float64()-1))))
	end := from + j.shortest + (j.longest-j.shortest)*r.Float64()
	for range n {
		at := from + j.within*r.Float64()
		if !yield(Lease{At: at, Life: end - at}) {
			return false
		}
	}
	return true
}
