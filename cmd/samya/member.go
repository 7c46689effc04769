package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/wan"
)

const (
	// memberTimeout is the default wait for a site to become a member.
	memberTimeout = 10 * time.Minute
	// memberPause is the time between two looks at the members.
	memberPause = 500 * time.Millisecond
)

// memberCommand is `samya member`.
func (p *program) memberCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "member",
		Short: "Show the members of a cluster, or add one",
		Args:  exactly(),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	t := p.talk(cmd)
	cmd.AddCommand(t.memberList(), t.memberAdd())
	return cmd
}

func (t *talker) memberList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the sites with a seat, and what a change of them waits for",
		Args:  exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := t.client()
			if err != nil {
				return err
			}
			return within(cmd.Context(), 0, func(ctx context.Context) error {
				m, err := client.ListMembers(ctx)
				if err != nil {
					return fmt.Errorf("list the members: %w", err)
				}
				return t.print(m, func(w io.Writer) { printMembers(w, m) })
			})
		},
	}
}

func printMembers(w io.Writer, m httpapi.Members) {
	row(w, "NAME", "STATE", "REGION", "ADDRESS", "HEALTH", "WAITS FOR")
	for _, s := range m.Members {
		row(w, s.Name, s.State, cmp.Or(s.Region, "-"), cmp.Or(s.Address, "-"), cmp.Or(s.Health, "-"), cmp.Or(s.WaitsFor, "-"))
	}
	row(w)
	row(w, fmt.Sprintf("version %d, as seen by %s", m.Version, m.AnsweredBy))
	if m.WaitsFor != "" {
		row(w, "The next change of the members waits for "+m.WaitsFor+".")
	}
}

func (t *talker) memberAdd() *cobra.Command {
	var timeout time.Duration
	var noWait bool
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Give a site a seat, and wait until it is a member",
		Long: `Gives a site a seat in the cluster, and waits until the site is a member and all
entities have adopted the new voters. The site itself is started with a new data
directory, without --members, and with --join; before or after this command.

A repeat does no harm: it goes on waiting. The command fails if the time is up;
what was begun goes on without it. No two sites of a cluster may ever have the
same name, not even one after the other.`,
		Example: "  samya member add us-west\n  samya member add us-west --no-wait",
		Args:    exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := name.Site("name", args[0]); err != nil {
				return err
			}
			client, err := t.client()
			if err != nil {
				return err
			}
			began := time.Now()
			err = within(cmd.Context(), 0, func(ctx context.Context) error {
				added, err := client.AddMember(ctx, args[0], "")
				if err != nil {
					return fmt.Errorf("add %s: %w", args[0], err)
				}
				if noWait {
					return t.print(added, func(w io.Writer) { row(w, memberLine(added.Member)) })
				}
				return nil
			})
			if err != nil && doubtful(err) {
				err = &hintError{err, "find out, or go on, with: samya member add " + args[0]}
			}
			if err != nil || noWait {
				return err
			}
			return t.awaitMember(cmd.Context(), client, args[0], began, timeout)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", memberTimeout, "how long to wait at most")
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "return once it is decided, without waiting until it is done")
	return cmd
}

// awaitMember waits until a site is a member and no entity is behind. It prints what the
// site waits for, each time that changes.
func (t *talker) awaitMember(ctx context.Context, client *httpapi.Client, site string, began time.Time, timeout time.Duration) error {
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	last := ""
	for {
		waits := ""
		m, err := client.ListMembers(bounded)
		i := slices.IndexFunc(m.Members, func(s httpapi.Member) bool { return s.Name == site })
		switch {
		case err != nil && bounded.Err() == nil:
			waits = "an answer: " + err.Error()
		case err == nil && i < 0:
			waits = m.AnsweredBy + " to hear of its seat"
		case err == nil:
			waits = cmp.Or(m.Members[i].WaitsFor, m.WaitsFor)
			if waits == "" && m.Members[i].State == "member" {
				return t.print(m.Members[i], func(w io.Writer) { row(w, site+" is a member") })
			}
			waits = cmp.Or(waits, "the members to admit it")
		}
		if waits != "" && waits != last {
			last = waits
			if err := t.say(fmt.Sprintf("%s waits for %s (%s)", site, waits, time.Since(began).Round(time.Second))); err != nil {
				return err
			}
		}
		if wan.Wait(bounded, memberPause) != nil {
			if errors.Is(context.Cause(ctx), errInterrupted) {
				return errInterrupted
			}
			return &hintError{
				fmt.Errorf("after %v %s still waits for %s", timeout, site, cmp.Or(last, "an answer")),
				"it goes on without this command; wait again with: samya member add " + site,
			}
		}
	}
}

// say prints a line of progress, unless the result is to be JSON.
func (t *talker) say(line string) error {
	if t.json {
		return nil
	}
	if _, err := fmt.Fprintln(t.program.stdout, line); err != nil {
		return fmt.Errorf("print the progress: %w", err)
	}
	return nil
}

// memberLine tells of a site in words.
func memberLine(m httpapi.Member) string {
	if m.WaitsFor != "" {
		return fmt.Sprintf("%s: %s, waits for %s", m.Name, m.State, m.WaitsFor)
	}
	return m.Name + ": " + m.State
}
