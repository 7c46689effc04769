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
	// Bin is how long a bin of the trace takes in the run.
	Bin = 5 * time.Second
	// firstBin is the bin of the trace that the run begins with, a Sunday's noon
	// in the US; the run takes MaxBins at most. All earlier bins may be trained on.
	firstBin = 7920
	// MaxBins is the longest run, an hour.
	MaxBins = 720
	// binsADay is how long a day of the trace is: its seasons are those of days.
	binsADay = 288
	// turnaround is the least time that a token is held, added to its lifetime.
	turnaround = 50 * time.Millisecond
	// Limit is that of the one entity unless Options say otherwise.
	Limit core.Tokens = 5000
)

// regions are the names of the trace's regions, in its order.
var regions = [trace.Regions]string{"us", "as", "eu", "au", "sa"}

// workloads are those of the trace that five regions share a limit in.
var workloads = []string{"fit", "tight", "burst", "over", "batch"}

// Workloads lists the names that Draw knows.
func Workloads() []string { return slices.Clone(workloads) }

// Lease is an acquire of one token and, if it is granted, its release.
type Lease struct {
	// Due is when the acquire is made, since the start of the run.
	Due time.Duration
	// Hold is how long after that the release is made; if the grant comes even
	// later, then with the grant.
	Hold time.Duration
	// Place is whose site is asked.
	Place virtual.Place
}

// Demand is what is asked for in a run. It is not changed once it is drawn.
type Demand struct {
	Workload string
	Seed     uint64
	// Span is the length of the run: nothing is asked for later.
	Span time.Duration
	// Leases are in the order of their Due.
	Leases []Lease
	// Places are the regions of the places that are asked, by their numbers; nil for
	// one in each region of the trace.
	Places []string
	// History is what each place's site would have seen before the run had all been
	// granted, in bins of the trace; nil unless Recall was called.
	History [][]predict.Bin
	// Bin is how long a bin of the trace takes; 0 for the constant of that name.
	Bin time.Duration
	// Day is how many bins of the trace make a day; 0 for 288.
	Day int
	// Reads are in the order of their Due.
	Reads []Read
	// reads is the share of requests that are reads.
	reads float64
	// recall finds the history; nil if there is none.
	recall func(*Demand) ([][]predict.Bin, error)
}

// bin is how long a bin of the trace takes.
func (d *Demand) bin() time.Duration { return cmp.Or(d.Bin, Bin) }

// places are the regions of all places.
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

// Regions is how many regions the trace has.
const Regions = trace.Regions

// MaxPlaces is the most places that demand is drawn for.
const MaxPlaces = 100

// DrawPlaces is Draw for any number of places. Place k is in region k modulo 5: it
// has the local time of that region and a demand of its own, as large as that of
// others.
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

// drawn is what the trace has for a place.
func (d *Demand) drawn(place int) (iter.Seq[trace.Lease], error) {
	return trace.AzureLikeLeasesOf(d.Seed, d.Workload, trace.Region(place%len(regions)), uint64(place/len(regions))) //nolint:gosec // few places
}

// Recall finds the History, up to the run: of a drawn demand four days and 27.5
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

// day is how many bins make a day.
func (d *Demand) day() int { return cmp.Or(d.Day, binsADay) }

// Shape describes demand as it would be without a limit.
type Shape struct {
	// Transactions are acquires and the releases due within the run.
	Transactions int
	// Peaks are the most tokens that each place has out, by name.
	Peaks map[string]int
	// Mean and Max are of what all regions have out together.
	Mean float64
	Max  int
	// Above is the share of time in which that is above Limit.
	Above float64
}

// Shape computes it.
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
