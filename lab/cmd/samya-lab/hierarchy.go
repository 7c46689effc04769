package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/lab/experiment"
	"github.com/samya-db/samya/lab/experiment/hierarchy"
)

// hierarchyOptions are the flags of hierarchy.
type hierarchyOptions struct {
	hierarchy.Options
	goals, json bool
	out         string
	profile     string
}

// hierarchyCommand is `samya-lab hierarchy`.
func (l *lab) hierarchyCommand() *cobra.Command {
	o := hierarchyOptions{Options: hierarchy.Default()}
	cmd := &cobra.Command{
		Use:   "hierarchy",
		Short: "Measure what partitions learn of a hierarchy, and what that brings",
		Long: `Makes acquires and releases of random leaves of a tree, each of which charges leaf, team
and organisation, at the partitions of one site: with entities placed by their hash,
in turn, and as is learnt from use; with a root above all, whole and split by the
site; handed to workers and run by callers, in memory, and through a site's engine
with its store on disk.

Each setup is made, and requests are made until its map changes no more. Then rounds
go over all of them in turn. Fails if the books of any entity do not add up.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Quick {
				for flag, quick := range map[string]string{"rounds": "3", "duration": "400ms", "settle": "10s"} {
					if f := cmd.Flags().Lookup(flag); !f.Changed {
						if err := f.Value.Set(quick); err != nil {
							return fmt.Errorf("--%s: %w", flag, err)
						}
					}
				}
			}
			return l.hierarchy(cmd, &o)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Orgs, "orgs", o.Orgs, "organisations")
	f.IntVar(&o.Teams, "teams", o.Teams, "teams of each")
	f.IntVar(&o.Leaves, "leaves", o.Leaves, "leaves of each team")
	f.IntVar(&o.Partitions, "partitions", o.Partitions, "partitions, each with a worker")
	f.IntVar(&o.Generators, "generators", o.Generators, "what makes requests side by side")
	f.IntVar(&o.Window, "in-flight", o.Window, "requests under way at most")
	f.IntVar(&o.Rounds, "rounds", o.Rounds, "how often to measure each")
	f.DurationVar(&o.Time, "duration", o.Time, "how long to measure each")
	f.DurationVar(&o.Warm, "warmup", o.Warm, "how long to make load before")
	f.DurationVar(&o.Settle, "settle", o.Settle, "how long to wait at most until a map changes no more")
	f.BoolVar(&o.Quick, "quick", false, "measure briefly: 3 times 400ms, and only what goals are of")
	f.StringVar(&o.Only, "only", "", "measure what matches this regular expression alone, of names such as workers, learnt, root split")
	f.StringVar(&o.Dir, "dir", "", "where stores are kept meanwhile: a directory on the disk under test (default: that of temporary files)")
	f.Uint64Var(&o.Seed, "seed", o.Seed, "what is left to chance")
	f.BoolVar(&o.goals, "goals", false, "fail if a goal is missed, or not measured")
	f.BoolVar(&o.json, "json", false, "print JSON, one line on stdout")
	f.StringVar(&o.out, "out", filepath.Join("bin", "experiments", hierarchy.Name), "directory of the results")
	f.StringVar(&o.profile, "profile", "", "write a profile of the processor time to this file, for go tool pprof")
	return cmd
}

// hierarchy measures and prints the results.
func (l *lab) hierarchy(cmd *cobra.Command, o *hierarchyOptions) error {
	began := time.Now()
	o.Now = time.Now
	o.Progress = func(what string) {
		_, _ = fmt.Fprintf(l.stderr, "%6.1fs %s\n", time.Since(began).Seconds(), what) // progress may be lost
	}
	stop, err := startProfile(o.profile)
	if err != nil {
		return err
	}
	r, err := hierarchy.Measure(cmd.Context(), o.Options)
	err = errors.Join(err, stop())
	switch {
	case errors.Is(err, experiment.ErrOptions):
		return &usageError{err}
	case err != nil:
		return err
	}
	r.Cores, r.Seconds = runtime.GOMAXPROCS(0), time.Since(began).Round(time.Millisecond).Seconds()
	if err := experiment.Write(o.out, []*experiment.Result{r.Result}); err != nil {
		return err
	}
	if o.json {
		err = json.NewEncoder(l.stdout).Encode(r)
	} else if err = r.WriteText(l.stdout); err == nil {
		_, err = fmt.Fprintf(l.stdout, "report: %s\n", filepath.Join(o.out, experiment.ReportFile))
	}
	if err != nil {
		return fmt.Errorf("print the results: %w", err)
	}
	if o.goals && !r.Met() {
		return errGoals
	}
	return nil
}
