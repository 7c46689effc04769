package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/name"
)

// The help of flags that several commands on members have.
const (
	timeoutHelp = "how long to wait at most"
	noWaitHelp  = "return once it is decided, without waiting until it is done"
	lostHelp    = "the data of the site is lost for good: what it held is never granted again"
	yesHelp     = "do not ask"
)

func (t *talker) memberDrain() *cobra.Command {
	var heir string
	var cancel, noWait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "drain NAME",
		Short: "Have a member hand over what it holds and leave",
		Long: `Has a member leave the cluster, and waits until it has. The site takes no new
requests from then on. It hands its tokens and leases to its heir, another member,
and stays until its records of requests may be forgotten (--request-retention of
the site, 5 minutes by default). Then its process may be stopped, and its data
removed.

A repeat does no harm: it goes on waiting. The command fails if the time is up;
what was begun goes on without it. One site leaves at a time: the command waits
for another change of the members. With --cancel the site stays after all; its
tokens come back by and by, as at any site that runs short. The name of a site
that has left is never used again.`,
		Example:           "  samya member drain eu --heir us\n  samya member drain eu --cancel",
		Args:              exactly("NAME"),
		ValidArgsFunction: t.completeMembers,
		RunE: func(cmd *cobra.Command, args []string) error {
			faults := []error{name.Site("name", args[0])}
			if heir != "" {
				faults = append(faults, name.Site("heir", heir))
			}
			if err := errors.Join(faults...); err != nil {
				return err
			}
			client, err := t.client()
			if err != nil {
				return err
			}
			if cancel && !cmd.Flags().Changed("timeout") {
				timeout = memberTimeout
			}
			if cancel {
				return t.keep(cmd.Context(), t.memberChange(client, args[0], "samya member drain "+args[0]+" --cancel", timeout), noWait)
			}
			c := t.memberChange(client, args[0], "samya member drain "+args[0], timeout)
			drained, err := c.drain(cmd.Context(), heir)
			if err != nil {
				return err
			}
			if noWait {
				return t.print(drained, func(w io.Writer) { row(w, memberLine(drained)) })
			}
			m, err := c.await(cmd.Context(), isGone)
			if err != nil {
				return err
			}
			return t.print(m, func(w io.Writer) { row(w, m.Name+" has left; its process may be stopped, and its data removed") })
		},
	}
	cmd.Flags().StringVar(&heir, "heir", "", "the member that takes over; the next one by name unless given")
	cmd.Flags().BoolVar(&cancel, "cancel", false, "end a drain: the site is a member again")
	cmd.Flags().DurationVar(&timeout, "timeout", leaveTimeout, timeoutHelp)
	cmd.Flags().BoolVar(&noWait, "no-wait", false, noWaitHelp)
	must(cmd.RegisterFlagCompletionFunc("heir", t.completeAnyMember))
	cmd.MarkFlagsMutuallyExclusive("heir", "cancel")
	return cmd
}

// drain asks for a drain, and tells of an heir that is not the wanted one.
func (c *memberChange) drain(ctx context.Context, heir string) (httpapi.Member, error) {
	drained, err := c.ask(ctx, func(ctx context.Context) (httpapi.ChangedMember, error) {
		return c.client.DrainMember(ctx, c.site, heir, "")
	})
	if err != nil {
		return httpapi.Member{}, fmt.Errorf("drain %s: %w", c.site, err)
	}
	m := drained.Member
	if m.State == "draining" && heir != "" && m.Heir != heir {
		err = c.t.say(fmt.Sprintf("%s drains already, and %s takes over", m.Name, m.Heir))
	}
	return m, err
}

// keep ends a drain, and waits until the site is a member again.
func (t *talker) keep(ctx context.Context, c *memberChange, noWait bool) error {
	kept, err := c.ask(ctx, func(ctx context.Context) (httpapi.ChangedMember, error) { return c.client.KeepMember(ctx, c.site, "") })
	if err != nil {
		return fmt.Errorf("end the drain of %s: %w", c.site, err)
	}
	if noWait {
		return t.print(kept.Member, func(w io.Writer) { row(w, memberLine(kept.Member)) })
	}
	m, err := c.await(ctx, isMember)
	if err != nil {
		return err
	}
	return t.print(m, func(w io.Writer) { row(w, m.Name+" is a member") })
}

func (t *talker) memberRemove() *cobra.Command {
	var lost, yes, noWait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Withdraw the seat of a site that joins, or write off a site that is lost",
		Long: `Withdraws the seat of a site that has not become a member. A member leaves by
samya member drain.

With --lost it writes off a site whose data is lost for good. Nobody ever grants
again the tokens that the site held, and tokens that were acquired there and are
released elsewhere later count as before. The entities' figure written_off tells
how many tokens are retired; samya entity reconcile brings back those not in use.
The site cannot come back. Drain a site whose data is there: nothing is lost then.`,
		Example:           "  samya member remove us-west\n  samya member remove eu --lost",
		Args:              exactly("NAME"),
		ValidArgsFunction: t.completeMembers,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := name.Site("name", args[0]); err != nil {
				return err
			}
			client, err := t.client()
			if err != nil {
				return err
			}
			c := t.memberChange(client, args[0], "samya member remove "+args[0], timeout)
			if lost {
				c.again += " --lost"
				if err := c.sureOfLoss(cmd.Context(), yes); err != nil {
					return err
				}
			}
			m, err := c.remove(cmd.Context(), lost)
			if err == nil && lost && !noWait {
				m, err = c.await(cmd.Context(), isLost)
			}
			if err != nil {
				return err
			}
			return t.print(m, func(w io.Writer) { row(w, removedLine(m)) })
		},
	}
	cmd.Flags().BoolVar(&lost, "lost", false, lostHelp)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, yesHelp)
	cmd.Flags().DurationVar(&timeout, "timeout", memberTimeout, timeoutHelp)
	cmd.Flags().BoolVar(&noWait, "no-wait", false, noWaitHelp)
	return cmd
}

// remove withdraws a seat, or writes a site off.
func (c *memberChange) remove(ctx context.Context, lost bool) (httpapi.Member, error) {
	removed, err := c.ask(ctx, func(ctx context.Context) (httpapi.ChangedMember, error) {
		return c.client.RemoveMember(ctx, c.site, lost, "")
	})
	if err != nil {
		return httpapi.Member{}, fmt.Errorf("remove %s: %w", c.site, err)
	}
	return removed.Member, nil
}

// sureOfLoss asks whether to write a site off, unless yes is set or that was done. It
// refuses to write off a site that serves.
func (c *memberChange) sureOfLoss(ctx context.Context, yes bool) error {
	var all httpapi.Members
	err := within(ctx, 0, func(ctx context.Context) (err error) {
		all, err = c.client.ListMembers(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("look at the members: %w", err)
	}
	m := seatOf(&all, c.site)
	switch {
	case m == nil, m.State != "member" && m.State != "draining":
		// The sites say what is wrong, or have nothing to do.
		return nil
	case serves(m):
		return &hintError{
			fmt.Errorf("%s serves, so its data is not lost; nothing was changed", m.Name),
			"drain it: samya member drain " + m.Name + "; if it has just died, try again in some seconds",
		}
	case yes:
		return nil
	}
	return c.t.confirm(
		"Write off "+m.Name+"? Nobody ever grants again the tokens that it held, and it cannot come back. "+
			"If its data is there, start it instead and drain it. [y/N] ",
		"pass --yes to write it off without being asked", "nothing was changed",
	)
}

// serves reports whether a site answers its callers.
func serves(m *httpapi.Member) bool { return m.Health == "serving" || m.Health == "overloaded" }

// removedLine tells of a removed site in words.
func removedLine(m httpapi.Member) string {
	switch m.State {
	case "gone":
		return m.Name + " has no seat any more"
	case "lost":
		return m.Name + " is written off"
	}
	return memberLine(m)
}
