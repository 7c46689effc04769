package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"

	"github.com/samya-db/samya/internal/cutid"
	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/name"
)

// entityReconcile is `samya entity reconcile`.
func (t *talker) entityReconcile() *cobra.Command {
	var truth httpapi.Truth
	var still bool
	cmd := &cobra.Command{
		Use:   "reconcile NAME",
		Short: "Make the books say how many tokens are in use, as you have counted them",
		Long: `Makes an entity's books say how many tokens are in use. Clients that died without
releasing leave tokens that nobody uses and nobody gives back; they come back this way. So do
the tokens of a site that was written off.

It takes two steps. Without --in-use the command makes a cut: it asks all sites what their
books hold to be in use, prints it, and changes nothing. Then count what is in use, and give
the count with --in-use and --cut. What clients acquire and release after the cut is no
matter.

Count each token that was in use at any moment of the cut, whose beginning and end are
printed. A token is in use from the moment its acquire is sent until its release is answered;
an acquire that its client may still repeat counts, and so does a lease that has not ended.
If in doubt, count it: too high a count keeps tokens out of use, and the next reconciliation
finds them. Too low a count lets more than the limit be used.

Count what was acquired of NAME itself, not of entities below it. The entities above follow.

With --still the command makes the cut and the change in one step. Use it only if no client
has acquired or released since the count was begun.`,
		Example: `  samya entity reconcile acme/vm
  samya entity reconcile acme/vm --in-use 118 --cut cut1-04030zw6040000
  samya entity reconcile acme/vm --in-use 118 --still`,
		Args:              exactly("NAME"),
		ValidArgsFunction: t.completeEntities,
		RunE: func(cmd *cobra.Command, args []string) error {
			counted := cmd.Flags().Changed("in-use")
			if err := name.Entity("name", args[0]); err != nil {
				return err
			}
			switch {
			case !counted && (truth.Cut != "" || still || truth.RequestID != ""):
				return &usageError{errors.New("--in-use is missing: how many tokens of " + args[0] + " were in use at the cut")}
			case counted && (truth.Cut == "") == !still:
				return &usageError{errors.New("with --in-use give either --cut, the cut that was counted for, or --still")}
			}
			if counted {
				if err := checkTruth(args[0], &truth); err != nil {
					return err
				}
			}
			client, err := t.client()
			if err != nil {
				return err
			}
			return within(cmd.Context(), 0, func(ctx context.Context) error {
				if !counted || still {
					cut, err := client.CutEntity(ctx, args[0])
					if err != nil {
						return fmt.Errorf("make a cut of %s: %w", args[0], err)
					}
					if !counted {
						return t.print(cut, func(w io.Writer) { printCut(w, &cut) })
					}
					truth.Cut = cut.Cut
				}
				return t.reconcile(ctx, client, args[0], truth)
			})
		},
	}
	cmd.Flags().Int64Var(&truth.InUse, "in-use", 0, "how many tokens of the entity itself were in use at the cut")
	cmd.Flags().StringVar(&truth.Cut, "cut", "", "the cut that was counted for, as printed without --in-use")
	cmd.Flags().BoolVar(&still, "still", false, "no client has acquired or released since the count was begun: make the cut now")
	cmd.Flags().StringVar(&truth.RequestID, "request-id", "", requestIDUsage)
	return cmd
}

// checkTruth checks a count and, if there is one, the cut.
func checkTruth(entity string, truth *httpapi.Truth) error {
	if truth.RequestID == "" {
		truth.RequestID = ulid.Make().String()
	}
	if err := errors.Join(name.Limit("in-use", truth.InUse), name.RequestID("request-id", truth.RequestID)); err != nil || truth.Cut == "" {
		return err
	}
	_, err := cutid.Parse("cut", entity, truth.Cut)
	return err
}

// printCut prints a cut, and how to go on.
func printCut(w io.Writer, c *httpapi.Cut) {
	at := func(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05.000 UTC") }
	row(w, "NAME", "IN USE", "LEASED", "WRITTEN OFF", "VERSION")
	row(w, c.Name, c.InUse, c.Leased, c.WrittenOff, c.Version)
	if c.Returning > 0 {
		row(w)
		row(w, fmt.Sprintf("Up to %d of them may come back by themselves, after repeated requests: a count that is lower by no more changes nothing.", c.Returning))
	}
	row(w)
	row(w, "Begun", at(c.BegunMS))
	row(w, "Ended", at(c.EndedMS))
	row(w)
	row(w, fmt.Sprintf("Count now what was in use of %s at any moment of this cut, leases included, then run", c.Name))
	row(w, fmt.Sprintf("  samya entity reconcile %s --in-use COUNT --cut %s", c.Name, c.Cut))
	if c.Children > 0 {
		row(w)
		row(w, fmt.Sprintf("Count without the %d entities below it: reconcile those by themselves, and %s follows.", c.Children, c.Name))
	}
	if c.Parent != "" {
		row(w)
		row(w, fmt.Sprintf("The entities above, from %s up, follow.", c.Parent))
	}
}

// reconcile reconciles an entity and prints the result.
func (t *talker) reconcile(ctx context.Context, client *httpapi.Client, entity string, truth httpapi.Truth) error {
	r, err := client.ReconcileEntity(ctx, entity, truth)
	if err != nil {
		err = fmt.Errorf("reconcile %s: %w", entity, err)
		if doubtful(err) {
			again := fmt.Sprintf("samya entity reconcile %s --in-use %d --cut %s --request-id %s", entity, truth.InUse, truth.Cut, truth.RequestID)
			return &hintError{err, "find out with: " + again}
		}
		return err
	}
	return t.print(r, func(w io.Writer) {
		switch {
		case r.Returned > 0:
			row(w, fmt.Sprintf("%d tokens of %s are back (version %d)", r.Returned, r.Name, r.Version))
		case r.Returned < 0:
			row(w, fmt.Sprintf("%d more tokens of %s are counted as in use (version %d)", -r.Returned, r.Name, r.Version))
		default:
			row(w, fmt.Sprintf("the books of %s were right (version %d)", r.Name, r.Version))
		}
		if r.MayExceedBy > 0 {
			row(w, mayExceed(r.MayExceedBy))
		}
	})
}
