package kvlab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/samya-db/samya/kvpart"
	_ "github.com/samya-db/samya/kvpart/engine/hash" // a store of the table
	"github.com/samya-db/samya/lab/ycsb"
)

// Opener opens an empty store.
type Opener func(kvpart.Options) (Store, error)

// BenchOptions are the options of a measurement of costs.
type BenchOptions struct {
	Rounds  int // of all cases, each as good as any other: 5 for medians
	Clients int
	Records int
	// Time bounds a run, which ends before if all its operations are done:
	// Operations, or a third as many for scans.
	Time       time.Duration
	Operations int
	ValueSize  int
	Partitions int
	// Every is the least time between two cuts, Share the most processor time for
	// cuts, as in kvpart.Policy.
	Every    time.Duration
	Share    float64
	Seed     uint64
	Open     Opener
	Progress func(string)
}

// Case is a store under a workload.
type Case struct {
	Strategy kvpart.Strategy // "" for the control: clients without a store
	Backend  string
	Workload string // of YCSB, with scans of 2 to 8
	// Peer is Repart-KV's processor time an operation in µs, with two workers on two
	// cores; 0 if not measured. Both figures vary on shared machines.
	Peer float64
	// Bound is the bound of the figure in µs; 0 for none.
	Bound float64
}

func (c Case) String() string {
	if c.Strategy == "" {
		return "clients alone, " + c.Workload
	}
	return fmt.Sprintf("%s/%s, %s", c.Strategy, c.Backend, c.Workload)
}

// Cases returns the cases of Bench: engines alone, then stores on engines.
// Repart-KV keeps its values in an ordered map or a concurrent hash map, like btree
// and hash.
func Cases() []Case {
	return []Case{
		{Workload: "A"},
		{Workload: "E"},
		{Strategy: kvpart.Bare, Backend: "btree", Workload: "A", Peer: 1.4},
		{Strategy: kvpart.Bare, Backend: "btree", Workload: "E", Peer: 2.5},
		{Strategy: kvpart.Bare, Backend: "hash", Workload: "A"},
		{Strategy: kvpart.Soft, Backend: "btree", Workload: "A", Peer: 2.8, Bound: 2.8},
		{Strategy: kvpart.Soft, Backend: "btree", Workload: "E", Peer: 7.4, Bound: 7.4},
		{Strategy: kvpart.Hard, Backend: "btree", Workload: "A", Peer: 3.3},
		{Strategy: kvpart.Hard, Backend: "btree", Workload: "E", Peer: 9.5},
		{Strategy: kvpart.Hard, Backend: "hash", Workload: "A", Peer: 1.5, Bound: 1.5},
		{Strategy: kvpart.Threaded, Backend: "btree", Workload: "A", Peer: 7.5, Bound: 7.5},
		{Strategy: kvpart.Threaded, Backend: "btree", Workload: "E", Peer: 16},
	}
}

// Cost is the cost of a case.
type Cost struct {
	Case      string    `json:"case"`
	Processor float64   `json:"processor_us"` // an operation: the median of Rounds, clients included
	Net       float64   `json:"net_us"`       // without the time of the clients alone
	Rounds    []float64 `json:"rounds_us"`
	Rate      float64   `json:"operations_per_second"` // median
	Bare      float64   `json:"of_bare_engine,omitempty"`
	Peer      float64   `json:"peer_us,omitempty"`
	Map       float64   `json:"repartitioning_us,omitempty"` // an operation, of Processor: median
	Cuts      float64   `json:"cuts_per_second,omitempty"`   // median
	Multi     float64   `json:"multi_partition_share"`       // median
	PauseP99  float64   `json:"pause_p99_us,omitempty"`      // the longest of the rounds

	of Case
}

// Goal is a figure to reach, and the figure measured.
type Goal struct {
	What  string  `json:"what"`
	Bound float64 `json:"bound"` // Got must not be above it, or with Least not below
	Least bool    `json:"least,omitempty"`
	Got   float64 `json:"got"`
	Unit  string  `json:"unit"`
	Met   bool    `json:"met"`
}

func atMost(what string, got, bound float64, unit string) Goal {
	return Goal{What: what, Bound: bound, Got: got, Unit: unit, Met: got <= bound}
}

func atLeast(what string, got, bound float64, unit string) Goal {
	return Goal{What: what, Bound: bound, Got: got, Unit: unit, Met: got >= bound, Least: true}
}

// Met reports whether there are goals and all are met.
func Met(goals []Goal) bool {
	return len(goals) > 0 && !slices.ContainsFunc(goals, func(g Goal) bool { return !g.Met })
}

// Bench is the costs of all cases.
type Bench struct {
	Costs []*Cost `json:"costs"`
	Goals []Goal  `json:"goals"`
}

// bench is the workloads common to all runs.
type bench struct {
	*BenchOptions
	loads map[string]benchLoad
}

// benchLoad is a workload with its operations, by client.
type benchLoad struct {
	names []string // of the records to load
	ops   [][]ycsb.Op
}

func newBench(o *BenchOptions) *bench { return &bench{o, map[string]benchLoad{}} }

// load makes the operations of a workload, once.
func (b *bench) load(name string, distribution ycsb.Distribution) (benchLoad, error) {
	key := name + string(distribution)
	if l, ok := b.loads[key]; ok {
		return l, nil
	}
	mix, err := ycsb.MixOf(name)
	if err != nil {
		return benchLoad{}, err
	}
	if distribution != "" {
		mix.Distribution = distribution
	}
	w, err := ycsb.New(ycsb.Options{Mix: mix, Records: b.Records, Clients: b.Clients, ScanMin: 2, ScanMax: 8, Seed: b.Seed})
	if err != nil {
		return benchLoad{}, err
	}
	n := b.Operations / b.Clients
	if mix.Scan > 0 {
		n /= 3
	}
	l := benchLoad{w.Names(), Make(w, b.Clients, max(n, 1))}
	b.loads[key] = l
	return l, nil
}

// run runs a load once on a new store.
func (b *bench) run(ctx context.Context, o *kvpart.Options, l benchLoad) (r *Result, err error) {
	var s Store = nothing{}
	if o != nil {
		if s, err = b.Open(*o); err != nil {
			return nil, fmt.Errorf("open %s/%s: %w", o.Strategy, o.Backend, err)
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		if _, err := Preload(ctx, s, Writes(l.names), b.ValueSize); err != nil {
			return nil, err
		}
	}
	load := &Load{ValueSize: b.ValueSize, Duration: b.Time}
	for _, ops := range l.ops {
		load.Clients = append(load.Clients, Prepared(ops))
	}
	runtime.GC() // this run must not collect the garbage before it
	r, err = Run(ctx, s, load)
	if err == nil && o != nil && (r.NotFound > 0 || r.Values == 0 || r.Bytes != r.Values*int64(b.ValueSize)) {
		return nil, fmt.Errorf("%w: %d values of %d bytes together, %d not found", errShort, r.Values, r.Bytes, r.NotFound)
	}
	return r, err
}

// errShort says that a store did not return its values.
var errShort = errors.New("a store did not return what was written")

// policy cuts as often as Every and Share allow, whatever the gain. All else has
// its default.
func (b *bench) policy() kvpart.Policy {
	return kvpart.Policy{Kind: kvpart.Async, Every: b.Every, Share: b.Share, Gain: -1}
}

// RunBench measures all cases. Every second round runs backwards.
func RunBench(ctx context.Context, o *BenchOptions) (*Bench, error) {
	b := newBench(o)
	cases := Cases()
	results := make([][]*Result, len(cases))
	for round := range o.Rounds {
		for i := range cases {
			if round%2 == 1 {
				i = len(cases) - 1 - i
			}
			c := cases[i]
			o.Progress(fmt.Sprintf("round %d of %d: %s", round+1, o.Rounds, c))
			l, err := b.load(c.Workload, "")
			if err != nil {
				return nil, err
			}
			var opened *kvpart.Options
			if c.Strategy != "" {
				opened = &kvpart.Options{Strategy: c.Strategy, Backend: c.Backend, Partitions: o.Partitions, Seed: o.Seed, Policy: b.policy()}
			}
			if c.Strategy == kvpart.Bare {
				opened.Partitions, opened.Policy = 1, kvpart.Policy{}
			}
			r, err := b.run(ctx, opened, l)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c, err)
			}
			results[i] = append(results[i], r)
		}
	}
	told := &Bench{}
	alone, bare := map[string]float64{}, map[string]float64{}
	for i, c := range cases {
		told.Costs = append(told.Costs, costOf(c, results[i]))
		cost := told.Costs[i]
		switch c.Strategy {
		case "":
			alone[c.Workload] = cost.Processor
		case kvpart.Bare:
			bare[c.Backend+c.Workload] = cost.Processor
		}
		cost.Net = cost.Processor - alone[c.Workload]
		if under := bare[c.Backend+c.Workload]; c.Strategy != "" && under > 0 {
			cost.Bare = cost.Processor / under
		}
		if c.Bound > 0 {
			told.Goals = append(told.Goals, atMost(c.String(), cost.Processor, c.Bound, "µs"))
		}
		if c.Strategy != "" && c.Strategy != kvpart.Bare {
			told.Goals = append(told.Goals, atLeast(c.String()+": cuts a second", cost.Cuts, 1, ""))
		}
	}
	return told, nil
}

// costOf sums up the rounds of a case.
func costOf(c Case, results []*Result) *Cost {
	cost := &Cost{Case: c.String(), Peer: c.Peer, of: c}
	var rates, cuts, multi, maps []float64
	for _, r := range results {
		cost.Rounds = append(cost.Rounds, math.Round(r.PerOperation()*1e3)/1e3)
		rates, multi = append(rates, r.Rate()), append(multi, r.MultiShare())
		cuts = append(cuts, float64(r.Store.Computed)/r.Elapsed.Seconds())
		took := r.Store.TrackingTime + r.Store.CuttingTime
		maps = append(maps, float64(took.Nanoseconds())/1e3/float64(max(r.Operations, 1)))
		cost.PauseP99 = max(cost.PauseP99, float64(r.Store.Pause.P99.Nanoseconds())/1e3)
	}
	cost.Processor, cost.Rate, cost.Map = median(cost.Rounds), median(rates), median(maps)
	cost.Cuts, cost.Multi = median(cuts), median(multi)
	return cost
}

// median returns the middle of values, or the mean of the middle two.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// nothing is a store that does nothing, to measure the clients alone.
type nothing struct{}

func (nothing) Read(context.Context, string, []byte) ([]byte, error) { return nil, nil }
func (nothing) Write(context.Context, string, []byte) error          { return nil }
func (nothing) Scan(_ context.Context, _ string, _ int, dst []kvpart.Pair) ([]kvpart.Pair, error) {
	return dst, nil
}
func (nothing) Execute(context.Context, []string, func(kvpart.Tx) error) error { return nil }
func (nothing) Stats() kvpart.Stats                                            { return kvpart.Stats{} }
func (nothing) Close() error                                                   { return nil }
