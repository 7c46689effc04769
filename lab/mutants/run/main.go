// Command run looks for a bug: it simulates seeds or searches schedules until an
// invariant does not hold, and prints a line of JSON. Package mutants builds it with the
// bug in it. It refuses to judge: a violation is a finding, not a failure. Nobody else
// runs it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/samya-db/samya/lab/explore"
	"github.com/samya-db/samya/lab/mutants/finding"
	"github.com/samya-db/samya/lab/sim"
)

// heapGrowth is the growth of the heap from collection to collection, in percent. With
// the default, collections take almost half of the processor's time.
const heapGrowth = 400

func main() {
	debug.SetGCPercent(heapGrowth)
	if err := run(); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err) // nowhere is left to report to
		os.Exit(1)
	}
}

func run() error {
	mode := flag.String("mode", "", "simulate clusters of this mode")
	o := sim.Options{Trees: true, Sessions: true}
	flag.StringVar(&o.Strategy, "strategy", "", "the strategy of all sites; empty lets the seed choose")
	flag.IntVar(&o.Sites, "sites", 0, "clusters of so many sites; 0 lets the seed choose")
	flag.BoolVar(&o.Hungry, "hungry", false, "nothing fails, and clients ask for all there is")
	members := flag.String("members", "", "how the members change: joins, drains, losses, with commas")
	flag.BoolVar(&o.Rates, "rates", false, "with rate quotas")
	first := flag.Uint64("first", 1, "the first seed")
	seeds := flag.Uint64("seeds", 100, "how many seeds")
	all := flag.Bool("all", false, "go on after a violation")
	skip := flag.String("skip", "", "seeds to leave out, with commas")
	ignore := flag.String("ignore", "", "invariants that tell nothing, with commas")
	variant := flag.String("explore", "", "search this variant instead")
	bound := flag.String("bound", "small", "the bounds of the search")
	states := flag.Int("max-states", 0, "give up the search after so many states; 0 for never")
	flag.Parse()
	var f finding.Finding
	var err error
	if *variant != "" {
		f, err = search(*variant, *bound, *states)
	} else {
		o.Protocol, o.Calm = *mode, o.Hungry
		changes := strings.Split(*members, ",")
		o.Joins, o.Leaves, o.Losses = slices.Contains(changes, "joins"), slices.Contains(changes, "drains"), slices.Contains(changes, "losses")
		f, err = simulate(o, *first, *seeds, *all, strings.Split(*skip, ","), strings.Split(*ignore, ","))
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(f)
}

func simulate(o sim.Options, first, seeds uint64, all bool, skip, ignore []string) (finding.Finding, error) {
	var f finding.Finding
	for seed := first; seed < first+seeds; seed++ {
		if slices.Contains(skip, strconv.FormatUint(seed, 10)) {
			continue
		}
		o.Seed = seed
		events, err := seedOnce(o)
		f.Seeds++
		f.Events += events
		v, violated := errors.AsType[*sim.Violation](err)
		_, panicked := errors.AsType[*panicError](err)
		switch {
		case err == nil:
		case panicked:
			// It tells of a bug, but by no invariant: another seed may.
			f.Panics++
			f.Panic = err.Error()
		case !violated:
			return f, err
		case v.Invariant == sim.Determinism:
			f.Hashes++
		case slices.Contains(ignore, string(v.Invariant)):
		default:
			f.Events += v.Event
			f.Violations++
			f.Failed = append(f.Failed, seed)
			if !slices.Contains(f.Broken, string(v.Invariant)) {
				f.Broken = append(f.Broken, string(v.Invariant))
			}
			if f.Violations == 1 {
				f.Invariant, f.Seed, f.Event, f.Detail = string(v.Invariant), seed, v.Event, v.Err.Error()
			}
			if !all {
				return f, nil
			}
		}
	}
	return f, nil
}

// panicError is a panic of the code under test.
type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

func seedOnce(o sim.Options) (events uint64, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{p}
		}
	}()
	r, err := sim.Run(o)
	return r.Events, err
}

func search(variant, bound string, states int) (f finding.Finding, err error) {
	if !slices.Contains(explore.Variants(), variant) {
		return finding.Finding{Skipped: true}, nil
	}
	defer func() {
		if p := recover(); p != nil {
			f, err = finding.Finding{Panics: 1, Panic: fmt.Sprint(p)}, nil
		}
	}()
	b, err := explore.BoundsByName(bound)
	if err != nil {
		return f, err
	}
	v, err := explore.New(variant, b)
	if err != nil {
		return f, err
	}
	r, err := explore.Run(context.Background(), v, explore.Options{Bounds: b, MaxStates: states, HealEvery: 997, HealMost: 5000})
	if err != nil {
		return f, err
	}
	f = finding.Finding{Events: uint64(r.Transitions), States: r.States, Closed: r.Closed, Violations: r.Violations}
	if len(r.Broken) > 0 {
		f.Invariant, f.Detail, f.Event = r.Broken[0].Invariant, r.Broken[0].Detail, uint64(r.Transitions)
	}
	return f, nil
}
