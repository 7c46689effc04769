package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/lab/earlylab"
)

// earlyCommand is `samya-lab early`.
func (l *lab) earlyCommand() *cobra.Command {
	o, asJSON := earlylab.Default(), false
	cmd := &cobra.Command{
		Use:   "early",
		Short: "Measure early scheduling: barriers, busy-wait and work stealing",
		Long: `Runs the same requests in all modes of package kvpart/early, in turns: on a single
thread, with a graph of dependencies (late), and with threads assigned to classes of
requests before (the paper on early scheduling). The application is a sorted linked
list, or a store of keys, in shards. Fails if a mode ends in another state than the
sequential run.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Now = time.Now
			rows, err := earlylab.Measure(cmd.Context(), &o)
			switch {
			case errors.Is(err, earlylab.ErrOptions):
				return &usageError{err}
			case err != nil:
				return fmt.Errorf("measure early scheduling: %w", err)
			case asJSON:
				if err := json.NewEncoder(l.stdout).Encode(rows); err != nil {
					return fmt.Errorf("print the results: %w", err)
				}
				return nil
			}
			return earlylab.WriteText(l.stdout, rows)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.App, "app", o.App, "application: list or kv")
	f.IntVar(&o.Size, "size", o.Size, "values in each list, or keys in all stores; the paper has lists of 1000, 10000 and 100000, and 1000000 keys")
	f.IntVar(&o.Shards, "shards", o.Shards, "shards of the application")
	f.IntVar(&o.Threads, "threads", o.Threads, "threads of each shard or partition")
	f.Float64Var(&o.Writes, "writes", o.Writes, "share of writes")
	f.Float64Var(&o.Global, "global", o.Global, "share of requests to all shards")
	f.Float64Var(&o.Skew, "skew", o.Skew, "share of the other requests that go to the first shard, beyond its part")
	f.BoolVar(&o.Computed, "computed", false, "compute the mapping of classes to threads from their weights")
	f.IntVar(&o.Requests, "requests", o.Requests, "requests of a round")
	f.IntVar(&o.Batch, "batch", o.Batch, "requests handed over at a time; 0 for 1")
	f.IntVar(&o.Queue, "queue", o.Queue, "how many requests may wait at a worker; 0 for 65536")
	f.IntVar(&o.Rounds, "rounds", o.Rounds, "how often to measure each")
	f.Uint64Var(&o.Seed, "seed", o.Seed, "what is left to chance")
	f.BoolVar(&asJSON, "json", false, "print JSON, one line on stdout")
	return cmd
}
