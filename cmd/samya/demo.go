package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/samya-db/samya/devcluster/demo"
	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/internal/settings"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/policy"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// demoCommand is `samya demo`.
func (p *program) demoCommand() *cobra.Command {
	opts := demo.Options{Stdout: p.stdout, Stderr: p.stderr, Hurry: p.hurry}
	var plain bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run five sites under load on this machine and check the books",
		Long: `Runs five sites and five app managers on this machine, with the latencies
between the regions of the paper, and makes load on one entity: every region's
holdings follow days that are compressed and shifted against each other. With
--workload hierarchy the load is on the leaves of a tree: three organisations of
two teams of three leaves, each with a limit of its own. With --ha a site survives
the kill of its active node; it takes the program etcd.

In the end the load generators' own ledger is compared with the sites' books.
The exit status is 1 if a limit was ever exceeded, or if ledger and books
differ.`,
		GroupID: groupServe,
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(opts.Check(), known("protocol", opts.Protocol, policy.ProtocolNames())); err != nil {
				return &usageError{err}
			}
			if opts.Workload == demo.Hierarchy && cmd.Flags().Changed("entity") {
				return &usageError{errors.New("entity: the workload hierarchy has entities of its own")}
			}
			bin, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find this program: %w", err)
			}
			opts.Bin = bin
			screen := p.stdout
			if opts.JSON {
				screen = p.stderr
			}
			if f, ok := screen.(*os.File); ok && !plain {
				opts.Terminal = func() (int, int, bool) {
					width, height, err := term.GetSize(int(f.Fd()))
					return width, height, err == nil
				}
			}
			result, err := demo.Run(cmd.Context(), opts)
			switch {
			case opts.Keep && result != nil && errors.Is(err, errInterrupted):
				// An interrupt is the end of a kept cluster.
			case errors.Is(err, proc.ErrNoEtcd):
				return &hintError{err, etcdHint}
			case err != nil:
				return err
			}
			if result.Verdict() != nil {
				return errReported
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.DurationVar(&opts.Duration, "duration", 60*time.Second, "how long to make load")
	f.StringVar(&opts.Workload, "workload", demo.OneEntity, "workload: "+strings.Join(demo.Workloads(), ", "))
	f.Int64Var(&opts.Limit, "limit", 5000, "limit of the entity, or of each organisation")
	f.Float64Var(&opts.Rate, "load", 600, "requests per second of all regions together")
	f.StringVar(&opts.Entity, "entity", "acme/vm", "the entity")
	f.DurationVar(&opts.Day, "day", 20*time.Second, "length of a compressed day")
	f.Uint64Var(&opts.Seed, "seed", 1, "what is left to chance: makes the load repeatable")
	f.BoolVar(&opts.HA, "ha", false, "run each site at two nodes, with the log in an etcd of three processes, and kill the active node of a site in the middle")
	f.StringVar(&opts.Protocol, "protocol", "", moduleUses["protocol"]+": "+strings.Join(policy.ProtocolNames(), ", ")+" (default "+core.Config{}.WithDefaults().Protocol+")")
	settings.FormerOfAnother(f, "data", "dir")
	f.StringVar(&opts.Dir, "dir", "", "directory for data and logs, empty or new (default: a temporary one, removed)")
	f.BoolVar(&opts.Keep, "keep", false, "leave the cluster up after the load, until Ctrl-C")
	f.BoolVar(&opts.JSON, "json", false, "print JSON: the result as one line on stdout, all else on stderr")
	f.BoolVar(&plain, "plain", false, "print lines even on a terminal, not a table")
	return cmd
}

// known refuses a name that is not in names; an empty name chooses the default.
func known(flag, name string, names []string) error {
	if name == "" || slices.Contains(names, name) {
		return nil
	}
	return fmt.Errorf("%s: %q, must be one of %s", flag, name, strings.Join(names, ", "))
}
