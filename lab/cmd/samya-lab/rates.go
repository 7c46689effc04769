package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	ratepeers "github.com/samya-db/samya/lab/peers"
	"github.com/samya-db/samya/lab/ratelab"
	"github.com/samya-db/samya/lab/rls"
)

// rateOptions are the flags that rates and rls share.
type rateOptions struct {
	bin, ratelimit string
	peer           bool
	goals, json    bool
}

func (o *rateOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.bin, "samya", "", "the samya program (default: beside this one)")
	f.BoolVar(&o.peer, "peer", true, "also measure envoyproxy/ratelimit before redis")
	f.StringVar(&o.ratelimit, "ratelimit", "", "the program of envoyproxy/ratelimit (default: beside this one; make bin/ratelimit builds it)")
	f.BoolVar(&o.goals, "goals", false, "fail if a goal is missed")
	f.BoolVar(&o.json, "json", false, "print JSON, one line on stdout")
}

// programs returns the paths of this program, of samya, and of the peer; empty for none.
func (o *rateOptions) programs() (self, samya, ratelimit string, err error) {
	if self, samya, err = (&compareOptions{bin: o.bin}).programs(); err != nil || !o.peer {
		return self, samya, "", err
	}
	if ratelimit = o.ratelimit; ratelimit == "" {
		ratelimit = filepath.Join(filepath.Dir(self), "ratelimit")
	}
	if ratelimit, err = filepath.Abs(ratelimit); err == nil {
		err = ratepeers.Installed(ratelimit)
	}
	if err != nil {
		return "", "", "", fmt.Errorf("--peer: %w", err)
	}
	return self, samya, ratelimit, nil
}

// errOver says that more tokens were granted than the bounds of the kinds.
var errOver = errors.New("samya granted more tokens than the bound")

// ratesCommand is `samya-lab rates`.
func (l *lab) ratesCommand() *cobra.Command {
	var shared rateOptions
	o := ratelab.Default()
	cmd := &cobra.Command{
		Use:   "rates",
		Short: "Measure rate quotas of five real sites, far apart, under demand that moves",
		Long: `Starts five sites on this machine with a round trip between them, and asks for tokens of
a bucket and of windows of 1s, 10s and 1m, all at the same time. Demand exceeds the
limits most of the time, and most of it moves from region to region. Afterwards the
same load goes to envoyproxy/ratelimit, with a service in each region and a redis in
the first; that knows windows of 1s and 1m.

A judge adds up all grants by the times at which clients sent and got them. The
command fails if samya granted more than the bounds that docs/rates.md gives.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			began := time.Now()
			o.Progress = func(what string) {
				_, _ = fmt.Fprintf(l.stderr, "%6.1fs %s\n", time.Since(began).Seconds(), what) // progress may be lost
			}
			var err error
			if _, o.Bin, o.Ratelimit, err = shared.programs(); err != nil {
				return &usageError{err}
			}
			r, err := ratelab.Run(cmd.Context(), o)
			switch {
			case errors.Is(err, ratelab.ErrOptions):
				return &usageError{err}
			case err != nil:
				return err
			}
			if shared.json {
				err = json.NewEncoder(l.stdout).Encode(r)
			} else {
				err = r.WriteText(l.stdout)
			}
			switch {
			case err != nil:
				return fmt.Errorf("print the results: %w", err)
			case r.Over() > 0:
				return errOver
			case shared.goals && len(r.Missed()) > 0:
				return errGoals
			}
			return nil
		},
	}
	shared.flags(cmd)
	f := cmd.Flags()
	f.DurationVar(&o.Duration, "duration", o.Duration, "how long to make load on each system")
	f.Int64Var(&o.Rate, "limit-rate", o.Rate, "limit of each quota, in tokens a second")
	f.DurationVar(&o.RoundTrip, "round-trip", o.RoundTrip, "round trip between any two regions")
	f.DurationVar(&o.Wait, "acquire-wait", o.Wait, "how long samya's acquires may wait")
	f.DurationVar(&o.Demand.Calm, "calm", o.Demand.Calm, "how long demand stays below the limits")
	f.DurationVar(&o.Demand.Busy, "busy", o.Demand.Busy, "and then exceeds them, in turn")
	f.DurationVar(&o.Demand.Move, "move", o.Demand.Move, "after how long most of the demand moves to the next region")
	f.StringVar(&o.Dir, "dir", "", "where to keep data meanwhile: a directory on the disk under test (default: that of temporary files)")
	f.Uint64Var(&o.Seed, "seed", o.Seed, "what is left to chance")
	return cmd
}

// rlsCommand is `samya-lab rls`.
func (l *lab) rlsCommand() *cobra.Command {
	var shared rateOptions
	var o rls.Options
	cmd := &cobra.Command{
		Use:   "rls",
		Short: "Measure decisions of Envoy's rate limit service beside envoyproxy/ratelimit and bare gRPC",
		Long: `Starts a site that serves Envoy, an app manager before a site, envoyproxy/ratelimit before
redis, and a gRPC server that answers the same messages at once, and has callers ask for
decisions, each again once answered. Rounds measure all of them in turn.

The goals are for the site that serves Envoy.

samya's entity is a bucket that is not durable, which fills in a minute. That of
envoyproxy/ratelimit is a window, as its files have no buckets. A Gubernator is asked in
its own API for a leaky bucket.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case o.Rounds < 1 || o.Rounds > 1000:
				return &usageError{errors.New("--rounds must be within 1 and 1000")}
			case o.Callers < 1 || o.Callers > 4096:
				return &usageError{errors.New("--callers must be within 1 and 4096")}
			case o.Time < 100*time.Millisecond || o.Time > 10*time.Minute || o.Warmup < 0 || o.Warmup > 10*time.Minute:
				return &usageError{errors.New("--duration must be within 100ms and 10m, --warmup within 0s and 10m")}
			}
			o.Progress = func(what string) { _, _ = fmt.Fprintln(l.stderr, what) } // progress may be lost
			var err error
			if o.Self, o.Bin, o.Ratelimit, err = shared.programs(); err != nil {
				return &usageError{err}
			}
			if o.Gubernator != "" {
				if err := ratepeers.GubernatorInstalled(o.Gubernator); err != nil {
					return &usageError{err}
				}
			}
			if os.Getenv("GOGC") == "" {
				debug.SetGCPercent(loadHeap)
			}
			r, err := rls.Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			if shared.json {
				err = json.NewEncoder(l.stdout).Encode(r)
			} else {
				err = r.WriteText(l.stdout)
			}
			if err != nil {
				return fmt.Errorf("print the results: %w", err)
			}
			if shared.goals && !r.Met() {
				return errGoals
			}
			return nil
		},
	}
	shared.flags(cmd)
	f := cmd.Flags()
	f.IntVar(&o.Callers, "callers", 64, "callers")
	f.IntVar(&o.Rounds, "rounds", 5, "how often to measure each")
	f.DurationVar(&o.Time, "duration", 5*time.Second, "how long to measure each")
	f.DurationVar(&o.Warmup, "warmup", time.Second, "how long to make load before")
	f.StringVar(&o.Gubernator, "gubernator", "", "the program of Gubernator, to measure it too (make bin/gubernator builds it)")
	f.StringVar(&o.Dir, "dir", ".", "where to keep data meanwhile: a directory on the disk under test")
	return cmd
}

// rlsEchoCommand serves the bare server of rls.
func (l *lab) rlsEchoCommand() *cobra.Command {
	return &cobra.Command{
		Use:    rls.EchoCommand + " ADDR",
		Short:  "Answer Envoy's questions at once: the control of rls",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE:   func(cmd *cobra.Command, args []string) error { return rls.Serve(cmd.Context(), args[0]) },
	}
}
