package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/lab/trace"
)

// traceCommand is `samya-lab trace`.
func (l *lab) traceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trace",
		Short: "Write a synthetic series of demand",
		Long: `Writes a month of demand in bins of 300 s as CSV: t, seconds from Monday,
midnight; net, tokens acquired less released; peak, the highest running sum in
the bin. The same seed gives the same series. Neither is anyone's real demand,
and what a model is worth on them it need not be worth elsewhere.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &usageError{fmt.Errorf("%s: no series %q, known are azure-like, near-periodic", cmd.CommandPath(), args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return &usageError{fmt.Errorf("%s: which series? azure-like, near-periodic", cmd.CommandPath())}
		},
	}
	var seed uint64
	var variant string
	var region int
	azure := &cobra.Command{
		Use:   "azure-like",
		Short: "Deployments of VMs that come and go by the hour and the day",
		Long: `Deployments arrive by a Poisson process that follows the time of day and of the
hour, and weekdays; each is of some tokens, of which most end together.

It has the character that the paper states of its trace (Section 5.1). It cannot
show that the demand of Azure looks like this: its constants are chosen, not
measured there, tokens are alike, and deployments do not depend on each other.`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			s, err := trace.AzureLike(seed, variant, trace.Region(region))
			if err != nil {
				return &usageError{err}
			}
			return trace.WriteCSV(l.stdout, s)
		},
	}
	azure.Flags().StringVar(&variant, "variant", "single", "shape of the demand: single, one large region; fit, tight, over: five that share a limit, with ever longer lifetimes; burst: fit, a deployment at once; batch: jobs at fixed times")
	azure.Flags().IntVar(&region, "region-number", 0, "which of the five: 0 US, 1 AS, 2 EU, 3 AU, 4 SA")
	near := &cobra.Command{
		Use:   "near-periodic",
		Short: "Signed demand that repeats itself every day, but for noise and bursts",
		Long: `Acquires and releases by turns, in an arbitrary pattern that comes again every
day. The paper's order of models (Table 4) shows on it because it is built so: it
is for testing models. It cannot show that any real demand is as regular, and as
holdings to replay it makes no sense.`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error { return trace.WriteCSV(l.stdout, trace.NearPeriodic(seed)) },
	}
	for _, c := range []*cobra.Command{azure, near} {
		c.Flags().Uint64Var(&seed, "seed", 1, "what is left to chance")
		cmd.AddCommand(c)
	}
	return cmd
}
