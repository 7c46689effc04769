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

// replaced is the result of `samya member replace`.
type replaced struct {
	Old httpapi.Member `json:"old"`
	New httpapi.Member `json:"new"`
}

func (t *talker) memberReplace() *cobra.Command {
	var by string
	var lost, yes bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "replace OLD --by NEW",
		Short: "Add a site, and have another leave in its favour",
		Long: `Gives the site NEW a seat, waits until it is a member, then drains OLD with NEW as
its heir, and waits until OLD has left. NEW is started with a new data directory,
without --members, and with --join; before or after this command.

With --lost, for a site whose data is lost for good, it writes OLD off first and
then adds NEW; see samya member remove.

The command may be interrupted and repeated: it finds what is done, and goes on.`,
		Example:           "  samya member replace eu --by eu-2\n  samya member replace eu --by eu-2 --lost",
		Args:              exactly("OLD"),
		ValidArgsFunction: t.completeMembers,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(name.Site("name", args[0]), name.Site("by", by)); err != nil {
				return err
			}
			if by == args[0] {
				return &usageError{errors.New("by: the site itself; a name is never used twice")}
			}
			client, err := t.client()
			if err != nil {
				return err
			}
			again := "samya member replace " + args[0] + " --by " + by
			if lost {
				again += " --lost"
			}
			c := t.memberChange(client, args[0], again, timeout)
			if err := c.replaceable(cmd.Context(), by); err != nil {
				return err
			}
			var done replaced
			if lost {
				done, err = c.replaceLost(cmd.Context(), by, yes)
			} else {
				done, err = c.replace(cmd.Context(), by)
			}
			if err != nil {
				return err
			}
			return t.print(done, func(w io.Writer) { row(w, by+" has replaced "+args[0]) })
		},
	}
	cmd.Flags().StringVar(&by, "by", "", "the site that is added")
	cmd.Flags().BoolVar(&lost, "lost", false, lostHelp)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, yesHelp)
	cmd.Flags().DurationVar(&timeout, "timeout", leaveTimeout, timeoutHelp)
	must(cmd.MarkFlagRequired("by"))
	return cmd
}

// replaceable refuses a replacement that could only be begun.
func (c *memberChange) replaceable(ctx context.Context, by string) error {
	var all httpapi.Members
	err := within(ctx, 0, func(ctx context.Context) (err error) {
		all, err = c.client.ListMembers(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("look at the members: %w", err)
	}
	switch old := seatOf(&all, c.site); {
	case old == nil:
		return &hintError{fmt.Errorf("there is no site %s", c.site), "see which there are with: samya member list"}
	case old.State == "joining":
		return &hintError{fmt.Errorf("%s is not a member yet", c.site), "remove it instead: samya member remove " + c.site}
	}
	if added := seatOf(&all, by); added != nil && added.State != "joining" && added.State != "member" {
		return used(added)
	}
	return nil
}

// replace adds a site, and drains the other in its favour.
func (c *memberChange) replace(ctx context.Context, by string) (done replaced, err error) {
	if done.New, err = c.of(by).add(ctx); err != nil {
		return done, err
	}
	if _, err = c.drain(ctx, by); err != nil {
		return done, err
	}
	if done.Old, err = c.await(ctx, isGone); err != nil {
		return done, err
	}
	return done, c.t.say(c.site + " has left")
}

// replaceLost writes a site off, and adds another.
func (c *memberChange) replaceLost(ctx context.Context, by string, yes bool) (done replaced, err error) {
	if err = c.sureOfLoss(ctx, yes); err != nil {
		return done, err
	}
	if _, err = c.remove(ctx, true); err != nil {
		return done, err
	}
	if done.Old, err = c.await(ctx, isLost); err != nil {
		return done, err
	}
	if err = c.t.say(c.site + " is written off"); err != nil {
		return done, err
	}
	done.New, err = c.of(by).add(ctx)
	return done, err
}

// add gives the site a seat, and waits until it is a member.
func (c *memberChange) add(ctx context.Context) (httpapi.Member, error) {
	_, err := c.ask(ctx, func(ctx context.Context) (httpapi.ChangedMember, error) { return c.client.AddMember(ctx, c.site, "") })
	if err != nil {
		return httpapi.Member{}, fmt.Errorf("add %s: %w", c.site, err)
	}
	m, err := c.await(ctx, isMember)
	if err != nil {
		return m, err
	}
	return m, c.t.say(c.site + " is a member")
}
