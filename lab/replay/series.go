package replay

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/samya-db/samya/lab/trace"
	"github.com/samya-db/samya/lab/virtual"
	"github.com/samya-db/samya/predict"
)

// SeriesOptions are the options of a demand from measurements.
type SeriesOptions struct {
	// Bins is the number of bins to play, the last of the measured bins; 0 for half
	// of them. The most is MaxBins. All bins before are for training.
	Bins int
	// Places is the number of places, each with its own draw and local time; 0 for
	// five.
	Places int
	// Scale is the number of tokens for a unit of the demand; 0 scales the most
	// tokens out to Part of the limit.
	Scale float64
	// Limit and Part are the scale's target; 0 for 5000 and 1.
	Limit, Part float64
	// Seed draws the times within a bin and, for counts, the lifetimes.
	Seed uint64
}

// countLives are the lifetimes for demand known by its count alone, as in workload
// fit: their shares and their means in bins.
var countLives = [...]struct{ share, mean float64 }{{.55, 1}, {.35, 5}, {.1, 30}}

// tokensABin is about the tokens that a place acquires in a bin, in a first draw.
const tokensABin = 20

// endless is the lifetime, in bins, of a lease without an end.
const endless = 1e6

// FromFile draws demand from a file: from every VM of the Azure public dataset if
// trace.IsVMTable says so, else from a column of a CSV file (see FromSeries).
func FromFile(path, column string, o SeriesOptions) (*Demand, error) {
	if !trace.IsVMTable(path) {
		s, err := trace.ReadFile(path, column)
		if err != nil {
			return nil, fmt.Errorf("demand from a series: %w", err)
		}
		return FromSeries(s, o)
	}
	vms, err := trace.ReadVMLeasesFile(path)
	if err != nil {
		return nil, fmt.Errorf("demand from a table of VMs: %w", err)
	}
	return FromVMs(vms, o)
}

// FromSeries draws demand from a series. If some bins are below zero, the bins are
// changes of the tokens held. A bin above zero acquires tokens at random times, and
// a bin below zero releases the tokens held longest. Otherwise the bins are counts
// of acquires, and each token has a lifetime drawn as in workload fit. A missing
// bin counts as zero.
func FromSeries(s *trace.Series, o SeriesOptions) (*Demand, error) {
	values := make([]float64, len(s.Bins))
	counts, sum := true, 0.
	for i, b := range s.Bins {
		if !math.IsNaN(b.Net) {
			values[i] = b.Net
		}
		counts = counts && values[i] >= 0
		sum += math.Abs(values[i])
	}
	m := &measured{o: o, name: s.Name, bins: len(values), step: s.Step, mean: sum / float64(len(values))}
	m.leases = func(scale float64, at func(i int) int, r *rand.Rand) []trace.Lease {
		if counts {
			return countedLeases(values, scale, at, r)
		}
		return changedLeases(values, scale, at, r)
	}
	return m.demand()
}

// FromVMs draws demand from VMs. Each VM is a lease of its own lifetime, acquired
// at a random time of the bin of its creation. A Scale below 1 leaves out random
// VMs, a Scale above 1 repeats them.
func FromVMs(vms []trace.Lease, o SeriesOptions) (*Demand, error) {
	m := &measured{o: o, name: "vmtable", step: 300}
	for _, v := range vms {
		m.bins = max(m.bins, int(v.At)+1)
	}
	m.mean = float64(len(vms)) / float64(max(1, m.bins))
	m.leases = func(scale float64, at func(i int) int, r *rand.Rand) []trace.Lease {
		var leases []trace.Lease
		for _, v := range vms {
			for n := scale; n > 0; n-- {
				if n >= 1 || r.Float64() < n {
					leases = append(leases, trace.Lease{At: float64(at(int(v.At))) + r.Float64(), Life: v.Life + r.Float64()/2})
				}
			}
		}
		return leases
	}
	return m.demand()
}

// measured is measured demand.
type measured struct {
	o    SeriesOptions
	name string
	// bins is the number of bins, each of step seconds. mean is the mean change or
	// count of a bin.
	bins int
	step int64
	mean float64
	// leases draws the leases of a place. at maps a measured bin to its place in the
	// run; negative is for training.
	leases func(scale float64, at func(i int) int, r *rand.Rand) []trace.Lease
}

// demand draws the demand.
func (m *measured) demand() (*Demand, error) {
	o := &m.o
	switch {
	case m.bins < 2 || m.step <= 0 || m.mean == 0:
		return nil, fmt.Errorf("%d measured bins of %d s with a mean of %v, needs two that are not empty", m.bins, m.step, m.mean)
	case o.Bins < 0 || o.Bins > min(m.bins, MaxBins):
		return nil, fmt.Errorf("%d bins to be played, of %d, at most %d", o.Bins, m.bins, MaxBins)
	case o.Places < 0 || o.Places > MaxPlaces:
		return nil, fmt.Errorf("%d places, must be at most %d", o.Places, MaxPlaces)
	case !(o.Scale >= 0 && o.Limit >= 0 && o.Part >= 0):
		return nil, fmt.Errorf("scale %v, limit %v, part %v: none may be below zero", o.Scale, o.Limit, o.Part)
	}
	if o.Bins == 0 {
		o.Bins = min(m.bins/2, MaxBins)
	}
	if o.Places == 0 {
		o.Places = len(regions)
	}
	if o.Limit == 0 {
		o.Limit = float64(Limit)
	}
	if o.Part == 0 {
		o.Part = 1
	}
	scale := o.Scale
	if scale == 0 {
		// A second draw is near enough: draws of other sizes differ little.
		scale = min(1, tokensABin/m.mean)
		for range 2 {
			d := m.drawn(scale)
			most := d.Shape().Max
			if most == 0 {
				return nil, fmt.Errorf("nothing is held in the last %d bins", o.Bins)
			}
			scale *= o.Part * o.Limit / float64(most)
		}
	}
	return m.drawn(scale), nil
}

// at returns a function that maps a measured bin to its position in the run of a
// place. The place's local time is ahead: bins beyond the last are the first bins
// again.
func (m *measured) at(place int) func(i int) int {
	ahead := trace.Region(place%len(regions)).Phase() * int(time.Hour/time.Second) / int(m.step)
	first := m.bins - m.o.Bins
	return func(i int) int {
		at := (i - first - ahead) % m.bins
		if at < 0 {
			at += m.bins
		}
		if at >= m.o.Bins {
			at -= m.bins
		}
		return at
	}
}

// day returns the number of bins in a day, or -1 if a day is no whole number of
// bins: sites then look for no season.
func (m *measured) day() int {
	if day := (&trace.Series{Step: m.step}).Day(); day > 0 {
		return day
	}
	return -1
}

// place draws the leases of a place.
func (m *measured) place(place int, scale float64) []trace.Lease {
	r := rand.New(rand.NewPCG(m.o.Seed, 0x7372+uint64(place))) //nolint:gosec // a simulation, to be repeated
	return m.leases(scale, m.at(place), r)
}

// drawn draws the demand at a scale.
func (m *measured) drawn(scale float64) *Demand {
	d := &Demand{Workload: m.name, Seed: m.o.Seed, Day: m.day(), Span: time.Duration(m.o.Bins) * Bin, Places: make([]string, m.o.Places)}
	for p := range d.Places {
		d.Places[p] = regions[p%len(regions)]
		for _, l := range m.place(p, scale) {
			if due := inRun(l.At); due >= 0 && due < d.Span {
				d.Leases = append(d.Leases, Lease{Due: due, Hold: turnaround + inRun(l.Life), Place: virtual.Place(p)})
			}
		}
	}
	d.sort()
	d.recall = func(*Demand) ([][]predict.Bin, error) {
		history := make([][]predict.Bin, m.o.Places)
		for p := range history {
			leases := m.place(p, scale)
			history[p] = trace.Bins(func(yield func(at float64, tokens int) bool) {
				for _, l := range leases {
					if l.At < 0 && !(yield(l.At, 1) && yield(l.At+l.Life, -1)) {
						return
					}
				}
			}, m.o.Bins-m.bins, 0)
		}
		return history, nil
	}
	return d
}

// inOrder returns the measured bins in the order of the run.
func inOrder(bins int, at func(i int) int) []int {
	order := make([]int, bins)
	first := 0
	for i := range order {
		order[i] = i
		if at(i) < at(first) {
			first = i
		}
	}
	return slices.Concat(order[first:], order[:first])
}

// countedLeases draws leases from the count of each bin.
func countedLeases(counts []float64, scale float64, at func(i int) int, r *rand.Rand) []trace.Lease {
	var leases []trace.Lease
	owed := 0.
	for _, i := range inOrder(len(counts), at) {
		// The remainder comes in a later bin.
		for owed += scale * counts[i]; owed >= 1; owed-- {
			leases = append(leases, trace.Lease{At: float64(at(i)) + r.Float64(), Life: countedLife(r)})
		}
	}
	return leases
}

func countedLife(r *rand.Rand) float64 {
	u := r.Float64()
	mean := countLives[0].mean
	for _, l := range countLives {
		mean = l.mean
		if u -= l.share; u < 0 {
			break
		}
	}
	return mean * r.ExpFloat64()
}

// changedLeases draws leases from the change in each bin of the tokens held.
func changedLeases(changes []float64, scale float64, at func(i int) int, r *rand.Rand) []trace.Lease {
	var leases []trace.Lease
	// Leases from index held on are held, the oldest first.
	held, owed := 0, 0.
	for _, i := range inOrder(len(changes), at) {
		owed += scale * changes[i]
		n := int(math.Trunc(owed))
		owed -= float64(n)
		times := make([]float64, max(n, -n))
		for k := range times {
			times[k] = float64(at(i)) + r.Float64()
		}
		slices.Sort(times)
		for _, t := range times {
			switch {
			case n > 0:
				leases = append(leases, trace.Lease{At: t, Life: endless})
			case held < len(leases):
				leases[held].Life = t - leases[held].At
				held++
			}
		}
	}
	return leases
}
