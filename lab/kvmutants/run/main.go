// Command run seeds bugs into kvpart, one at a time, and tells what catches each.
// Names of bugs as arguments look for those only. It fails if one is not caught.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"time"

	"github.com/samya-db/samya/lab/kvmutants"
)

func main() {
	if err := run(); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err) // nowhere is left to report to
		os.Exit(1)
	}
}

func run() error {
	o := kvmutants.Options{Root: "."}
	flag.IntVar(&o.Seeds, "seeds", 60, "how many seeds the oracle tries for a bug")
	flag.IntVar(&o.Jobs, "jobs", 2, "how many bugs are looked for at once")
	flag.DurationVar(&o.Timeout, "timeout", 3*time.Minute, "the longest that the look for one bug may take")
	sample := flag.Int("sample", 0, "so many bugs only, evenly spread; 0 for all")
	draw := flag.Uint64("draw", 0, "draw the sample by this seed instead of spreading it; 0 spreads it")
	flag.Parse()
	bugs, err := kvmutants.Catalogue()
	if err != nil {
		return err
	}
	if names := flag.Args(); len(names) > 0 {
		bugs = slices.DeleteFunc(bugs, func(b kvmutants.Bug) bool { return !slices.Contains(names, b.Name) })
		if len(bugs) != len(names) {
			return fmt.Errorf("of %q there are %d bugs", names, len(bugs))
		}
	}
	if n := len(bugs); *sample > 0 && *sample < n {
		if *draw != 0 {
			rand.New(rand.NewPCG(*draw, 0)).Shuffle(n, func(i, j int) { bugs[i], bugs[j] = bugs[j], bugs[i] })
		}
		some := make([]kvmutants.Bug, *sample)
		for i := range some {
			some[i] = bugs[i*n / *sample]
		}
		bugs = some
	}
	done, missed := 0, 0
	o.Progress = func(out kvmutants.Outcome) {
		took := out.Took.Round(100 * time.Millisecond)
		switch {
		case out.Bug == nil:
			fmt.Printf("control: passes, %v\n", took)
			return
		case out.By == "":
			missed++
			fmt.Printf("%s: NOT CAUGHT, %v: %s\n", out.Bug.Name, took, out.Why)
		default:
			fmt.Printf("%s: caught by %s, %v\n", out.Bug.Name, out.By, took)
		}
		done++
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	began := time.Now()
	if _, err := kvmutants.Run(ctx, bugs, o); err != nil {
		return err
	}
	fmt.Printf("%d bugs, %d caught, %v\n", done, done-missed, time.Since(began).Round(time.Second))
	if missed > 0 {
		return errors.New("bugs were not caught")
	}
	return nil
}
