// Package experimenttest has the checks that each experiment passes. It does not know
// the measurements of an experiment.
package experimenttest

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/samya-db/samya/lab/experiment"
)

// Env is the world of an experiment. It counts progress in steps, which stay far below 0
// after a step beyond the last.
func Env(steps *int) *experiment.Env {
	return &experiment.Env{Seed: 1, Now: time.Now, Progress: func(step, of int, _ string) {
		if *steps++; step > of {
			*steps = math.MinInt / 2
		}
	}}
}

// Parse parses flags that declare declares.
func Parse(tb testing.TB, declare func(*pflag.FlagSet), args ...string) {
	tb.Helper()
	f := pflag.NewFlagSet("test", pflag.ContinueOnError)
	declare(f)
	if err := f.Parse(args); err != nil {
		tb.Fatal(err)
	}
}

// run runs an experiment with flags.
func run(ctx context.Context, tb testing.TB, e *experiment.Experiment, steps *int, args []string) error {
	tb.Helper()
	var r experiment.Run
	Parse(tb, func(f *pflag.FlagSet) { r = e.New(f) }, args...)
	_, err := r(ctx, Env(steps))
	return err
}

// Refuses checks that an experiment refuses flags before it measures, and names the first
// flag of each case.
func Refuses(tb testing.TB, e *experiment.Experiment, cases [][]string) {
	tb.Helper()
	for _, args := range cases {
		steps := 0
		err := run(tb.Context(), tb, e, &steps, args)
		if !errors.Is(err, experiment.ErrOptions) || !strings.Contains(err.Error(), args[0]) || steps != 0 {
			tb.Errorf("%q: %v", args, err)
		}
	}
}

// Ends checks that a run fails with the cause of a context that has ended.
func Ends(tb testing.TB, e *experiment.Experiment, args ...string) {
	tb.Helper()
	ctx, cancel := context.WithCancelCause(tb.Context())
	gone := errors.New("gone")
	cancel(gone)
	steps := 0
	if err := run(ctx, tb, e, &steps, args); !errors.Is(err, gone) {
		tb.Errorf("after the end: %v", err)
	}
}
