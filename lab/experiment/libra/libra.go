// Package libra reruns the experiments of Zhang et al., "Mitigating Dual Load Imbalance via
// Dynamic Cooperative Scheduling in Distributed Key-Value Stores", section V, on package
// kvpart/libra in the simulator of lab/libralab. It measures balance, moves and splits. It
// does not measure throughput and latency, which are of the paper's machines.
package libra

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/spf13/pflag"

	"github.com/samya-db/samya/kvpart/libra"
	"github.com/samya-db/samya/lab/experiment"
	"github.com/samya-db/samya/lab/libralab"
)

// Experiment is the evaluation of the paper.
var Experiment = experiment.Experiment{
	Name:  "libra",
	Short: "Libra: balance of processor and disk beside single, isolated and weighted schedulers",
	Long: `Reruns Figures 11, 15d, 16 to 18, 21 and 22 and Table II of the paper on Libra in
virtual time: a store of ranges with the paper's workload, noisy measurements, and moves
and splits that take time. Each goal is about the worst of all seeds.`,
	Brief: true,
	New: func(f *pflag.FlagSet) experiment.Run {
		o := &options{}
		o.flags(f)
		return o.run
	},
}

// options are the flags of the experiment.
type options struct {
	seeds     int
	nodes     int
	noise     float64
	drift     float64
	durations []int
	lambdas   []float64
	regions   int
	rounds    int
}

func (o *options) flags(f *pflag.FlagSet) {
	f.IntVar(&o.seeds, "draws", 5, "seeds of each run, the first is --seed; 1 to 100")
	f.IntVar(&o.nodes, "nodes", 8, "nodes, 4 to 64")
	f.Float64Var(&o.noise, "noise", .05, "error of a measurement as a share, 0 to 0.5")
	f.Float64Var(&o.drift, "drift", .1, "error of the cost of a write over a read as a share, -0.5 to 0.5")
	f.IntSliceVar(&o.durations, "durations", []int{1, 2, 5, 10, 20, 30}, "durations of hot spots in minutes, ascending, 1 to 60")
	f.Float64SliceVar(&o.lambdas, "lambdas", []float64{.01, .02, .03, .05, .075, .1, .15}, "tolerances, ascending, above 0 and below 1, with 0.05")
	f.IntVar(&o.regions, "splits", 500, "regions to split, 1 to 10000")
	f.IntVar(&o.rounds, "hot-spots", 7, "hot spots of Figure 18, 2 to 20")
}

// check refuses flags out of range.
func (o *options) check() error {
	bad := func(flag, want string) error {
		return fmt.Errorf("%w: --%s must be %s", experiment.ErrOptions, flag, want)
	}
	switch {
	case o.seeds < 1 || o.seeds > 100:
		return bad("draws", "in 1 to 100")
	case o.nodes < 4 || o.nodes > 64:
		return bad("nodes", "in 4 to 64")
	case !(o.noise >= 0 && o.noise <= .5):
		return bad("noise", "in 0 to 0.5")
	case !(o.drift >= -.5 && o.drift <= .5):
		return bad("drift", "in -0.5 to 0.5")
	case len(o.durations) < 2 || !slices.IsSorted(o.durations) || o.durations[0] < 1 || o.durations[len(o.durations)-1] > 60:
		return bad("durations", "two or more, ascending in 1 to 60")
	case len(o.lambdas) < 2 || !slices.IsSorted(o.lambdas) || !(o.lambdas[0] > 0) || !(o.lambdas[len(o.lambdas)-1] < 1) || !slices.Contains(o.lambdas, libra.DefaultTolerance):
		return bad("lambdas", "two or more, ascending, above 0 and below 1, with 0.05")
	case o.regions < 1 || o.regions > 10_000:
		return bad("splits", "in 1 to 10000")
	case o.rounds < 2 || o.rounds > 20:
		return bad("hot-spots", "in 2 to 20")
	}
	return nil
}

// quick returns the smaller options of a quick run.
func (o options) quick() options {
	o.seeds, o.regions, o.rounds = min(o.seeds, 2), min(o.regions, 200), min(o.rounds, 4)
	o.durations = []int{o.durations[0], o.durations[len(o.durations)-1]}
	o.lambdas = slices.DeleteFunc(slices.Clone(o.lambdas), func(l float64) bool { return l < .03 })
	return o
}

// The policies of the figures.
var (
	off        = libralab.Policy{Name: "none", Off: true}
	ours       = libralab.Policy{Name: "Libra"}
	eager      = libralab.Policy{Name: "Libra, not lazy", Eager: true}
	printed    = libralab.Policy{Name: "Libra as printed", Printed: true}
	onlyCPU    = libralab.Policy{Name: "1D-CPU", Rule: libra.OnlyCPU}
	onlyDisk   = libralab.Policy{Name: "1D-IO", Rule: libra.OnlyDisk}
	isolated   = libralab.Policy{Name: "2D-ISO", Rule: libra.Isolated, Parallel: true}
	turns      = libralab.Policy{Name: "2D-ISO in turns", Rule: libra.Isolated}
	bySize     = libralab.Policy{Name: "2D-ISO, S-split", Rule: libra.Isolated, Parallel: true, Splits: libralab.BySize}
	unguarded  = libralab.Policy{Name: "2D-ISO, while loads fluctuate", Rule: libra.Isolated, Parallel: true, Unguarded: true}
	weighted   = libralab.Policy{Name: "2D-WTD", Rule: libra.Weighted, Weight: .5}
	sizeSplits = libralab.Policy{Name: "S-split", Splits: libralab.BySize}
	noSplits   = libralab.Policy{Name: "no split", Splits: libralab.Never}
)

// stores returns a policy in a store that splits by the rate of requests on its own, and
// schedules while loads fluctuate.
func stores(p libralab.Policy) libralab.Policy {
	p.Name += ", store's splits"
	p.Splits, p.Unguarded = libralab.ByRate, true
	return p
}

// rivals are the policies of Figure 11 beside Libra.
func rivals() []libralab.Policy { return []libralab.Policy{onlyCPU, onlyDisk, isolated, weighted} }

// lineup is all policies that Figure 11's table has.
func lineup() []libralab.Policy {
	all := append([]libralab.Policy{off, ours, eager, printed}, rivals()...)
	all = append(all, turns, bySize, unguarded)
	for _, p := range rivals() {
		all = append(all, stores(p))
	}
	return all
}

// run is a cell of the experiment: a workload, a policy and its settings. Equal runs are run
// once.
type run struct {
	workload string // "run", "published", or a letter of YCSB
	policy   libralab.Policy
	nodes    int
	lambda   float64
	shift    int // minutes
	minutes  int // after the beginning
	noise    float64
	merge    bool
	handover bool
}

// The minutes of a run: the paper balances from the fourth minute on, is done by the 16th,
// and measures for ten minutes. Ours are measured ten minutes later, so that slower
// policies are done as well.
const (
	beginMinutes  = 4
	staticMinutes = 32
	lastMinutes   = 10
)

// static is a run with a hot spot that stays.
func (o *options) static(workload string, p libralab.Policy) run {
	return run{workload: workload, policy: p, nodes: o.nodes, minutes: staticMinutes, noise: o.noise, handover: workload == published}
}

// The names of Mixgraph's two skews.
const (
	skewed    = "run"
	published = "published"
)

// workload returns the workload of a run.
func (r *run) of(seed uint64) (*libralab.Workload, error) {
	switch r.workload {
	case skewed:
		return libralab.Mixgraph(libralab.Run, seed), nil
	case published:
		return libralab.Mixgraph(libralab.Published, seed), nil
	}
	return libralab.YCSB(r.workload, seed)
}

// measured is all measurements.
type measured struct {
	*options
	env      *experiment.Env
	letters  []string           // YCSB's core workloads
	sizes    []int              // numbers of nodes of Figure 19
	runs     map[run][]*outcome // by seed
	accuracy map[string][]libralab.Accuracy
}

// outcome is the outcome of a run with a seed.
type outcome struct {
	*libralab.Result
	last     libra.Load // mean Max/Mean of the last minutes
	balanced float64    // minutes until both dimensions are within the tolerance; NaN if never
}

// worse is the Max/Mean of the worse dimension.
func (o *outcome) worse() float64 { return max(o.last[libra.CPU], o.last[libra.Disk]) }

func (o *options) run(ctx context.Context, env *experiment.Env) (*experiment.Result, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	settled := *o
	if env.Quick {
		settled = o.quick()
	}
	m := &measured{options: &settled, env: env, letters: []string{"A", "B", "C", "D", "E", "F"}, sizes: []int{8, 12, 16}, runs: make(map[run][]*outcome), accuracy: make(map[string][]libralab.Accuracy)}
	if env.Quick {
		m.letters, m.sizes = []string{"A", "D"}, m.sizes[:1]
	}
	cells := m.cells()
	for i, r := range cells {
		if err := context.Cause(ctx); err != nil {
			return nil, fmt.Errorf("run in virtual time: %w", err)
		}
		for k := range m.seeds {
			one, err := m.do(&r, env.Seed+uint64(k))
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", r.workload, r.policy.Name, err)
			}
			m.runs[r] = append(m.runs[r], one)
		}
		env.Progress(i+1, len(cells)+1, fmt.Sprintf("%s, %s: %.3f", r.workload, r.policy.Name, m.mean(r, (*outcome).worse)))
	}
	if err := m.splits(); err != nil {
		return nil, err
	}
	env.Progress(len(cells)+1, len(cells)+1, "splits")
	return m.result(), nil
}

// do runs a cell with a seed.
func (m *measured) do(r *run, seed uint64) (*outcome, error) {
	w, err := r.of(seed)
	if err != nil {
		return nil, err
	}
	res, err := libralab.Do(&libralab.Config{
		Nodes: r.nodes, Workload: w, Policy: r.policy, Tolerance: r.lambda, Begin: beginMinutes * 60, Shift: r.shift * 60,
		End: (beginMinutes + r.minutes) * 60, Noise: r.noise, Drift: m.drift, Merge: r.merge, Handover: r.handover,
	})
	if err != nil {
		return nil, err
	}
	o := &outcome{Result: res, balanced: math.NaN()}
	bound := 1 + libra.DefaultTolerance + 1e-9
	n := 0.
	for i := range res.Points {
		p := &res.Points[i]
		if p.Second < beginMinutes*60 {
			continue
		}
		if math.IsNaN(o.balanced) && max(p.Served[libra.CPU], p.Served[libra.Disk]) <= bound {
			o.balanced = float64(p.Second)/60 - beginMinutes
		}
		if p.Second >= (beginMinutes+r.minutes-lastMinutes)*60 {
			n++
			for _, d := range libra.Dimensions() {
				o.last[d] += (p.Served[d] - o.last[d]) / n
			}
		}
	}
	return o, nil
}

// splits measures the accuracy of splits.
func (m *measured) splits() error {
	for _, name := range []string{skewed, "E"} {
		for _, share := range shares {
			var sum libralab.Accuracy
			for k := range m.seeds {
				w, err := (&run{workload: name}).of(m.env.Seed + uint64(k))
				if err != nil {
					return err
				}
				a, err := libralab.Split(w, m.nodes, m.regions, share)
				if err != nil {
					return fmt.Errorf("split %s at %v: %w", name, share, err)
				}
				for _, d := range libra.Dimensions() {
					sum.Load[d] += a.Load[d] / float64(m.seeds)
					sum.Size[d] += a.Size[d] / float64(m.seeds)
				}
			}
			m.accuracy[name] = append(m.accuracy[name], sum)
		}
	}
	return nil
}

// shares are the wanted shares of Figure 16.
var shares = []float64{.1, .2, .3, .4, .5}
