// Package libralab simulates a store of ranges of keys over nodes in virtual time, to
// compare ways to balance processor and disk load (package kvpart/libra). It knows skewed
// workloads, stale and noisy measurements, and the time of moves and splits. It computes
// loads of ranges and does not simulate requests, so that it knows no latency. It depends
// on its seeds alone.
package libralab

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/samya-db/samya/kvpart/libra"
)

// errConfig says that a field of a Config is out of its range.
var errConfig = errors.New("bad configuration")

// Splits says how a region is split.
type Splits uint8

// The ways to split.
const (
	// byLoad splits at keys that a sample of requests gives: the paper's L-split.
	byLoad Splits = iota
	// BySize splits at the middle key: the paper's S-split.
	BySize
	// Never does not split.
	Never
	// ByRate splits at the middle of the requests whatever has more than a fixed rate of
	// requests, and asks no policy: as the paper's store does on its own.
	ByRate
)

// Policy is a way to balance. The zero value is the product's.
type Policy struct {
	// Name is for people.
	Name string
	// Off balances nothing.
	Off    bool
	Rule   libra.Rule
	Weight float64 // of the processor, of libra.Weighted
	Eager  bool
	// Printed applies the conditions as the paper prints them.
	Printed bool
	// Parallel runs a scheduler for each dimension at once. Neither knows of the moves of
	// the other before they end. Rule is libra.Isolated.
	Parallel bool
	Splits   Splits
	// Unguarded balances while loads fluctuate.
	Unguarded bool
}

// Config is a run.
type Config struct {
	Nodes    int // 4 to 64
	Workload *Workload
	Policy   Policy
	// Tolerance is λ, as in libra.Options.
	Tolerance float64
	// Begin, Shift and End are seconds: when balancing begins, how long a hot spot lasts (0
	// for ever), and when the run ends.
	Begin, Shift, End int
	// Noise is the error of a measurement, as a share: 0 to .5.
	Noise float64
	// Drift is the error of the cost of a write over a read, as a share: -.5 to .5.
	Drift float64
	// Merge merges cold regions.
	Merge bool
	// Handover lets a region go to a node with a replica of it as well: the nodes change
	// roles, and copy nothing.
	Handover bool
}

func (c *Config) check() error {
	bad := func(field, want string, v any) error {
		return fmt.Errorf("%w: %s of %v, want %s", errConfig, field, v, want)
	}
	switch {
	case c.Nodes <= replicas || c.Nodes > 64:
		return bad("nodes", "4 to 64", c.Nodes)
	case c.Workload == nil:
		return bad("workload", "one", nil)
	case c.Begin < 0 || c.End < 1 || c.End > 1<<20:
		return bad("end", "1 to 1048576, after a beginning of 0 or more", c.End)
	case c.Shift < 0:
		return bad("shift", "0 or more", c.Shift)
	case !(c.Noise >= 0 && c.Noise <= .5):
		return bad("noise", "0 to .5", c.Noise)
	case !(c.Drift >= -.5 && c.Drift <= .5):
		return bad("drift", "-.5 to .5", c.Drift)
	case c.Policy.Parallel && c.Policy.Rule != libra.Isolated:
		return bad("rule", "2d-iso if parallel", c.Policy.Rule)
	}
	return nil
}

// heartbeat is the time between two measurements, in seconds.
const heartbeat = 10

// The limits of a region and of its moves. A node is the source of a single move at a time,
// and the destination of a single move.
const (
	regionBytes = 96 << 20
	moveSeconds = 2        // beside the time to copy
	moveBytes   = 50 << 20 // a second
	moveCPU     = .02      // of a node's mean, at both nodes
)

// region is neighbouring keys that move together.
type region struct {
	low, high int // keys
	node      int
	followers []int
	load      libra.Load // true
	flow      flow
	seen      libra.Load // measured, a mean
	windows   int        // measurements in the mean
	born      int        // when it was split off or merged, in seconds
	to        int        // where it moves to, or nowhere
	by        int        // the scheduler that moves it
	ready     int        // when the move or the sample ends
	split     *libra.Action
	solid     int // no split before this second: the last found no key
}

const nowhere = -1

// sim is a run.
type sim struct {
	Config
	now        int
	next       int // no operation ends before this second
	space      *space
	regions    []*region // by key
	rnd, draws *rand.Rand
	cost       float64 // true cost of a write over a read
	guard      libra.Guard
	queues     [][]move
	result     *Result
	reads      []float64 // of measure
	writes     []float64
}

// move is a move to make.
type move struct {
	*region
	to, by int
}

// Point is the state of a cluster at a heartbeat.
type Point struct {
	Second int
	// Served is the largest load of a node over the mean, by requests; Busy has the load of
	// moves as well.
	Served, Busy libra.Load
	Regions      int
}

// Result is the course and the cost of a run.
type Result struct {
	Points []Point
	// Moves, Splits and Merges count from the beginning; a split into k parts counts k - 1.
	Moves, Splits, Merges int
	// Rounds counts heartbeats at which regions were given to split.
	Rounds int
	Moved  float64 // bytes
}

// Do runs a configuration.
func Do(c *Config) (*Result, error) {
	s, err := begin(c)
	if err != nil {
		return nil, err
	}
	for ; s.now <= s.End; s.now++ {
		if err := s.second(); err != nil {
			return nil, fmt.Errorf("second %d: %w", s.now, err)
		}
	}
	return s.result, nil
}

// begin places regions of equal size at random, equally many on each node.
func begin(c *Config) (*sim, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	s := &sim{Config: *c, rnd: c.Workload.random(forNoise), draws: c.Workload.random(forSamples), result: &Result{}}
	s.cost = libra.WriteCost * (1 + c.Drift)
	s.queues = make([][]move, s.schedulers())
	rnd := c.Workload.random(forPlaces)
	low, bytes := 0, 0.
	const step = rangeKeys / 16
	for key := step; key <= allKeys; key += step {
		bytes += c.Workload.sizes[(key-1)/rangeKeys] * step
		if bytes >= regionBytes || key == allKeys {
			s.regions = append(s.regions, &region{low: low, high: key, to: nowhere, born: -heartbeat})
			low, bytes = key, 0
		}
	}
	for i, at := range rnd.Perm(len(s.regions)) {
		r := s.regions[at]
		r.node = i % c.Nodes
		for len(r.followers) < replicas-1 {
			if n := rnd.IntN(c.Nodes); n != r.node && !slices.Contains(r.followers, n) {
				r.followers = append(r.followers, n)
			}
		}
	}
	s.shift(0)
	return s, nil
}

// schedulers is the number of schedulers.
func (s *sim) schedulers() int {
	if s.Policy.Parallel {
		return 2
	}
	return 1
}

// shift moves the hot spots.
func (s *sim) shift(to int) {
	s.space = s.Workload.space(to, s.Nodes)
	for _, r := range s.regions {
		s.weigh(r)
	}
}

// weigh computes the true load of a region.
func (s *sim) weigh(r *region) {
	r.flow = s.space.between(r.low, r.high)
	r.load = libra.Load{libra.CPU: r.flow.reads + s.cost*r.flow.writes, libra.Disk: r.flow.bytes}
}

// second is a second of the run.
func (s *sim) second() error {
	if s.Shift > 0 && s.now > s.Begin && (s.now-s.Begin)%s.Shift == 0 {
		s.shift((s.now - s.Begin) / s.Shift)
	}
	s.finish()
	if s.now%heartbeat == 0 {
		steady := s.measure()
		s.record()
		if s.now >= s.Begin && !s.Policy.Off {
			if err := s.decide(steady); err != nil {
				return err
			}
		}
	}
	s.start()
	return nil
}

// record appends a point.
func (s *sim) record() {
	p := Point{Second: s.now, Regions: len(s.regions)}
	served, moves := make([]libra.Load, s.Nodes), make([]libra.Load, s.Nodes)
	var mean libra.Load
	for _, r := range s.regions {
		for _, d := range libra.Dimensions() {
			served[r.node][d] += r.load[d]
			mean[d] += r.load[d] / float64(s.Nodes)
		}
	}
	for _, r := range s.regions {
		if r.to != nowhere {
			for _, n := range []int{r.node, r.to} {
				moves[n][libra.CPU] += moveCPU
				moves[n][libra.Disk] += moveBytes / mean[libra.Disk]
			}
		}
	}
	for j := range served {
		for _, d := range libra.Dimensions() {
			l := served[j][d] / mean[d]
			p.Served[d], p.Busy[d] = max(p.Served[d], l), max(p.Busy[d], l+moves[j][d])
		}
	}
	s.result.Points = append(s.result.Points, p)
}
