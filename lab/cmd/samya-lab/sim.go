package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/samya-db/samya/lab/sim"
)

// simOptions are the flags of sim.
type simOptions struct {
	seeds, first uint64
	budget       time.Duration
	mode, faults string
	offer        string
	strategy     string
	nodes        string
	perSeed      bool
	sites        int
	bounds       int
	history      int
	workers      int
	short, trees bool
	joins        bool
	leaves       bool
	losses       bool
	rates        bool
	upgrades     bool
	sessions     bool
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

A seed that does too little (below 2,000 requests, 10 redistributions, 10 faults,
or no crash with a direct transfer under way) is refused as trivial, and named. More
than two of them and more than 1 in 100 fail the run, and so does a fault that never
happened in 20 seeds or more, or never while a direct transfer was under way. On a violation the
command tells the invariant, the seed and how to replay it; replayed alone, a seed
also tells what happened before.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return l.sim(cmd.Context(), &o) },
	}
	f := cmd.Flags()
	f.Uint64Var(&o.seeds, "seeds", 100, "how many seeds to run")
	f.Uint64Var(&o.first, "first", 1, "the first seed")
	f.DurationVar(&o.budget, "budget", 0, "begin no more after this time; 0 runs all of --seeds")
	f.StringVar(&o.mode, "protocol", "majority", "how redistributions are agreed: majority, star or auto; switch: the administrator switches it all the time")
	f.IntVar(&o.sites, "sites", 5, "sites of a cluster; 0 lets the seed choose 1 to 5")
	f.IntVar(&o.bounds, "bounds", 0, "bound of all tables and messages that hold thousands by default; 0 lets the seed choose")
	f.StringVar(&o.faults, "faults", "all", "faults that may happen: none, or names separated by commas (partition* for all that begin so); all: every single fault; double: those of several things at once")
	f.StringVar(&o.offer, "offer", "mixed", "tokens that a site offers to a redistribution: spare, all, compare (each seed under both), or mixed (the seed chooses for each site)")
	f.StringVar(&o.strategy, "strategy", "", "how a site gets tokens it is short of: instance or transfer; empty: the seed chooses for each site")
	f.StringVar(&o.nodes, "several", "mixed", "sites that run on several nodes, of the third with a real store: always, never, or mixed (the seed chooses for each)")
	f.BoolVar(&o.perSeed, "per-seed", false, "also tell what waited in each seed")
	f.IntVar(&o.workers, "workers", 2, "how many run at a time: seeds")
	f.BoolVar(&o.trees, "trees", true, "half of the seeds with entities that stand below one another; --trees=false leaves them out")
	f.BoolVar(&o.joins, "joins", false, "some sites join while the cluster runs")
	f.BoolVar(&o.leaves, "drains", false, "members leave while the cluster runs, and some sites join")
	f.BoolVar(&o.losses, "losses", false, "members are lost for good and written off, and some sites join")
	f.BoolVar(&o.rates, "rates", false, "some entities of half of the seeds are rate quotas")
	f.BoolVar(&o.sessions, "sessions", true, "three of four seeds name requests in sessions, and acknowledge them; --sessions=false leaves sessions out")
	f.BoolVar(&o.upgrades, "upgrades", true, "a third of the seeds with sites of two builds, and a raise of the version; --upgrades=false leaves them out")
	f.BoolVar(&o.short, "short", false, "shorter seeds, none refused as trivial")
	f.IntVar(&o.history, "history", sim.DefaultHistory, "how many of the last things that happened a violation of a single seed tells")
	f.BoolVar(&o.json, "json", false, "print JSON, one line on stdout")
	return cmd
}

// maxFailures bounds the violations that the result lists.
const maxFailures = 10

// enoughSeeds is the number of seeds that must hit every fault, also while a transfer is
// under way. Short seeds need more: the rarest fault, a checkpoint cut short, comes once in
// ten short seeds, and once in 60 to 160 while a transfer is under way.
const (
	enoughSeeds              = 20
	enoughShortSeeds         = 150
	enoughShortSeedsUnderWay = 1000
)

// sim runs the seeds that the flags name.
func (l *lab) sim(ctx context.Context, o *simOptions) error {
	faults, err := sim.ParseFaults(o.faults)
	if err != nil {
		return &usageError{fmt.Errorf("--faults: %w", err)}
	}
	if o.nodes == "always" {
		// A node reads what its own disk lacks from the others.
		faults &^= 1 << sim.DamagedLog
	}
	options := sim.Options{Protocol: o.mode, Strategy: o.strategy, Nodes: o.nodes, Sites: o.sites, Faults: faults, Calm: faults == 0, Long: !o.short, Trees: o.trees, Joins: o.joins, Leaves: o.leaves, Losses: o.losses, Rates: o.rates, Sessions: o.sessions, Upgrades: o.upgrades, Bounds: o.bounds, History: o.history}
	offers := []string{o.offer}
	switch o.offer {
	case "mixed":
		offers = []string{""}
	case "compare":
		offers = []string{"spare", "all"}
	}
	options.Offer = offers[0]
	if err := options.Validate(); err != nil {
		return &usageError{err}
	}
	if o.seeds < 1 || o.workers < 1 || o.workers > 256 || o.budget < 0 {
		return &usageError{errors.New("--seeds must be at least 1, --workers within 1 and 256, --budget at least 0")}
	}
	r := &simResult{
		Mode: o.mode, Strategy: o.strategy, Sites: o.sites, First: o.first, Workers: o.workers, Offer: o.offer,
		NotHit: []string{}, NotHitUnderWay: []string{}, NotCovered: sim.NotCovered(), Failures: []simViolation{}, Refused: []simRefused{},
	}
	// Little is live at any time: rare collections cost memory only.
	defer debug.SetGCPercent(debug.SetGCPercent(600))
	began, used := time.Now(), processorTime()
	err = l.runSeeds(ctx, o, options, offers, r, began)
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
	enough, enoughUnderWay := uint64(enoughSeeds), uint64(enoughSeeds)
	if o.short {
		enough, enoughUnderWay = enoughShortSeeds, enoughShortSeedsUnderWay
	}
	switch {
	case err != nil:
		return fmt.Errorf("print the result: %w", err)
	case r.Violations > 0:
		return errViolated
	case r.Seeds >= enough && len(r.NotHit) > 0:
		return fmt.Errorf("sim: faults that never happened: %s", strings.Join(r.NotHit, ", "))
	case r.Seeds >= enoughUnderWay && len(r.NotHitUnderWay) > 0:
		return fmt.Errorf("sim: faults that never happened while a transfer was under way: %s", strings.Join(r.NotHitUnderWay, ", "))
	case r.Seeds >= enough && r.Mode == sim.Switching && r.Switches == 0:
		return errors.New("sim: the mode was never switched")
	case tooTrivial(r.Trivial, r.Seeds):
		return fmt.Errorf("sim: %d of %d seeds are trivial: %s", r.Trivial, r.Seeds, r.refusals())
	}
	return nil
}

// tooTrivial reports whether the runs refused too many seeds as trivial. About 1
// seed in 1,000 is trivial, so 2 of a few hundred are chance: a run of a commit's
// own seeds has four modes.
func tooTrivial(refused, seeds uint64) bool { return refused > max(2, seeds/100) }

// runSeeds runs seeds on all workers, each seed under every offer policy in offers.
func (l *lab) runSeeds(ctx context.Context, o *simOptions, options sim.Options, offers []string, r *simResult, began time.Time) error {
	var mu sync.Mutex
	var told time.Time
	next := uint64(0)
	take := func() (uint64, bool) {
		mu.Lock()
		defer mu.Unlock()
		spent := o.budget > 0 && next > 0 && time.Since(began) >= o.budget
		if next == o.seeds || spent || r.Violations >= maxFailures || ctx.Err() != nil {
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
				var reports []sim.Report
				var v *sim.Violation
				for _, run.Offer = range offers {
					report, err := sim.Run(run)
					reports = append(reports, report)
					if violation, violated := errors.AsType[*sim.Violation](err); violated {
						v = violation
						break
					}
					if err != nil {
						return err
					}
				}
				mu.Lock()
				r.add(o, run, reports, v)
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

// processorTime returns the program's time on all processors so far.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0 // only printed: no decision depends on it
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
