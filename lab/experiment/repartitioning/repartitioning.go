// Package repartitioning reruns the experiments of Luiz and Mendizabal,
// "Lightweight asynchronous repartitioning for local state partitioned systems",
// section 5, on package kvpart: a single worker, keys dealt round-robin, cuts that
// stop the scheduler (Base) and cuts that do not (Async). It does not compare
// absolute rates: the paper's machine has sixteen cores.
package repartitioning

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/samya-db/samya/lab/experiment"
)

// Experiment is the comparison of the paper.
var Experiment = experiment.Experiment{
	Name:  "repartitioning",
	Short: "Cuts beside the requests against cuts that stop them, and none",
	Long: `Hands the requests of workloads A, D and E to the workers of a store in memory,
from one goroutine, under each policy of the paper: a single worker (SW), keys
dealt round-robin (RR), Base, which stops to cut every Δp requests, and Async,
plain, with a window of W requests and with queues of Q. Rounds alternate between
all; what is told are medians over them.`,
	New: func(f *pflag.FlagSet) experiment.Run {
		o := &options{}
		o.flags(f)
		return func(ctx context.Context, env *experiment.Env) (*experiment.Result, error) {
			return o.run(ctx, env, openStore)
		}
	},
}

// options are the flags of the experiment.
type options struct {
	workloads  []string
	workers    []int
	policies   string
	rounds     int
	records    int
	operations int
	inserts    bool
	valueSize  int
	inFlight   int
	every      time.Duration
	share      float64

	only *regexp.Regexp
}

// fewer is the ratio of requests on A and D, which name a single key, to requests
// on E.
const fewer = 5

func (o *options) flags(f *pflag.FlagSet) {
	f.StringSliceVar(&o.workloads, "workload", []string{"A", "D", "E"}, "workload: A, D, E")
	f.IntSliceVar(&o.workers, "partitions", []int{2, 4}, "partitions, each with a worker")
	f.StringVar(&o.policies, "only", "", "measure what matches this regular expression alone, such as ^(RR|Async W); "+dropName+" is the runs that show what a cut does to the throughput")
	f.IntVar(&o.rounds, "rounds", 5, "how often to measure each")
	f.IntVar(&o.records, "records", 100_000, "records that are there before")
	f.IntVar(&o.operations, "operations", 200_000, "operations of all clients together: of a run on E; on A and D five times as many")
	f.BoolVar(&o.inserts, "inserts", false, "E writes new keys, as YCSB and the code of the paper do; otherwise it updates, as the paper says")
	f.IntVar(&o.valueSize, "value-size", 1024, "bytes of a value; the paper's have 4096")
	f.IntVar(&o.inFlight, "in-flight", 1<<13, "requests under way at most; whatever Q is")
	f.DurationVar(&o.every, "every", 100*time.Millisecond, "least time between two cuts, of Async")
	f.Float64Var(&o.share, "share", .1, "most processor time of tracking and cutting, as a share of a core")
}

// check refuses flags out of range.
func (o *options) check() error {
	bad := func(flag, want string) error {
		return fmt.Errorf("%w: --%s must be %s", experiment.ErrOptions, flag, want)
	}
	for _, w := range o.workloads {
		if !slices.Contains([]string{"A", "D", "E"}, w) {
			return bad("workload", "of A, D and E, not "+w)
		}
	}
	for _, n := range o.workers {
		if n < 2 || n > 64 {
			return bad("partitions", "within 2 and 64")
		}
	}
	switch {
	case len(o.workloads) == 0:
		return bad("workload", "one at least")
	case len(o.workers) == 0:
		return bad("partitions", "one at least")
	case o.rounds < 1 || o.rounds > 1000:
		return bad("rounds", "within 1 and 1000")
	case o.records < 1000 || o.records > 1<<24:
		return bad("records", "within 1000 and 16777216")
	case o.operations < 1000 || o.operations > 1<<26:
		return bad("operations", "within 1000 and 67108864")
	case o.valueSize < 1 || o.valueSize > 1<<20:
		return bad("value-size", "within 1 and 1048576")
	case o.inFlight < 16 || o.inFlight > 1<<20:
		return bad("in-flight", "within 16 and 1048576")
	case o.every < 0 || o.every > time.Hour:
		return bad("every", "within 0s and 1h")
	case !(o.share > 0 && o.share <= 1):
		return bad("share", "above 0 and at most 1")
	}
	var err error
	if o.only, err = regexp.Compile(o.policies); err != nil {
		return fmt.Errorf("%w: --only: %w", experiment.ErrOptions, err)
	}
	return nil
}

// quick returns the smaller options of a quick run.
func (o options) quick() options {
	o.rounds, o.operations = min(o.rounds, 1), min(o.operations, 60_000)
	o.workers = o.workers[len(o.workers)-1:]
	return o
}

// collectAt is the growth of the heap between two collections, in per cent: the
// garbage of the load program must not count.
const collectAt = 400

// relaxCollector makes collections rare, and returns a function that restores the
// setting.
func relaxCollector() (undo func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	before := debug.SetGCPercent(collectAt)
	return func() { debug.SetGCPercent(before) }
}

// run measures all cells in alternated rounds.
func (o *options) run(ctx context.Context, env *experiment.Env, open opener) (*experiment.Result, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	settled := *o
	if env.Quick {
		settled = o.quick()
	}
	defer relaxCollector()()
	m := &measured{options: &settled, runs: make(map[cell][]*figures)}
	loads, err := settled.loads(env.Seed)
	if err != nil {
		return nil, err
	}
	s := &setting{
		valueSize: settled.valueSize, inFlight: settled.inFlight, every: settled.every, share: settled.share,
		seed: env.Seed, open: open, now: env.Now,
	}
	m.cells = settled.cells()
	drops := m.dropCells()
	if !settled.only.MatchString(dropName) {
		drops = nil
	}
	steps := settled.rounds * (len(m.cells) + len(drops))
	step := 0
	one := func(s *setting, c cell, l *load) error {
		f, err := s.measure(ctx, c, l)
		if err != nil {
			return err
		}
		m.runs[c] = append(m.runs[c], f)
		step++
		env.Progress(step, steps, fmt.Sprintf("%v: %s requests/s, %.1f s, %d switches", c, number(f.median), f.makespan.Seconds(), f.stats.Applied))
		return nil
	}
	for round := range settled.rounds {
		for i := range m.cells {
			c := m.cells[order(round, i, len(m.cells))]
			if err := one(s, c, loads[c.workload]); err != nil {
				return nil, err
			}
		}
		for i := range drops {
			c := drops[order(round, i, len(drops))]
			if err := one(s.forDrop(), c, loads[c.workload]); err != nil {
				return nil, err
			}
		}
	}
	return m.result()
}

// order returns the index at place i of a round of n. Every second round runs
// backwards: the last cell of a round comes first in the next.
func order(round, i, n int) int {
	if round%2 == 1 {
		return n - 1 - i
	}
	return i
}

// loads makes the workloads.
func (o *options) loads(seed uint64) (map[string]*load, error) {
	all := make(map[string]*load)
	for _, w := range append([]string{dropWorkload}, o.workloads...) {
		lo := loadOptions{workload: w, records: o.records, ops: o.operations * fewer, inserts: o.inserts, seed: seed}
		switch w {
		case "E":
			lo.ops = o.operations
		case dropWorkload:
			lo.workload, lo.ops, lo.uniform = "E", o.operations*dropLonger, true
		}
		l, err := newLoad(lo)
		if err != nil {
			return nil, err
		}
		all[w] = l
	}
	return all, nil
}

// cells returns the cells that the flags ask for.
func (o *options) cells() []cell {
	var all []cell
	for _, w := range o.workloads {
		for _, n := range o.workers {
			for _, v := range variants() {
				// A single worker runs once, not for each number of workers.
				if o.only.MatchString(v.name) && (!v.single || n == o.workers[0]) {
					all = append(all, cell{workload: w, workers: n, variant: v})
				}
			}
		}
	}
	return all
}

// setup describes the run.
func (o *options) setup() string {
	writes := "updates"
	if o.inserts {
		writes = "inserts"
	}
	return fmt.Sprintf("%s keys of %s bytes in a B-tree in memory, workloads %s of YCSB (Zipf 0.99; E: 95 %% scans of %d to %d keys, 5 %% %s), "+
		"%s requests a run on E and %s on A and D, handed over by one goroutine to one store of strategy `threaded`; medians of %d alternated rounds.",
		number(float64(o.records)), number(float64(o.valueSize)), strings.Join(o.workloads, ", "), scanMin, scanMax, writes,
		number(float64(o.operations)), number(float64(o.operations*fewer)), o.rounds)
}
