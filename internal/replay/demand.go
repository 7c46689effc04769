package replay

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/samya-db/samya/internal/trace"
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
var regions = [trace.Regions]core.SiteID{"us", "as", "eu", "au", "sa"}

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
	// Region is whose site is asked, an index of the trace's regions.
	Region trace.Region
}

// Demand is what is asked for in a run. It is not changed once it is drawn.
type Demand struct {
	Workload string
	Seed     uint64
	// Span is the length of the run: nothing is asked for later.
	Span time.Duration
	// Leases are in the order of their Due.
	Leases []Lease
	// History is what each region's site would have seen before the run had all
	// been granted, in bins of the trace; nil unless Recall was called.
	History [trace.Regions][]predict.Bin
}

// Draw draws the demand of a workload from a seed: the first bins of the run,
// at least 1 and at most MaxBins.
func Draw(workload string, seed uint64, bins int) (*Demand, error) {
	if !slices.Contains(workloads, workload) {
		return nil, fmt.Errorf("workload %q, known are %v", workload, workloads)
	}
	if bins < 1 || bins > MaxBins {
		return nil, fmt.Errorf("%d bins, must be within 1 and %d", bins, MaxBins)
	}
	d := &Demand{Workload: workload, Seed: seed, Span: time.Duration(bins) * Bin}
	for r := range trace.Region(trace.Regions) {
		leases, err := trace.AzureLikeLeases(seed, workload, r)
		if err != nil {
			return nil, fmt.Errorf("drawing the demand of region %d: %w", r, err)
		}
		for l := range leases {
			if l.At >= float64(firstBin+bins)+1 {
				break
			}
			due := inRun(l.At - firstBin)
			if due >= 0 && due < d.Span {
				d.Leases = append(d.Leases, Lease{Due: due, Hold: turnaround + inRun(l.Life), Region: r})
			}
		}
	}
	slices.SortStableFunc(d.Leases, func(a, b Lease) int { return cmp.Compare(a.Due, b.Due) })
	return d, nil
}

// Recall draws the History: four days and 27.5 more, up to the run.
func (d *Demand) Recall() error {
	const wait = float64(turnaround) / float64(Bin)
	for r := range d.History {
		leases, err := trace.AzureLikeLeases(d.Seed, d.Workload, trace.Region(r))
		if err != nil {
			return fmt.Errorf("drawing the history of region %d: %w", r, err)
		}
		d.History[r] = trace.Bins(func(yield func(at float64, tokens int) bool) {
			for l := range leases {
				if l.At >= firstBin+1 || !yield(l.At, 1) || !yield(l.At+l.Life+wait, -1) {
					return
				}
			}
		}, trace.FirstBin, firstBin)
	}
	return nil
}

func inRun(bins float64) time.Duration { return time.Duration(bins * float64(Bin)) }

// Shape describes demand as it would be without a limit.
type Shape struct {
	// Transactions are acquires and the releases due within the run.
	Transactions int
	// Peaks are the most tokens that each region has out, by name.
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
	var releases eventQueue
	var out [trace.Regions]int
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
		for len(releases) > 0 && releases[0].at <= to {
			e := releases.pop()
			pass(e.at)
			out[e.site]--
			all--
			s.Transactions++
		}
		pass(to)
	}
	for i, l := range d.Leases {
		until(l.Due)
		all++
		out[l.Region]++
		s.Max = max(s.Max, all)
		name := string(regions[l.Region])
		s.Peaks[name] = max(s.Peaks[name], out[l.Region])
		if at := l.Due + l.Hold; at < d.Span {
			releases.push(event{at: at, seq: uint64(i), site: int8(l.Region)})
		}
	}
	until(d.Span)
	s.Mean = float64(area) / float64(d.Span)
	s.Above = float64(above) / float64(d.Span)
	return s
}
