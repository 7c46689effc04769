package ratelab

import (
	"math"
	"math/rand/v2"
	"time"
)

// Regions are the regions, with a site each. The peer's redis stands in the first.
var Regions = []string{"us", "eu", "as", "au", "sa"}

// Demand is the demand for a quota, as a multiple of its rate.
type Demand struct {
	// Calm and Busy are the lengths of phases that take turns, calm first.
	Calm, Busy time.Duration
	// CalmLoad and BusyLoad are the rates offered in them, over all regions.
	CalmLoad, BusyLoad float64
	// Move is the time after which most of the demand moves on to the next region, and Hot
	// its part there.
	Move time.Duration
	Hot  float64
}

// busy reports whether a time since the start is in a busy phase, and returns the start of
// the phase and its end.
func (d *Demand) busy(at time.Duration) (busy bool, from, to time.Duration) {
	from = at.Truncate(d.Calm + d.Busy)
	if at-from < d.Calm {
		return false, from, from + d.Calm
	}
	return true, from + d.Calm, from + d.Calm + d.Busy
}

// load is the rate offered at a time, as a multiple of the quota's rate.
func (d *Demand) load(at time.Duration) float64 {
	if busy, _, _ := d.busy(at); busy {
		return d.BusyLoad
	}
	return d.CalmLoad
}

// part is the part of the demand that a region has at a time. It moves smoothly within the
// last fifth of Move.
func (d *Demand) part(region int, at time.Duration) float64 {
	n, turn := len(Regions), int(at/d.Move)
	over := max(0, float64(at%d.Move)/float64(d.Move)-.8) / .2
	cold := (1 - d.Hot) / float64(n-1)
	switch region {
	case turn % n:
		return d.Hot + over*(cold-d.Hot)
	case (turn + 1) % n:
		return cold + over*(d.Hot-cold)
	}
	return cold
}

// arrival is the time at which a request is due in a region.
type arrival struct {
	due    time.Duration
	region int
}

// draw draws the arrivals until the end: a Poisson process whose rate follows the demand, for
// a quota of so many tokens a second.
func (d *Demand) draw(perSecond float64, end time.Duration, rnd *rand.Rand) []arrival {
	var all []arrival
	at := time.Duration(0)
	for {
		step := -math.Log(1-rnd.Float64()) / (perSecond * d.load(at))
		at += time.Duration(step * float64(time.Second))
		if at >= end {
			return all
		}
		all = append(all, arrival{at, d.drawRegion(at, rnd.Float64())})
	}
}

func (d *Demand) drawRegion(at time.Duration, f float64) int {
	for r := range Regions {
		if f -= d.part(r, at); f < 0 {
			return r
		}
	}
	return len(Regions) - 1
}
