package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/samya-db/samya/internal/sim"
)

// simOptions are the flags of sim.
type simOptions struct {
	seeds, first uint64
	mode, faults string
	sites        int
	workers      int
	short        bool
	json         bool
}

// simCommand is `samya-lab sim`.
func (l *lab) simCommand() *cobra.Command {
	var o simOptions
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Simulate whole clusters under faults, one a seed",
		Long: `Runs the real core of every site, with its books and protocols, on simulated
networks, disks and clocks that fail, and checks every invariant at every event.
A seed is one cluster: two minutes or more under faults and load, then healing,
after which everything must come to rest. The same seed gives the same events.

A seed that does too little (below 2,000 requests, 10 redistributions, 10 faults)
is refused as trivial. More than one of them and more than 1 in 100 fail the run,
and so does a fault that never happened in 20 seeds or more. On a violation the
command tells the invariant, the seed and how to replay it; replayed alone, a seed
also tells what happened before.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return l.sim(cmd.Context(), &o) },
	}
	f := cmd.Flags()
	f.Uint64Var(&o.seeds, "seeds", 100, "how many seeds to run")
	f.Uint64Var(&o.first, "first", 1, "the first seed")
	f.StringVar(&o.mode, "mode", "majority", "protocol of all sites: majority, star or auto")
	f.IntVar(&o.sites, "sites", 5, "sites of a cluster; 0 lets the seed choose 1 to 5")
	f.StringVar(&o.faults, "faults", "all", "faults that may happen: all, none, or names separated by commas (partition* for all that begin so)")
	f.IntVar(&o.workers, "workers", 2, "seeds that run at a time")
	f.BoolVar(&o.short, "short", false, "shorter seeds, none refused as trivial")
	f.BoolVar(&o.json, "json", false, "print one line of JSON on stdout")
	return cmd
}

// simViolation is what --json tells of a violation.
type simViolation struct {
	Seed      uint64        `json:"seed"`
	Invariant sim.Invariant `json:"invariant"`
	Event     uint64        `json:"event"`
	Millis    int64         `json:"at_ms"`
	Detail    string        `json:"detail"`
	Replay    string        `json:"replay"`
}

// simResult is what --json prints, on one line.
type simResult struct {
	Mode       string `json:"mode"`
	Sites      int    `json:"sites"`
	First      uint64 `json:"first"`
	Seeds      uint64 `json:"seeds"`
	Trivial    uint64 `json:"trivial"`
	Violations int    `json:"violations"`
	// Invariant is that of the first violation, empty for none.
	Invariant       sim.Invariant `json:"invariant"`
	Events          uint64        `json:"events"`
	EventsPerSecond float64       `json:"events_per_second"`
	Simulated       float64       `json:"simulated_seconds"`
	Elapsed         float64       `json:"elapsed_seconds"`
	Processor       float64       `json:"processor_seconds"`
	Workers         int           `json:"workers"`
	// Speedup is simulated time against real time, of all workers; SpeedupCore
	// against the processor time of the whole program.
	Speedup     float64            `json:"speedup"`
	SpeedupCore float64            `json:"speedup_per_core"`
	Requests    int                `json:"requests"`
	Shares      map[string]float64 `json:"shares"`
	// Redistributions count what was begun, decided and aborted.
	Redistributions map[string]int `json:"redistributions"`
	Faults          map[string]int `json:"faults"`
	NotHit          []string       `json:"faults_not_hit"`
	NotCovered      []string       `json:"faults_not_covered"`
	Failures        []simViolation `json:"failures"`

	total   sim.Report
	trivial string
}

// maxFailures bounds the violations that are told one by one.
const maxFailures = 10

// enoughSeeds is how many seeds must hit every fault.
const enoughSeeds = 20

// sim runs the seeds asked for.
func (l *lab) sim(ctx context.Context, o *simOptions) error {
	faults, err := sim.ParseFaults(o.faults)
	if err != nil {
		return &usageError{fmt.Errorf("--faults: %w", err)}
	}
	options := sim.Options{Protocol: o.mode, Sites: o.sites, Faults: faults, Calm: faults == 0, Long: !o.short}
	if err := options.Validate(); err != nil {
		return &usageError{err}
	}
	if o.seeds < 1 || o.workers < 1 || o.workers > 256 {
		return &usageError{errors.New("--seeds must be at least 1, --workers within 1 and 256")}
	}
	r := &simResult{
		Mode: o.mode, Sites: o.sites, First: o.first, Workers: o.workers,
		NotHit: []string{}, NotCovered: sim.NotCovered(), Failures: []simViolation{},
	}
	// Little is live at any time: collecting it less often costs memory only.
	defer debug.SetGCPercent(debug.SetGCPercent(600))
	began, used := time.Now(), processorTime()
	err = l.runSeeds(ctx, o, options, r, began)
	l.progressDone()
	if err != nil {
		return fmt.Errorf("sim: %w", err)
	}
	r.Processor = (processorTime() - used).Seconds()
	r.sum(time.Since(began), faults)
	if o.json {
		err = json.NewEncoder(l.stdout).Encode(r)
	} else {
		err = r.tell(l.stdout)
	}
	switch {
	case err != nil:
		return fmt.Errorf("print the result: %w", err)
	case r.Violations > 0:
		return errViolated
	case r.Seeds >= enoughSeeds && len(r.NotHit) > 0:
		return fmt.Errorf("sim: faults that never happened: %s", strings.Join(r.NotHit, ", "))
	case r.Trivial > max(1, r.Seeds/100):
		return fmt.Errorf("sim: %d of %d seeds are trivial, the last with %s", r.Trivial, r.Seeds, r.trivial)
	}
	return nil
}

// runSeeds runs seeds on all workers.
func (l *lab) runSeeds(ctx context.Context, o *simOptions, options sim.Options, r *simResult, began time.Time) error {
	var mu sync.Mutex
	var told time.Time
	next := uint64(0)
	take := func() (uint64, bool) {
		mu.Lock()
		defer mu.Unlock()
		if next == o.seeds || r.Violations >= maxFailures || ctx.Err() != nil {
			return 0, false
		}
		next++
		return o.first + next - 1, true
	}
	var group errgroup.Group
	for range o.workers {
		group.Go(func() error {
			for seed, ok := take(); ok; seed, ok = take() {
				run := options
				run.Seed = seed
				report, err := sim.Run(run)
				v, violated := errors.AsType[*sim.Violation](err)
				if err != nil && !violated {
					return err
				}
				mu.Lock()
				r.add(o, run, report, v)
				if now := time.Now(); l.isTerminal() && now.Sub(told) > 200*time.Millisecond {
					told = now
					_, _ = fmt.Fprintf(l.stderr, "\r\x1b[K%s: %d of %d seeds, %d events, %.0f times real time, %d violations",
						o.mode, r.Seeds, o.seeds, r.total.Events, r.total.Simulated().Seconds()/now.Sub(began).Seconds(), r.Violations)
				}
				mu.Unlock()
			}
			return nil
		})
	}
	return cmp.Or(group.Wait(), context.Cause(ctx))
}

func (r *simResult) add(o *simOptions, run sim.Options, report sim.Report, v *sim.Violation) {
	r.Seeds++
	r.total.Add(report)
	if v == nil {
		if why := report.Trivial(run); run.Long && why != "" {
			r.Trivial++
			r.trivial = fmt.Sprintf("seed %d: %s", run.Seed, why)
		}
		return
	}
	r.Violations++
	if r.Invariant == "" {
		r.Invariant = v.Invariant
	}
	replay := fmt.Sprintf("samya-lab sim --mode %s --sites %d --faults %s --first %d --seeds 1", o.mode, o.sites, o.faults, v.Seed)
	if o.short {
		replay += " --short"
	}
	detail := v.Error()
	if o.seeds == 1 {
		detail += "\n" + v.Trace
	}
	r.Failures = append(r.Failures, simViolation{v.Seed, v.Invariant, v.Event, v.Millis, detail, replay})
}

// sum computes what is told from what was counted.
func (r *simResult) sum(elapsed time.Duration, faults sim.FaultSet) {
	t := &r.total
	r.Elapsed, r.Simulated = elapsed.Seconds(), t.Simulated().Seconds()
	r.Events, r.EventsPerSecond = t.Events, float64(t.Events)/r.Elapsed
	r.Speedup = r.Simulated / r.Elapsed
	r.SpeedupCore = r.Simulated / r.Processor
	r.Requests = t.Requests
	acquires := t.Acquires[sim.OfferSpare] + t.Acquires[sim.OfferAll]
	waited := t.Waited[sim.OfferSpare] + t.Waited[sim.OfferAll]
	r.Shares = map[string]float64{
		"granted":       share(t.Grants, t.Grants+t.Refusals),
		"refused":       share(t.Refusals, t.Grants+t.Refusals),
		"redistributed": share(t.Redistributed, t.Grants+t.Refusals),
		"waited":        share(waited, acquires),
		"waited_spare":  share(t.Waited[sim.OfferSpare], t.Acquires[sim.OfferSpare]),
		"waited_all":    share(t.Waited[sim.OfferAll], t.Acquires[sim.OfferAll]),
	}
	r.Redistributions = map[string]int{
		"begun": t.Begun, "decided": t.Instances + t.StarDecided, "aborted": t.Failed,
		"decided_majority": t.Instances, "decided_star": t.StarDecided, "aborted_star": t.StarAborted,
	}
	r.Faults = make(map[string]int)
	for _, f := range faults.List() {
		r.Faults[f.String()] = t.Faults[f]
	}
	for _, f := range t.MissingFaults(faults) {
		r.NotHit = append(r.NotHit, f.String())
	}
}

// processorTime is what the program has used of all processors so far.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0 // only told, never decided upon
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func share(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

// tell prints the result for people.
func (r *simResult) tell(w io.Writer) error {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-17s"+format+"\n", append([]any{name}, args...)...)
	}
	line("mode", "%s, %d sites", r.Mode, r.Sites)
	line("seeds", "%d from %d on, %d refused as trivial", r.Seeds, r.First, r.Trivial)
	line("events", "%d, %.0f a second", r.Events, r.EventsPerSecond)
	line("time", "%.0f s simulated in %.1f s: %.0f times real time, %.0f a core", r.Simulated, r.Elapsed, r.Speedup, r.SpeedupCore)
	line("redistributions", "%d begun, %d decided (%d by a majority, %d by their members), %d aborted",
		r.Redistributions["begun"], r.Redistributions["decided"], r.total.Instances, r.total.StarDecided, r.total.Failed)
	line("requests", "%d: of the acquires answered %.1f %% granted, %.1f %% of them all after a redistribution, %.1f %% refused",
		r.Requests, 100*r.Shares["granted"], 100*r.Shares["redistributed"], 100*r.Shares["refused"])
	line("waited", "%.1f %% of all acquires; %.1f %% where sites offer what they can spare, %.1f %% where they offer all",
		100*r.Shares["waited"], 100*r.Shares["waited_spare"], 100*r.Shares["waited_all"])
	name := "faults"
	for _, f := range sim.AllFaults.List() {
		if n, in := r.Faults[f.String()]; in {
			line(name, "%-18v %d", f, n)
			name = ""
		}
	}
	if len(r.NotHit) > 0 {
		line("never happened", "%s", strings.Join(r.NotHit, ", "))
	}
	line("not covered", "%s", strings.Join(r.NotCovered, ", "))
	line("violations", "%d", r.Violations)
	for _, v := range r.Failures {
		fmt.Fprintf(&b, "\n%s\nreplay: %s\n", v.Detail, v.Replay)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
