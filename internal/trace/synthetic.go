package trace

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/samya-db/samya/predict"
)

const (
	syntheticStep = 300 // seconds
	syntheticDay  = secondsPerDay / syntheticStep
	syntheticBins = 30 * syntheticDay
	// warmUp bins are drawn before the first that is kept, so that deployments
	// are under way when it begins.
	warmUp = 4 * syntheticDay
)

// withinHour weighs the twelve bins of an hour: people deploy on the hour.
var withinHour = [...]float64{2.1, .7, .5, 1.6, 1.2, .2, .3, 1.9, 1.5, .5, .4, 1.1}

var weekdays = [...]float64{1.05, 1.05, 1.05, 1.05, 1, .75, .70} // from Monday

// envelope is the level of a bin's hour and weekday. Bin 0 is Monday, midnight.
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

// Region is one of the five regions of the experiments: US, AS, EU, AU, SA.
type Region int

// phases are the shifts of the regions' local time, in hours.
var phases = [...]int{0, 16, 8, 18, 5}

// variant are the constants that differ between variants of AzureLike.
type variant struct {
	scale, cap float64
	// lives are the mean lifetimes in bins of short, medium and long ones.
	lives [3]float64
}

var variants = map[string]variant{
	"single": {1, 1500, [3]float64{1, 5, 30}},
	"fit":    {.54, 300, [3]float64{1, 5, 30}},
	"tight":  {.54, 300, [3]float64{1, 6, 42}},
	"over":   {.54, 300, [3]float64{1, 9, 70}},
}

// ErrParameter says that a synthetic series does not exist.
var ErrParameter = errors.New("no such synthetic series")

// AzureLike draws a month of demand for VMs: deployments arrive by a Poisson
// process whose rate follows the time of day and of the hour, and weekdays; each
// is of ⌈lognormal⌉ tokens, of which most end together. Variant single is one
// large region; fit, tight and over are the five regions that share one limit,
// with ever longer lifetimes; region shifts the local time and draws anew.
//
// It has the character that the paper states of its trace (Section 5.1) and the
// numbers of nothing real: it cannot show that Azure's demand looks like this,
// nor that a model which forecasts it well would forecast Azure well.
func AzureLike(seed uint64, name string, region Region) (*Series, error) {
	v, ok := variants[name]
	if !ok {
		return nil, fmt.Errorf("%w: variant %q, known are single, fit, tight, over", ErrParameter, name)
	}
	if region < 0 || int(region) >= len(phases) {
		return nil, fmt.Errorf("%w: region %d, must be within 0 and %d", ErrParameter, region, len(phases)-1)
	}
	r := rand.New(rand.NewPCG(10*seed+uint64(region), 0)) //nolint:gosec // a simulation, to be repeated
	shift := 12 * phases[region]
	var events []event
	for bin := -warmUp; bin < syntheticBins; bin++ {
		local := bin + shift
		for range poisson(r, 4.16*envelope(local)*(.6+.4*hourOf(local))) {
			size := min(math.Ceil(v.scale*math.Exp(2.75+1.6*r.NormFloat64())), v.cap)
			together, life := r.Float64() < .7, v.life(r)
			for range int(size) {
				if !together {
					life = v.life(r)
				}
				at := float64(bin) + r.Float64()
				events = append(events, event{at, 1}, event{at + life, -1})
			}
		}
	}
	return &Series{Name: "azure-like " + name, Step: syntheticStep, Bins: binned(events)}, nil
}

// life draws a lifetime in bins.
func (v *variant) life(r *rand.Rand) float64 {
	mean := v.lives[0]
	switch u := r.Float64(); {
	case u >= .90:
		mean = v.lives[2]
	case u >= .55:
		mean = v.lives[1]
	}
	return mean * r.ExpFloat64()
}

// event is a change of demand at a time in bins.
type event struct{ at, tokens float64 }

// binned adds events up, and follows the running sum within each bin.
func binned(events []event) []predict.Bin {
	slices.SortFunc(events, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.tokens, b.tokens))
	})
	bins := make([]predict.Bin, syntheticBins)
	for _, e := range events {
		if e.at >= 0 && e.at < syntheticBins {
			b := &bins[int(e.at)]
			b.Net += e.tokens
			b.Peak = max(b.Peak, b.Net)
		}
	}
	return bins
}

// poisson draws by counting exponential gaps; mean is small.
func poisson(r *rand.Rand, mean float64) int {
	n := 0
	for sum := r.ExpFloat64(); sum < mean; sum += r.ExpFloat64() {
		n++
	}
	return n
}

// NearPeriodic draws a month of signed demand that repeats itself from day to
// day but for noise and bursts, acquires and releases by turns, with the paper's
// mean and maximum (624 and 3118 tokens). The paper's order of models (Table 4)
// shows on it because it is built so: it is for testing models. It says nothing
// of any real demand, and is not for replay as what is held.
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
