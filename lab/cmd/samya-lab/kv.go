package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/kvpart"
	"github.com/samya-db/samya/kvpart/engine"
	"github.com/samya-db/samya/lab/kvlab"
	"github.com/samya-db/samya/lab/plot"
)

// kvOptions are the flags of kv.
type kvOptions struct {
	strategy, policy, backend string
	partitions, window, queue int
	every                     time.Duration
	share, sample, gain       float64
	interval                  int64
	replace                   bool
	place, scheduler, balance string
	tolerance, bandwidth      float64
	threads                   int
	dirs                      []string
	workloadDir               string
	load                      ycsbOptions
	duration                  time.Duration
	operations                int64
	valueSize                 int
	tick                      time.Duration
	csv, svg, profile         string
	bench, cost, table, dual  bool
	rounds                    int
	json                      bool
}

// The names of policies in the papers.
const (
	policySingle     = "single"
	policyRoundRobin = "round-robin"
)

var (
	kvStrategies = []kvpart.Strategy{kvpart.Bare, kvpart.Soft, kvpart.Hard, kvpart.Threaded, kvpart.HardThreaded}
	kvPolicies   = []string{policySingle, policyRoundRobin, string(kvpart.Base), string(kvpart.Async)}
)

// kvCommand is `samya-lab kv`.
func (l *lab) kvCommand() *cobra.Command {
	var o kvOptions
	cmd := &cobra.Command{
		Use:   "kv",
		Short: "Run a workload on the partitioned store that repartitions itself",
		Long: `Opens a store of package kvpart, loads it, runs a workload, and tells what an
operation costs and what repartitioning did meanwhile. The workload is one of YCSB,
or a folder of Repart-KV's files, one of each client (samya-lab ycsb writes them).
They are read as they are run. Records come from its file load.csv; without one,
every key of the others is written before.

  engine         one engine and one lock, without partitions
  soft           one engine; callers run their requests under locks of partitions
  hard           an engine for each partition and generation
  threaded       soft with a worker for each partition
  hard_threaded  hard with a worker for each partition

--scheduler chooses how threaded strategies run requests: by a worker for each
partition, or by early scheduling (kvpart/early), with barriers, busy-wait, thieves
(conservative to prefix), or a graph of dependencies (late). All but workers may
have several --threads.

  single         one partition
  round-robin    keys stay where they came first
  base           requests stand still during a cut, every --interval of them
  async          cuts are made while requests go on

--table measures the throughput of all strategies, policies and schedulers in turns,
on YCSB A and E and on the mixes of the paper on early scheduling.

--dual opens two engines on disks (--backend bbolt or pebble). All keys with requests
that compute begin on the first, all keys with requests that write on the second. It
measures each --balance, beside a placement by hand.

--bench measures processor time an operation in rounds that alternate between
strategies, engines and clients alone, and holds it against Repart-KV's. --cost
measures what repartitioning costs where it cannot help, and that --share bounds
it. Both fail if a goal is missed.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return l.kv(cmd, &o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.strategy, "strategy", string(kvpart.Soft), "engine, soft, hard, threaded or hard_threaded")
	f.StringVar(&o.policy, "policy", string(kvpart.Async), strings.Join(kvPolicies, ", "))
	f.StringVar(&o.backend, "backend", "btree", "engine of values: "+strings.Join(engine.Names(), ", "))
	f.StringVar(&o.place, "place", "", "where new keys go: round_robin, hash, together (those of a request), beside (their neighbours), or within (the range they fall into); empty: within with --balance libra, else beside with the policy async, else round_robin")
	f.StringVar(&o.scheduler, "scheduler", string(kvpart.Workers), "how threaded strategies run requests: workers, barriers, busy-wait, conservative, moderate, aggressive, optimistic, prefix or late")
	f.IntVar(&o.threads, "threads", 0, "threads of each shard or partition")
	f.StringSliceVar(&o.dirs, "dir", nil, "folders of the data of bbolt and pebble, one for all partitions or one for each (default: a temporary one)")
	f.IntVar(&o.partitions, "partitions", runtime.GOMAXPROCS(0), "partitions")
	f.IntVar(&o.window, "window", 0, "of how many of the last requests to know; 0 for no such bound")
	f.IntVar(&o.queue, "queue", 0, "how many requests may wait at a worker; 0 for 65536")
	f.DurationVar(&o.every, "every", time.Second, "least time between two cuts")
	f.Int64Var(&o.interval, "interval", 100_000, "requests between two cuts of base")
	f.Float64Var(&o.share, "share", 0, "most processor time of tracking and cutting, as a share of a core; 0 for 0.1, 1 for no bound")
	f.Float64Var(&o.sample, "track", 0, "share of requests to track; 0 adapts it to --share")
	f.Float64Var(&o.gain, "gain", 0, "by what share a map must be better to be applied; 0 for 0.02, below 0 applies each")
	f.StringVar(&o.balance, "balance", string(kvpart.BalanceGraph), "aim of a new map: graph (keys used together), libra (processor and disk load, by ranges), both, cpu or disk (a single load)")
	f.Float64Var(&o.tolerance, "tolerance", 0, "load of a partition above the mean to tolerate, as a share, with libra and both; 0 for 0.05")
	f.BoolVar(&o.replace, "replace", false, "place keys that a new map does not have as if they were new, as the paper's code does")
	f.StringVar(&o.workloadDir, "workload-dir", "", "run the files of this folder")
	f.StringVar(&o.load.workload, "ycsb", "", "run a workload of YCSB, A to F")
	o.load.mixFlags(cmd)
	f.IntVar(&o.load.clients, "clients", 8, "clients; of a folder, as many as it has files")
	f.DurationVar(&o.duration, "duration", 0, "how long to run (default: 10s for --ycsb without --operations, to the end of all files, 2.5s for each run of --bench, 5s of --cost)")
	f.Int64Var(&o.operations, "operations", 0, "operations of all clients together; 0 for no such bound")
	f.IntVar(&o.valueSize, "value-size", 1024, "bytes of a value")
	f.DurationVar(&o.tick, "tick", 250*time.Millisecond, "how often to take a sample for --csv and --svg")
	f.StringVar(&o.csv, "csv", "", "write samples over time to this file")
	f.StringVar(&o.svg, "svg", "", "draw to this SVG file: the samples")
	f.StringVar(&o.profile, "profile", "", "write a profile of the processor time to this file, for go tool pprof")
	f.BoolVar(&o.bench, "bench", false, "measure processor time an operation of all strategies instead")
	f.BoolVar(&o.table, "table", false, "measure the throughput of all strategies, policies and schedulers instead")
	f.BoolVar(&o.dual, "dual", false, "measure the throughput of each --balance where half of the keys compute and half write instead")
	f.Float64Var(&o.bandwidth, "disk-mib", 25, "bandwidth of the disk that each partition has with --dual, in MiB a second: writes wait for it; 0 leaves the disks as they are")
	f.BoolVar(&o.cost, "cost", false, "measure what repartitioning costs instead")
	f.IntVar(&o.rounds, "rounds", 5, "how often to measure each, with --bench, --table or --dual; with --cost at least 10")
	f.BoolVar(&o.json, "json", false, "print JSON, one line on stdout")
	return cmd
}

// kv runs the measurement that the flags name.
func (l *lab) kv(cmd *cobra.Command, o *kvOptions) error {
	if err := o.check(); err != nil {
		return &usageError{err}
	}
	if o.dual {
		return l.kvDual(cmd, o)
	}
	if o.bench || o.cost || o.table {
		return l.kvBench(cmd.Context(), o, cmd.Flags().Changed("every"))
	}
	return l.kvRun(cmd.Context(), o)
}

// check refuses flags out of range; Open checks the rest.
func (o *kvOptions) check() error {
	switch {
	case !slices.Contains(kvStrategies, kvpart.Strategy(o.strategy)):
		return fmt.Errorf("--strategy: no %q, known are %v", o.strategy, kvStrategies)
	case !slices.Contains(kvpart.Schedulers(), kvpart.Scheduler(o.scheduler)):
		return fmt.Errorf("--scheduler: no %q, known are %v", o.scheduler, kvpart.Schedulers())
	case !slices.Contains(kvpart.Balances(), kvpart.Balance(o.balance)):
		return fmt.Errorf("--balance: no %q, known are %v", o.balance, kvpart.Balances())
	case !slices.Contains(kvPolicies, o.policy):
		return fmt.Errorf("--policy: no %q, known are %v", o.policy, kvPolicies)
	case o.partitions < 1 || o.partitions > kvpart.MaxPartitions:
		return fmt.Errorf("--partitions must be within 1 and %d", kvpart.MaxPartitions)
	case o.valueSize < 0 || o.valueSize > kvpart.MaxValue:
		return fmt.Errorf("--value-size must be within 0 and %d", kvpart.MaxValue)
	case o.duration < 0 || o.duration > 24*time.Hour:
		return errors.New("--duration must be within 0s and 24h")
	case o.operations < 0 || o.operations > 1e12:
		return errors.New("--operations must be within 0 and 1000000000000")
	case o.tick < time.Millisecond || o.tick > time.Hour:
		return errors.New("--tick must be within 1ms and 1h")
	case o.rounds < 1 || o.rounds > 1000:
		return errors.New("--rounds must be within 1 and 1000")
	case o.measurements() > 1:
		return errors.New("--bench, --cost, --dual and --table: one of them")
	case o.measurements() == 0 && (o.workloadDir == "") == (o.load.workload == ""):
		return errors.New("--workload-dir or --ycsb: exactly one of them")
	}
	return nil
}

// measurements counts the flags that measure instead of a run.
func (o *kvOptions) measurements() int {
	n := 0
	for _, m := range []bool{o.bench, o.cost, o.table, o.dual} {
		if m {
			n++
		}
	}
	return n
}

// store returns the options of the store.
func (o *kvOptions) store() kvpart.Options {
	s := kvpart.Options{
		Strategy: kvpart.Strategy(o.strategy), Partitions: o.partitions, Backend: o.backend, Dirs: o.dirs, Queue: o.queue, Seed: o.load.seed, Place: kvpart.Placement(o.place),
		Scheduler: kvpart.Scheduler(o.scheduler), Threads: o.threads,
		Policy: kvpart.Policy{
			Window: o.window, Every: o.every, Gain: o.gain, Share: o.share, Sample: o.sample, Operations: o.interval, Replace: o.replace,
			Balance: kvpart.Balance(o.balance), Tolerance: o.tolerance,
		},
	}
	switch o.policy {
	case policySingle:
		s.Partitions, s.Policy = 1, kvpart.Policy{}
	case policyRoundRobin:
		s.Policy = kvpart.Policy{}
	default:
		s.Policy.Kind = kvpart.PolicyKind(o.policy)
	}
	if s.Strategy == kvpart.Bare {
		s.Partitions, s.Policy = 1, kvpart.Policy{}
	}
	return s
}

// openStore opens a store.
func openStore(o kvpart.Options) (kvlab.Store, error) {
	s, err := kvpart.Open(o)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// kvRun runs a workload on a store.
func (l *lab) kvRun(ctx context.Context, o *kvOptions) (err error) {
	w, err := o.sources()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	// Open reports an unknown backend.
	if f, err := engine.Lookup(o.backend); err == nil && f.Durable && len(o.dirs) == 0 {
		dir, err := os.MkdirTemp("", "samya-kv-*")
		if err != nil {
			return fmt.Errorf("make a folder for the data: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		o.dirs = []string{dir}
	}
	opened := o.store()
	s, err := openStore(opened)
	if errors.Is(err, kvpart.ErrOptions) {
		return &usageError{err}
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	progress := func(format string, args ...any) { _, _ = fmt.Fprintf(l.stderr, format+"\n", args...) } // progress may be lost
	progress("load %s", w.name)
	loaded, err := kvlab.Preload(ctx, s, w.preload, o.valueSize)
	if err != nil {
		return err
	}
	runtime.GC() // the run must not collect the garbage of loading
	stop, err := startProfile(o.profile)
	if err != nil {
		return err
	}
	told := time.Duration(0)
	r, err := kvlab.Run(ctx, s, &kvlab.Load{
		Clients: w.clients, ValueSize: o.valueSize, Duration: w.duration, Every: o.tick,
		Sampled: func(s kvlab.Sample) {
			if s.Elapsed-told < time.Second {
				return
			}
			told = s.Elapsed
			progress("%6.1fs %s operations, %s a second, %.1f %% on several partitions, %d new maps", s.Elapsed.Seconds(),
				plot.Number(float64(s.Operations)), plot.Number(float64(s.Operations)/s.Elapsed.Seconds()),
				100*float64(s.Multi)/float64(max(s.Ran, 1)), s.Applied)
		},
	})
	if errors.Is(err, kvlab.ErrEmpty) {
		err = fmt.Errorf("%s: %w", w.name, err)
	}
	if err := errors.Join(err, stop()); err != nil {
		return err
	}
	report := r.Report()
	report.Store, report.Policy, report.Workload = o.strategy+"/"+o.backend, o.policy, w.name
	report.Clients, report.ValueSize, report.Parts, report.Preloaded = len(w.clients), o.valueSize, opened.Partitions, loaded
	if err := write(o.csv, func(w io.Writer) error { return kvlab.WriteCSV(w, r.Samples) }); err != nil {
		return err
	}
	title := fmt.Sprintf("%s, %s, %d partitions, %s", report.Workload, report.Store, report.Parts, report.Policy)
	if err := write(o.svg, kvlab.Figure(title, r.Samples).WriteSVG); err != nil {
		return err
	}
	return l.tell(o.json, report)
}

// textReport is a report that prints itself as text.
type textReport interface{ WriteText(io.Writer) error }

// tell prints a report as JSON or as text.
func (l *lab) tell(asJSON bool, r textReport) error {
	if !asJSON {
		return r.WriteText(l.stdout)
	}
	if err := json.NewEncoder(l.stdout).Encode(r); err != nil {
		return fmt.Errorf("print the results: %w", err)
	}
	return nil
}

// startProfile begins a profile of processor time; an empty name begins none.
func startProfile(name string) (stop func() error, err error) {
	if name == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, fmt.Errorf("--profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(fmt.Errorf("--profile: %w", err), f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}

// The defaults of --bench and --cost: each run is long enough for some cuts, and
// allows the scans that a cut a second needs.
const (
	benchTime  = 2500 * time.Millisecond
	benchEvery = 800 * time.Millisecond
	benchShare = .25
	// tableTime is the time of a run of --table: there are a hundred in a round.
	tableTime = 500 * time.Millisecond
)

// kvBench measures costs. cuts reports whether --every was given.
func (l *lab) kvBench(ctx context.Context, o *kvOptions, cuts bool) error {
	began := time.Now()
	b := &kvlab.BenchOptions{
		Rounds: o.rounds, Clients: o.load.clients, Records: o.load.records, Operations: 2_000_000, ValueSize: o.valueSize,
		Time: benchTime, Partitions: o.partitions, Every: benchEvery, Share: benchShare, Seed: o.load.seed, Open: openStore,
		Progress: func(s string) { _, _ = fmt.Fprintf(l.stderr, "%6.1fs %s\n", time.Since(began).Seconds(), s) }, // may be lost
	}
	if o.cost {
		b.Time, b.Operations = 2*benchTime, 2*b.Operations // the policy needs a second to see that cuts do not help
	}
	if o.operations > 0 {
		b.Operations = int(o.operations)
	}
	if o.duration > 0 {
		b.Time = o.duration
	}
	if cuts {
		b.Every = o.every
	}
	if o.table {
		if o.duration == 0 {
			b.Time = tableTime
		}
		t, err := kvlab.RunTable(ctx, b)
		if err != nil {
			return err
		}
		return l.tell(o.json, t)
	}
	if o.share > 0 {
		b.Share = o.share
	}
	var report textReport
	var goals []kvlab.Goal
	if o.cost {
		r, err := kvlab.RunCost(ctx, b)
		if err != nil {
			return err
		}
		report, goals = r, r.Goals
	} else {
		r, err := kvlab.RunBench(ctx, b)
		if err != nil {
			return err
		}
		report, goals = r, r.Goals
	}
	if err := l.tell(o.json, report); err != nil {
		return err
	}
	if !kvlab.Met(goals) {
		return errGoals
	}
	return nil
}
