package replay

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/samya-db/samya/lab/due"
	"github.com/samya-db/samya/lab/trace"
	"github.com/samya-db/samya/lab/virtual"
	"github.com/samya-db/samya/predict"
	"github.com/samya-db/samya/site/core"
)

const (
	// Bin is the length of a bin of the trace in the run.
	Bin = 5 * time.Second
	// firstBin is the bin of the trace at the start of the run, a Sunday's noon in
	// the US. A run takes MaxBins at most. Models may train on all earlier bins.
	firstBin = 7920
	// MaxBins is the longest run, an hour.
	MaxBins = 720
	// binsADay is the number of bins in a day of the trace, the length of its
	// season.
	binsADay = 288
	// turnaround is the least time that a token is held, added to its lifetime.
	turnaround = 50 * time.Millisecond
	// Limit is the default limit of the only entity.
	Limit core.Tokens = 5000
)

// regions are the names of the trace's regions, in order.
var regions = [trace.Regions]string{"us", "as", "eu", "au", "sa"}

// workloads are the workloads of the trace in which five regions share a limit.
var workloads = []string{"fit", "tight", "burst", "over", "batch"}

// Workloads returns the names that Draw knows.
func Workloads() []string { return slices.Clone(workloads) }

// Lease is an acquire of a token and, if it is granted, its release.
type Lease struct {
	// Due is the time of the acquire, since the start of the run.
	Due time.Duration
	// Hold is the time from Due to the release. If the grant comes later, the
	// release comes with the grant.
	Hold time.Duration
	// Place is the place of the asked site.
	Place virtual.Place
}

// Demand is the requests of a run. It does not change once it is drawn.
type Demand struct {
	Workload string
	Seed     uint64
	// Span is the length of the run: no request comes later.
	Span time.Duration
	// Leases are in the order of their Due.
	Leases []Lease
	// Places are the regions of the asked places, by their numbers; nil for a place
	// in each region of the trace.
	Places []string
	// History is the demand before the run at each place, in bins of the trace, with
	// all requests granted; nil unless Recall was called.
	History [][]predict.Bin
	// Bin is the length of a bin of the trace; 0 for the constant Bin.
	Bin time.Duration
	// Day is the number of bins of the trace in a day; 0 for 288.
	Day int
	// Reads are in the order of their Due.
	Reads []Read
	// reads is the share of reads among the requests.
	reads float64
	// recall finds the history; nil for none.
	recall func(*Demand) ([][]predict.Bin, error)
}

// bin returns the length of a bin of the trace.
func (d *Demand) bin() time.Duration { return cmp.Or(d.Bin, Bin) }

// places returns the regions of all places.
func (d *Demand) places() []string {
	if d.Places != nil {
		return d.Places
	}
	return regions[:]
}

// Draw draws the demand of a workload from a seed: the first bins of the run,
// at least 1 and at most MaxBins.
func Draw(workload string, seed uint64, bins int) (*Demand, error) {
	return DrawPlaces(workload, seed, bins, len(regions))
}

// Regions is the number of regions of the trace.
const Regions = trace.Regions

// MaxPlaces is the most places of a demand.
const MaxPlaces = 100

// DrawPlaces is Draw for any number of places. Place k is in region k modulo 5. It
// has the local time of the region and its own demand, as large as the demand of
// any other place.
func DrawPlaces(workload string, seed uint64, bins, places int) (*Demand, error) {
	if !slices.Contains(workloads, workload) {
		return nil, fmt.Errorf("workload %q, known are %v", workload, workloads)
	}
	if bins < 1 || bins > MaxBins {
		return nil, fmt.Errorf("%d bins, must be within 1 and %d", bins, MaxBins)
	}
	if places < 1 || places > MaxPlaces {
		return nil, fmt.Errorf("%d places, must be within 1 and %d", places, MaxPlaces)
	}
	d := &Demand{Workload: workload, Seed: seed, Span: time.Duration(bins) * Bin, Places: make([]string, places), recall: recallDrawn}
	for p := range d.Places {
		d.Places[p] = regions[p%len(regions)]
		leases, err := d.drawn(p)
		if err != nil {
			return nil, fmt.Errorf("drawing the demand of place %d: %w", p, err)
		}
		for l := range leases {
			if l.At >= float64(firstBin+bins)+1 {
				break
			}
			due := inRun(l.At - firstBin)
			if due >= 0 && due < d.Span {
				d.Leases = append(d.Leases, Lease{Due: due, Hold: turnaround + inRun(l.Life), Place: virtual.Place(p)})
			}
		}
	}
	d.sort()
	return d, nil
}

func (d *Demand) sort() {
	slices.SortStableFunc(d.Leases, func(a, b Lease) int { return cmp.Compare(a.Due, b.Due) })
}

// drawn returns the leases of the trace for a place.
func (d *Demand) drawn(place int) (iter.Seq[trace.Lease], error) {
	return trace.AzureLikeLeasesOf(d.Seed, d.Workload, trace.Region(place%len(regions)), uint64(place/len(regions))) //nolint:gosec // few places
}

// Recall finds the History up to the run: for a drawn demand, four days and 27.5
// more.
func (d *Demand) Recall() error {
	if d.recall == nil {
		return nil
	}
	history, err := d.recall(d)
	if err != nil {
		return err
	}
	d.History = history
	d.thinHistory(1 - d.reads)
	return nil
}

func recallDrawn(d *Demand) ([][]predict.Bin, error) {
	const wait = float64(turnaround) / float64(Bin)
	history := make([][]predict.Bin, len(d.places()))
	for p := range history {
		leases, err := d.drawn(p)
		if err != nil {
			return nil, fmt.Errorf("drawing the history of place %d: %w", p, err)
		}
		history[p] = trace.Bins(func(yield func(at float64, tokens int) bool) {
			for l := range leases {
				if l.At >= firstBin+1 || !yield(l.At, 1) || !yield(l.At+l.Life+wait, -1) {
					return
				}
			}
		}, trace.FirstBin, firstBin)
	}
	return history, nil
}

func inRun(bins float64) time.Duration { return time.Duration(bins * float64(Bin)) }

// day returns the number of bins in a day.
func (d *Demand) day() int { return cmp.Or(d.Day, binsADay) }

// Shape describes demand without a limit.
type Shape struct {
	// Transactions are acquires and the releases due within the run.
	Transactions int
	// Peaks are the most tokens out at each place, by name.
	Peaks map[string]int
	// Mean and Max are the mean and the most tokens out in all regions together.
	Mean float64
	Max  int
	// Above is the share of time in which more tokens than Limit are out.
	Above float64
}

// Shape returns the shape of the demand.
func (d *Demand) Shape() Shape {
	s := Shape{Transactions: len(d.Leases), Peaks: make(map[string]int)}
	var releases due.Queue[time.Duration, virtual.Place]
	names := virtual.Names(d.places())
	out := make([]int, len(names))
	var all int
	var now, above, area time.Duration
	pass := func(to time.Duration) {
		area += time.Duration(all) * (to - now)
		if all > int(Limit) {
			above += to - now
		}
		now = to
	}
	until := func(to time.Duration) {
		for {
			next, ok := releases.Pop(to)
			if !ok {
				break
			}
			pass(next.At)
			out[next.What]--
			all--
			s.Transactions++
		}
		pass(to)
	}
	for _, l := range d.Leases {
		until(l.Due)
		all++
		out[l.Place]++
		s.Max = max(s.Max, all)
		name := names[l.Place]
		s.Peaks[name] = max(s.Peaks[name], out[l.Place])
		if at := l.Due + l.Hold; at < d.Span {
			releases.Push(at, l.Place)
		}
	}
	until(d.Span)
	s.Mean = float64(area) / float64(d.Span)
	s.Above = float64(above) / float64(d.Span)
	return s
}
