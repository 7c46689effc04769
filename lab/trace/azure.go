package trace

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/samya-db/samya/predict"
)

// Region is a region of the experiments: US, AS, EU, AU, SA.
type Region int

// Regions is the number of regions.
const Regions = len(phases)

// FirstBin is the first bin of leases; bins before bin 0 are the warm-up.
const FirstBin = -warmUp

// phases are the shifts of the regions' local time, in hours.
var phases = [...]int{0, 16, 8, 18, 5}

// Phase returns the hours by which the local time of a region is ahead.
func (r Region) Phase() int { return phases[r] }

// variant is the constants that differ between variants of AzureLike.
type variant struct {
	scale, cap float64
	// lives are the mean lifetimes of short, medium and long leases, in bins.
	lives [3]float64
	// within, if not 0, is the time in bins within which a deployment acquires all
	// tokens. If it is 0, each token comes at a random time of its deployment's bin.
	within float64
	// rate is the mean number of deployments a bin, before time of day and hour.
	rate float64
	// jobs are further demand beside the deployments.
	jobs []job
}

// deployments is the rate of all variants but batch.
const deployments = 4.16

var variants = map[string]variant{
	"single": {1, 1500, [3]float64{1, 5, 30}, 0, deployments, nil},
	"fit":    {.54, 300, [3]float64{1, 5, 30}, 0, deployments, nil},
	"tight":  {.54, 300, [3]float64{1, 6, 42}, 0, deployments, nil},
	// 0.3 s where a bin is replayed in 5 s.
	"burst": {.54, 300, [3]float64{1, 5, 30}, .3 / 5, deployments, nil},
	"over":  {.54, 300, [3]float64{1, 9, 70}, 0, deployments, nil},
	"batch": {.54, 300, [3]float64{1, 5, 30}, 0, deployments / 3, []job{hourly, nightly}},
}

// ErrParameter says that a synthetic series does not exist.
var ErrParameter = errors.New("no such synthetic series")

// Lease is the acquire of a token and the time for which it is held, both in bins
// of 300 s; 0 is Monday, midnight.
type Lease struct{ At, Life float64 }

// AzureLikeLeases draws the demand of AzureLike token by token. The bins of
// deployments never go back; within a bin the leases are in no order. The first bin
// is FirstBin.
func AzureLikeLeases(seed uint64, name string, region Region) (iter.Seq[Lease], error) {
	return AzureLikeLeasesOf(seed, name, region, 0)
}

// AzureLikeLeasesOf draws the demand of the nth place of a region, from 0, with the
// local time of the region and its own random source.
func AzureLikeLeasesOf(seed uint64, name string, region Region, nth uint64) (iter.Seq[Lease], error) {
	v, ok := variants[name]
	if !ok {
		known := strings.Join(slices.Sorted(maps.Keys(variants)), ", ")
		return nil, fmt.Errorf("%w: variant %q, known are %s", ErrParameter, name, known)
	}
	if region < 0 || int(region) >= Regions {
		return nil, fmt.Errorf("%w: region %d, must be within 0 and %d", ErrParameter, region, Regions-1)
	}
	return func(yield func(Lease) bool) {
		r := rand.New(rand.NewPCG(10*seed+uint64(region), nth)) //nolint:gosec // a simulation, to be repeated
		shift := 12 * phases[region]
		for bin := -warmUp; bin < syntheticBins; bin++ {
			local := bin + shift
			for range poisson(r, v.rate*envelope(local)*(.6+.4*hourOf(local))) {
				if !v.deployment(r, float64(bin), yield) {
					return
				}
			}
			for _, j := range v.jobs {
				if j.starts(local, region) && !j.run(r, float64(bin), yield) {
					return
				}
			}
		}
	}, nil
}

// deployment draws the leases of a deployment in a bin.
func (v *variant) deployment(r *rand.Rand, from float64, yield func(Lease) bool) bool {
	size := min(math.Ceil(v.scale*math.Exp(2.75+1.6*r.NormFloat64())), v.cap)
	together, life := r.Float64() < .7, v.life(r)
	width := 1.
	if v.within > 0 {
		from, width = from+r.Float64(), v.within
	}
	for range int(size) {
		if !together {
			life = v.life(r)
		}
		if !yield(Lease{At: from + width*r.Float64(), Life: life}) {
			return false
		}
	}
	return true
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

// AzureLike draws a month of demand for VMs. Deployments arrive by a Poisson
// process with a rate that follows the time of day and of the hour, and weekdays.
// Each deployment has ⌈lognormal⌉ tokens, and most of its tokens end together.
// Variant single is a large region. fit, tight and over are five regions that share
// a limit, with ever longer lifetimes. burst is fit with the tokens of a deployment
// acquired almost at once. batch is a third of fit, with jobs at fixed local times.
// region shifts the local time and draws anew.
//
// It has the character that the paper states of its trace (Section 5.1), but no
// real numbers. It cannot show that Azure's demand looks like this, nor that a
// model which forecasts it well would forecast Azure well.
func AzureLike(seed uint64, name string, region Region) (*Series, error) {
	leases, err := AzureLikeLeases(seed, name, region)
	if err != nil {
		return nil, err
	}
	changes := func(yield func(at float64, tokens int) bool) {
		for l := range leases {
			if !yield(l.At, 1) || !yield(l.At+l.Life, -1) {
				return
			}
		}
	}
	return &Series{Name: "azure-like " + name, Step: syntheticStep, Bins: Bins(changes, 0, syntheticBins)}, nil
}

// Bins sums up the changes of demand in the bins from first up to end, and follows
// the running sum within each bin. Changes come in any order, at times in bins;
// changes in other bins are left out. At the same time, releases count before
// acquires.
func Bins(changes iter.Seq2[float64, int], first, end int) []predict.Bin {
	// Acquires and releases of a bin are sorted apart: much faster than together.
	type changesOf struct{ acquires, releases []float64 }
	within := make([]changesOf, end-first)
	for at, tokens := range changes {
		if at < float64(first) || at >= float64(end) {
			continue
		}
		b := &within[int(math.Floor(at))-first]
		for ; tokens > 0; tokens-- {
			b.acquires = append(b.acquires, at)
		}
		for ; tokens < 0; tokens++ {
			b.releases = append(b.releases, at)
		}
	}
	bins := make([]predict.Bin, len(within))
	for i := range within {
		acquires, releases := within[i].acquires, within[i].releases
		slices.Sort(acquires)
		slices.Sort(releases)
		net, peak, released := 0, 0, 0
		for _, at := range acquires {
			for released < len(releases) && releases[released] <= at {
				released++
				net--
			}
			net++
			peak = max(peak, net)
		}
		bins[i] = predict.Bin{Net: float64(len(acquires) - len(releases)), Peak: float64(peak)}
		within[i] = changesOf{}
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
