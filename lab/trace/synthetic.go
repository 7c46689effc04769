package trace

import (
	"math"
	"math/rand/v2"
)

const (
	syntheticStep = 300 // seconds
	syntheticDay  = secondsPerDay / syntheticStep
	syntheticBins = 30 * syntheticDay
	// warmUp bins are drawn before the first kept bin, so that deployments are under
	// way at its start.
	warmUp = 4 * syntheticDay
)

// withinHour weighs the twelve bins of an hour: people deploy on the hour.
var withinHour = [...]float64{2.1, .7, .5, 1.6, 1.2, .2, .3, 1.9, 1.5, .5, .4, 1.1}

var weekdays = [...]float64{1.05, 1.05, 1.05, 1.05, 1, .75, .70} // from Monday

// envelope returns the level of a bin's hour and weekday. Bin 0 is Monday,
// midnight.
func envelope(bin int) float64 {
	day := floorDiv(bin, syntheticDay)
	h := float64(bin-day*syntheticDay) / syntheticDay
	weekday := day - 7*floorDiv(day, 7)
	return (1 + .35*math.Sin(2*math.Pi*(h-.375)) + .10*math.Sin(4*math.Pi*(h-.20))) * weekdays[weekday]
}

func floorDiv(a, b int) int {
	return int(math.Floor(float64(a) / float64(b)))
}

func hourOf(bin int) float64 { return withinHour[bin-12*floorDiv(bin, 12)] }

// NearPeriodic draws a month of signed demand that repeats from day to day except
// for noise and bursts. Acquires and releases alternate; mean and maximum are the
// paper's (624 and 3118 tokens). It is built to show the paper's order of models
// (Table 4), for testing models. It says nothing about real demand, and is not for
// replay as tokens held.
func NearPeriodic(seed uint64) *Series {
	const mean, most = 624, 3118
	r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a simulation, to be repeated
	var profile [syntheticDay]float64
	for j := range profile {
		profile[j] = min(5, math.Pow(r.ExpFloat64(), 1/.7)/math.Gamma(1+1/.7))
	}
	net := make([]float64, syntheticBins)
	var up, down float64
	burst := 0
	for t := range net {
		if burst--; burst < 0 && r.Float64() < .0015 {
			burst = r.IntN(12)
		}
		a := envelope(t) * (.1*hourOf(t) + .9*profile[t%syntheticDay]) * math.Exp(.4*r.NormFloat64()-.08)
		if burst >= 0 {
			a *= 2.5
		}
		value := mean*a + 60*r.NormFloat64()
		if (t%2 == 1) != (r.Float64() < .03) {
			value = -value
		}
		net[t] = value
		if value > 0 {
			up += value
		} else {
			down -= value
		}
	}
	positives := 0.
	for t, value := range net {
		if value < 0 {
			net[t] = value * up / down
		} else {
			positives++
		}
	}
	for t := range net {
		net[t] = min(max(math.Round(net[t]*mean*positives/up), -most), most)
	}
	return &Series{Name: "near-periodic", Step: syntheticStep, Bins: fromNet(net)}
}
