// Package earlyscheduling reruns the experiments of Batista et al., "Early scheduling on
// steroids: boosting parallel state machine replication", section 5, on package
// kvpart/early. It measures two ways: on the machine's own cores, and in virtual time
// with up to 32 threads. It does not compare absolute rates: the paper's machines, its
// language and its ordering protocol differ.
package earlyscheduling

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/samya-db/samya/kvpart/early"
	"github.com/samya-db/samya/lab/earlylab"
	"github.com/samya-db/samya/lab/experiment"
)

// Experiment is the evaluation of the paper.
var Experiment = experiment.Experiment{
	Name:  "early",
	Short: "Early scheduling: barriers, busy-wait and work stealing, with up to 32 threads",
	Long: `Reruns Figures 2 to 7 and 9 of the paper on early scheduling. Real runs use the cores
of this machine, in rounds beside a run on a single thread. Runs in virtual time step
the same schedulers with more threads than there are cores; the costs of the steps are
measured on this machine first.`,
	Brief: true,
	New: func(f *pflag.FlagSet) experiment.Run {
		o := &options{}
		o.flags(f)
		return o.run
	},
}

// options are the flags of the experiment.
type options struct {
	threads  []int
	writes   []float64
	rounds   int
	requests int
	keys     int
	budget   time.Duration
	costs    string
}

// The paper's lists, and its numbers of shards.
var (
	sizes  = []int{1_000, 10_000, 100_000}
	shards = []int{2, 4, 8}
)

// named are the names of the lists' costs.
var named = map[int]string{1_000: "light", 10_000: "moderate", 100_000: "heavy"}

func (o *options) flags(f *pflag.FlagSet) {
	f.IntSliceVar(&o.threads, "virtual-threads", []int{1, 2, 4, 8, 16, 32}, "threads in virtual time, ascending, each 1 to 64; the last a multiple of 8")
	f.Float64SliceVar(&o.writes, "write-shares", []float64{.01, .1, .5}, "shares of writes, ascending, each in 0 to 1")
	f.IntVar(&o.rounds, "rounds", 7, "how often to measure each")
	f.IntVar(&o.requests, "requests", 6_000, "requests of a round, on the light list; fewer on longer lists")
	f.IntVar(&o.keys, "keys", 1_000_000, "keys of all stores")
	f.DurationVar(&o.budget, "budget", 5*time.Minute, "begin no more after this time, of the real runs")
	f.StringVar(&o.costs, "costs", "", "take the costs of steps from this JSON file; measured and printed if empty")
}

// check refuses flags out of range.
func (o *options) check() error {
	bad := func(flag, want string) error {
		return fmt.Errorf("%w: --%s must be %s", experiment.ErrOptions, flag, want)
	}
	switch {
	case len(o.threads) == 0 || !slices.IsSorted(o.threads) || o.threads[0] < 1 || o.most() > 64 || o.most()%8 != 0:
		return bad("virtual-threads", "ascending in 1 to 64, and end with a multiple of 8")
	case len(o.writes) == 0 || !slices.IsSorted(o.writes) || !(o.writes[0] >= 0) || !(o.writes[len(o.writes)-1] <= 1):
		return bad("write-shares", "ascending in 0 to 1")
	case o.rounds < 1 || o.rounds > 1000:
		return bad("rounds", "in 1 to 1000")
	case o.requests < 100 || o.requests > 1_000_000:
		return bad("requests", "in 100 to 1000000")
	case o.keys < 1000 || o.keys > 10_000_000:
		return bad("keys", "in 1000 to 10000000")
	case o.budget <= 0 || o.budget > 24*time.Hour:
		return bad("budget", "above 0s and at most 24h")
	}
	return nil
}

// quick returns the smaller options of a quick run.
func (o options) quick() options {
	o.threads = slices.DeleteFunc(slices.Clone(o.threads), func(n int) bool { return n != 1 && n != 8 && n != o.most() })
	o.rounds, o.requests, o.keys = min(o.rounds, 2), min(o.requests, 800), min(o.keys, 100_000)
	o.budget = min(o.budget, 4*time.Second)
	return o
}

// most is the number of threads of the figures with a single number.
func (o *options) most() int { return o.threads[len(o.threads)-1] }

// run measures everything.
func (o *options) run(ctx context.Context, env *experiment.Env) (*experiment.Result, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	settled := *o
	if env.Quick {
		settled = o.quick()
	}
	m := &measured{
		options: &settled, env: env, work: make(map[load]*earlylab.Work),
		virtual: make(map[run]*earlylab.Played), real: make(map[load][]earlylab.Row),
	}
	if err := m.calibrate(); err != nil {
		return nil, err
	}
	if err := m.runVirtual(ctx); err != nil {
		return nil, err
	}
	if err := m.runReal(ctx); err != nil {
		return nil, err
	}
	return m.result(), nil
}

// measured is all measurements.
type measured struct {
	*options
	env     *experiment.Env
	costs   earlylab.Costs
	work    map[load]*earlylab.Work // by app, size and shards alone
	virtual map[run]*earlylab.Played
	real    map[load][]earlylab.Row
}

// load is an application and its requests.
type load struct {
	app                  string
	size, shards         int
	writes, global, skew float64
	// threads is the number of threads of all shards, and queue the number of requests that
	// may wait at each; 0 is longQueue.
	threads, queue int
}

// run is a load in a mode.
type run struct {
	load
	mode  string
	waits earlylab.Waits
	// single hands over a request at a time. cheap makes wakes ten times as cheap.
	single, cheap bool
}

// calibrate reads or measures the costs of steps.
func (m *measured) calibrate() error {
	if m.options.costs != "" {
		b, err := os.ReadFile(m.options.costs)
		if err != nil {
			return fmt.Errorf("%w: --costs: %w", experiment.ErrOptions, err)
		}
		if err := json.Unmarshal(b, &m.costs); err != nil {
			return fmt.Errorf("%w: --costs: %w", experiment.ErrOptions, err)
		}
		return nil
	}
	c, err := earlylab.Calibrate(m.env.Now, 20)
	if err != nil {
		return fmt.Errorf("measure the costs of steps: %w", err)
	}
	m.costs = *c
	return nil
}

// requestsOf is the number of requests of a run. Longer lists have fewer.
func (m *measured) requestsOf(l *load) int {
	switch {
	case l.app == earlylab.KV || l.shards > 1:
		return m.requests
	case l.size >= 100_000:
		return max(50, m.requests/10)
	case l.size >= 10_000:
		return max(50, m.requests/4)
	}
	return m.requests
}

// longQueue is the number of requests that may wait at a thread, and in the graph.
// shortQueue is the share of each of 32 threads of the requests of the paper's 200 clients.
const longQueue, shortQueue = 256, 6

// lab returns the options of package earlylab for a load.
func (m *measured) lab(l *load) *earlylab.Options {
	o := earlylab.Default()
	o.App, o.Size, o.Shards, o.Threads = l.app, l.size, l.shards, l.threads/l.shards
	o.Writes, o.Global, o.Skew = l.writes, l.global, l.skew
	o.Requests, o.Queue, o.Seed, o.Now, o.Rounds = m.requestsOf(l), cmp.Or(l.queue, longQueue), m.env.Seed, m.env.Now, 1
	return &o
}

// workOf measures the requests of a load once.
func (m *measured) workOf(l *load) *earlylab.Work {
	key := load{app: l.app, size: l.size}
	if l.app == earlylab.KV {
		key.shards = l.shards
	}
	if m.work[key] == nil {
		one := *l
		if l.app == earlylab.List {
			one.shards, one.threads = 1, 1
		}
		m.work[key] = m.lab(&one).MeasureWork(max(10, 300_000/l.size))
		if l.app == earlylab.KV {
			m.work[key] = m.lab(&one).MeasureWork(20_000)
		}
	}
	return m.work[key]
}

// runVirtual runs all cells in virtual time.
func (m *measured) runVirtual(ctx context.Context) error {
	cells := m.cells()
	for i, c := range cells {
		if err := context.Cause(ctx); err != nil {
			return fmt.Errorf("run in virtual time: %w", err)
		}
		v := &earlylab.Virtual{Sequential: c.mode == earlylab.Sequential, Waits: c.waits, Costs: m.costs, Work: *m.workOf(&c.load), Single: c.single}
		if c.cheap {
			v.Costs.Wake /= 10
			v.Costs.Handover /= 10
		}
		for _, mode := range early.Modes() {
			if mode.String() == c.mode {
				v.Mode = mode
			}
		}
		p, err := m.lab(&c.load).Virtual(ctx, v)
		if err != nil {
			return fmt.Errorf("%+v: %w", c, err)
		}
		m.virtual[c] = p
		m.env.Progress(i+1, len(cells), fmt.Sprintf("virtual time, %v: %.0f requests/s", &c, p.Rate))
	}
	return nil
}

// runReal measures all modes on the machine's cores.
func (m *measured) runReal(ctx context.Context) error {
	loads := m.realLoads()
	began := m.env.Now()
	for i, l := range loads {
		o := m.lab(&l)
		o.Rounds = m.rounds
		if l.app == earlylab.KV {
			o.Rounds = min(o.Rounds, 3) // each round makes all stores anew
		}
		if left := m.budget - m.env.Now().Sub(began); left <= 0 {
			return nil
		}
		rows, err := earlylab.Measure(ctx, o)
		if err != nil {
			return fmt.Errorf("%v: %w", &l, err)
		}
		m.real[l] = rows
		m.env.Progress(i+1, len(loads), fmt.Sprintf("real, %v: sequential %.0f requests/s", &l, rows[0].Rate))
	}
	return nil
}

// realThreads are the numbers of threads of real runs.
func realThreads() []int {
	if runtime.GOMAXPROCS(0) >= 8 {
		return []int{1, 2, 4, 8}
	}
	return []int{1, 2, 4}
}
