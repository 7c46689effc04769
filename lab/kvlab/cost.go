package kvlab

import (
	"context"
	"fmt"
	"time"

	"github.com/samya-db/samya/kvpart"
	"github.com/samya-db/samya/lab/ycsb"
)

// Turn is a run without repartitioning and two runs with repartitioning.
type Turn struct {
	Off     float64 `json:"off_us"`
	Usual   float64 `json:"usual_us"`  // default policy: useless cuts become rarer
	Always  float64 `json:"always_us"` // a cut each second, whatever it brings
	Cuts    float64 `json:"cuts_per_second"`
	Usually float64 `json:"usual_cuts_per_second"`
}

// Overhead is the cost of repartitioning.
type Overhead struct {
	// Turns read all keys alike: no map is better than another.
	Turns []Turn `json:"turns"`
	// Usual and Always are medians of the extra time of an operation, as shares of
	// the time without repartitioning.
	Usual  float64  `json:"usual"`
	Always float64  `json:"always"`
	Shares []Shared `json:"shares"`
	Goals  []Goal   `json:"goals"`
}

// Shared is the cost of tracking and cutting under a bound.
type Shared struct {
	Workload string  `json:"workload"`
	Bound    float64 `json:"bound"` // shares of a core
	Got      float64 `json:"got"`
	OneCut   float64 `json:"one_cut"` // the share of the run that the mean cut took
	Cuts     int64   `json:"cuts"`
}

const (
	// mostMore bounds the extra time of an operation with repartitioning.
	mostMore = .03
	// alwaysShare is the Share of a policy that cuts each second, whatever the gain.
	// With two busy cores it stays below mostMore.
	alwaysShare = .05
	// leastTurns is the least number of turns for this goal.
	leastTurns = 10
	// leastCuts is the least number of cuts a second for this goal: a run may end
	// before its next cut.
	leastCuts = .5
	// shareSlack bounds the share of a run as a multiple of its bound. In addition,
	// a single cut may overdraw the share until it is paid back.
	shareSlack = 1.1
	// shareLonger is the length of a run for a share, in multiples: a share needs a
	// long run.
	shareLonger = 4
)

// RunCost measures the cost of repartitioning: uniform reads with it and without,
// in turns, and its share of a core under bounds while it always cuts.
func RunCost(ctx context.Context, o *BenchOptions) (*Overhead, error) {
	b := newBench(o)
	l, err := b.load("C", ycsb.Uniform)
	if err != nil {
		return nil, err
	}
	told := &Overhead{}
	run := func(p kvpart.Policy, l benchLoad) (*Result, error) {
		return b.run(ctx, &kvpart.Options{Strategy: kvpart.Soft, Backend: "btree", Partitions: o.Partitions, Seed: o.Seed, Policy: p}, l)
	}
	policies := []kvpart.Policy{{}, {Kind: kvpart.Async, Every: time.Second}, {Kind: kvpart.Async, Every: time.Second, Gain: -1, Share: alwaysShare}}
	var usual, always, cuts []float64
	turns := max(o.Rounds, leastTurns)
	for turn := range turns {
		o.Progress(fmt.Sprintf("turn %d of %d", turn+1, turns))
		var r [3]*Result
		for i := range r {
			at := (i + turn) % len(r) // each position comes first equally often
			if turn%2 == 1 {
				at = len(r) - 1 - at
			}
			if r[at], err = run(policies[at], l); err != nil {
				return nil, err
			}
		}
		t := Turn{
			Off: r[0].PerOperation(), Usual: r[1].PerOperation(), Always: r[2].PerOperation(),
			Usually: float64(r[1].Store.Computed) / r[1].Elapsed.Seconds(), Cuts: float64(r[2].Store.Computed) / r[2].Elapsed.Seconds(),
		}
		told.Turns = append(told.Turns, t)
		usual, always, cuts = append(usual, t.Usual/t.Off-1), append(always, t.Always/t.Off-1), append(cuts, t.Cuts)
	}
	told.Usual, told.Always = median(usual), median(always)
	told.Goals = append(told.Goals,
		atMost("uniform reads, repartitioning by default: more processor time", 100*told.Usual, 100*mostMore, "%"),
		atMost("uniform reads, a cut each second: more processor time", 100*told.Always, 100*mostMore, "%"),
		atLeast("cuts a second meanwhile", median(cuts), leastCuts, ""))
	longer := *o
	longer.Time *= shareLonger
	longer.Operations *= shareLonger
	b = newBench(&longer)
	for _, name := range []string{"A", "E"} {
		for _, share := range []float64{.02, .1} {
			o.Progress(fmt.Sprintf("%s with at most %v of a core", name, share))
			l, err := b.load(name, "")
			if err != nil {
				return nil, err
			}
			p := b.policy()
			p.Share, p.Every = share, 10*time.Millisecond
			r, err := run(p, l)
			if err != nil {
				return nil, err
			}
			got := (r.Store.TrackingTime + r.Store.CuttingTime).Seconds() / r.Elapsed.Seconds()
			one := r.Store.CuttingTime.Seconds() / float64(max(r.Store.Computed, 1)) / r.Elapsed.Seconds()
			told.Shares = append(told.Shares, Shared{Workload: name, Bound: share, Got: got, OneCut: one, Cuts: r.Store.Computed})
			told.Goals = append(told.Goals, atMost(fmt.Sprintf("%s, a cut each 10 ms wanted: %.0f %% of a core, and one cut", name, 100*share),
				100*got, 100*(share*shareSlack+one), "%"))
		}
	}
	return told, nil
}
