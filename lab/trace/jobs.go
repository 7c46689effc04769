package trace

import (
	"math"
	"math/rand/v2"
)

// job is work that begins at fixed local times: forecasts can know it.
type job struct {
	// It begins in the bins at modulo every, of local time, plus the region's delay
	// in bins from after.
	every, at int
	after     [Regions]int
	// tokens is the mean number of its tokens. It acquires each token at a random
	// time within the given number of bins after its start.
	tokens, within float64
	// It holds all tokens until its end, shortest to longest bins after its start.
	shortest, longest float64
}

// jobSpread is the largest deviation of a job's tokens from the mean, as a share.
const jobSpread = .1

var (
	// hourly is a pipeline that runs on the hour, in some regions a few minutes
	// later: at any time at most a single region of the five is at its peak.
	hourly = job{
		every: 12, after: [Regions]int{0, 2, 5, 7, 9}, tokens: 750, within: .2, shortest: 1.5, longest: 2.2,
	}
	// nightly runs at 1:00 local time.
	nightly = job{every: syntheticDay, at: 12, tokens: 1350, within: 1, shortest: 8, longest: 14}
)

// starts reports whether the job begins in a bin of local time.
func (j *job) starts(local int, region Region) bool {
	since := local - j.at - j.after[region]
	return since-j.every*floorDiv(since, j.every) == 0
}

// run draws the leases of the job.
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
