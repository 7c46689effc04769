package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/lab/coreslab"
)

// coresOptions are the flags of cores.
type coresOptions struct {
	coreslab.Study
	bin, markdown         string
	noSite, quick, asJSON bool
}

// coresCommand is `samya-lab cores`.
func (l *lab) coresCommand() *cobra.Command {
	var o coresOptions
	cmd := &cobra.Command{
		Use:   "cores",
		Short: "Tell what more processor cores bring a site, by a model in virtual time",
		Long: `Measures on this machine what the steps of a site cost, and plays a site in virtual
time on more cores than this machine may have: the core alone, shards (partitions),
and shards with a striped table of request ids, their own part of the log, their own
replies, and two commits in flight.

Then measures real sites of one and two partitions, with their clients on the same
one or two cores, and prints how far the model is from them.

All that is started is stopped, and all files are removed, also on Ctrl-C.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return l.cores(cmd, &o) },
	}
	f := cmd.Flags()
	f.IntSliceVar(&o.Entities, "entities", []int{1, 10_000}, "numbers of entities")
	f.IntSliceVar(&o.Callers, "closed-loops", []int{64, 1024, 8192}, "numbers of callers, who ask again once answered")
	f.IntSliceVar(&o.Cores, "cores", []int{1, 2, 4, 8, 16}, "numbers of cores of the model, ascending")
	f.IntSliceVar(&o.Checked, "check", []int{1, 2}, "numbers of cores of real sites")
	f.IntVar(&o.Connections, "connections", 16, "connections of all callers")
	f.IntVar(&o.Remembered, "remembered", 1_000_000, "request ids in the table as costs are measured")
	f.IntVar(&o.Rounds, "cost-rounds", 200, "how often to measure each cost")
	f.IntVar(&o.Times, "times", 3, "how often to measure each real site")
	f.DurationVar(&o.Time, "duration", time.Second, "how long to measure a real site")
	f.Uint64Var(&o.Seed, "seed", 1, "what is left to chance: makes the load repeatable")
	f.StringVar(&o.Dir, "dir", ".", "where to keep data meanwhile: a directory on the disk under test")
	f.StringVar(&o.bin, "samya", "", "the samya program (default: beside this one)")
	f.BoolVar(&o.noSite, "no-site", false, "start no real sites: print the model alone")
	f.BoolVar(&o.quick, "rough", false, "measure little, and start no real sites: the figures are rough")
	f.BoolVar(&o.asJSON, "json", false, "print JSON, one line on stdout")
	f.StringVar(&o.markdown, "markdown", "", "also write the tables to this file")
	return cmd
}

// cores runs the study that the flags name.
func (l *lab) cores(cmd *cobra.Command, o *coresOptions) error {
	if o.quick {
		o.noSite = true
		for flag, quick := range map[string]string{"cost-rounds": "20", "remembered": "100000"} {
			if f := cmd.Flags().Lookup(flag); !f.Changed {
				if err := f.Value.Set(quick); err != nil {
					return fmt.Errorf("--%s: %w", flag, err)
				}
			}
		}
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	o.Self = self
	if !o.noSite {
		_, bin, err := (&compareOptions{bin: o.bin}).programs()
		if err != nil {
			return err
		}
		o.Bin = bin
	}
	began := time.Now()
	o.Tell = func(s string) {
		_, _ = fmt.Fprintf(l.stderr, "%6.1fs %s\n", time.Since(began).Seconds(), s) // progress may be lost
	}
	r, err := o.Run(cmd.Context())
	switch {
	case errors.Is(err, coreslab.ErrOptions):
		return &usageError{err}
	case err != nil:
		return fmt.Errorf("study cores: %w", err)
	}
	if o.markdown != "" {
		f, err := os.Create(o.markdown)
		if err != nil {
			return fmt.Errorf("write the tables: %w", err)
		}
		if err := errors.Join(r.WriteMarkdown(f), f.Close()); err != nil {
			return fmt.Errorf("write the tables: %w", err)
		}
	}
	if o.asJSON {
		if err := json.NewEncoder(l.stdout).Encode(r); err != nil {
			return fmt.Errorf("print the results: %w", err)
		}
		return nil
	}
	return r.WriteText(l.stdout)
}
