package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/samya-db/samya/lab/experiment"
	"github.com/samya-db/samya/lab/experiment/earlyscheduling"
	"github.com/samya-db/samya/lab/experiment/libra"
	"github.com/samya-db/samya/lab/experiment/realtime"
	"github.com/samya-db/samya/lab/experiment/repartitioning"
	"github.com/samya-db/samya/lab/experiment/samya"
)

// experiments are all experiments outside of groups, in the order of the report.
var experiments = []*experiment.Experiment{
	&repartitioning.Experiment,
	&repartitioning.Pause,
	&earlyscheduling.Experiment,
	&libra.Experiment,
	&realtime.Experiment,
}

// groups are experiments that run together; they follow the experiments.
var groups = []*experiment.Group{&samya.Group}

// experimentOptions are the flags of all experiments.
type experimentOptions struct {
	quick, json bool
	seed        uint64
	out         string
}

// experimentCommand is `samya-lab experiment`, with a subcommand for each
// experiment.
func (l *lab) experimentCommand() *cobra.Command {
	var o experimentOptions
	cmd := &cobra.Command{
		Use:   "experiment NAME|all",
		Short: "Rerun the experiments of the papers, and report theirs beside ours",
		Long: `Reruns an experiment of the papers at a size for this machine. Writes to a
directory a CSV file and pictures (SVG) of each, and report.md: the paper's numbers
beside ours and why they differ. Fails if a goal is missed.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &usageError{fmt.Errorf("no experiment %q; %s --help lists them", args[0], cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return &usageError{fmt.Errorf("no experiment named; %s --help lists them", cmd.CommandPath())}
		},
	}
	f := cmd.PersistentFlags()
	f.BoolVar(&o.quick, "quick", false, "measure briefly, which shows that it works and little more")
	f.BoolVar(&o.json, "json", false, "print JSON, one line on stdout")
	f.Uint64Var(&o.seed, "seed", 1, "what is left to chance")
	f.StringVar(&o.out, "out", filepath.Join("bin", "experiments"), "directory of the results")

	var all []experiment.Member
	add := func(name, short, long string, build func(*pflag.FlagSet) []experiment.Member) {
		one := &cobra.Command{Use: name, Short: short, Long: long, Args: noArgs}
		members := build(one.Flags())
		one.RunE = func(cmd *cobra.Command, _ []string) error { return l.experiment(cmd, &o, members) }
		cmd.AddCommand(one)
	}
	single := func(e *experiment.Experiment) {
		add(e.Name, e.Short, e.Long, func(f *pflag.FlagSet) []experiment.Member {
			return []experiment.Member{{Experiment: e, Run: e.New(f)}}
		})
	}
	for _, e := range experiments {
		single(e)
		all = append(all, experiment.Member{Experiment: e, Run: e.New(pflag.NewFlagSet(e.Name, pflag.ContinueOnError))})
	}
	for _, g := range groups {
		members := g.New(pflag.NewFlagSet(g.Name, pflag.ContinueOnError))
		for _, m := range members {
			single(m.Experiment)
		}
		all = append(all, members...)
		add(g.Name, g.Short, g.Long, g.New)
	}
	cmd.AddCommand(&cobra.Command{
		Use: "all", Short: "Rerun all of them, as their flags are by default", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return l.experiment(cmd, &o, all) },
	})
	return cmd
}

// experiment runs experiments in turn. After a failure it still writes the results
// of the experiments before.
func (l *lab) experiment(cmd *cobra.Command, o *experimentOptions, which []experiment.Member) error {
	var results []*experiment.Result
	var failed error
	for _, e := range which {
		env := &experiment.Env{
			Quick: o.quick, Seed: o.seed, Now: time.Now,
			Progress: l.steps(e.Name, time.Now),
		}
		r, err := experiment.Do(cmd.Context(), e.Experiment, e.Run, env)
		l.progressDone()
		if err != nil {
			failed = err
			break
		}
		results = append(results, r)
	}
	if errors.Is(failed, experiment.ErrOptions) {
		failed = &usageError{failed}
	}
	if len(results) == 0 {
		return failed
	}
	if err := experiment.Write(o.out, results); err != nil {
		return errors.Join(failed, err)
	}
	if err := l.tellResults(o, results); err != nil {
		return errors.Join(failed, fmt.Errorf("print the results: %w", err))
	}
	for _, r := range results {
		if failed == nil && !r.Met() {
			failed = errGoals
		}
	}
	return failed
}

func (l *lab) tellResults(o *experimentOptions, results []*experiment.Result) error {
	if o.json {
		return json.NewEncoder(l.stdout).Encode(struct {
			Out         string               `json:"out"`
			Experiments []*experiment.Result `json:"experiments"`
		}{o.out, results})
	}
	if err := experiment.WriteText(l.stdout, results); err != nil {
		return err
	}
	_, err := fmt.Fprintf(l.stdout, "report: %s\n", filepath.Join(o.out, experiment.ReportFile))
	return err
}
