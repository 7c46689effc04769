package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/name"
)

const (
	// memberTimeout is the default wait for a site to become a member.
	memberTimeout = 10 * time.Minute
	// leaveTimeout is the default wait for a member to leave. A site that drains stays
	// until its records of requests may be forgotten.
	leaveTimeout = 30 * time.Minute
)

// memberCommand is `samya member`.
func (p *program) memberCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "member",
		Short: "Show the members of a cluster, add one, or have one leave",
		Args:  exactly(),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	t := p.talk(cmd)
	cmd.AddCommand(t.memberList(), t.memberAdd(), t.memberDrain(), t.memberRemove(), t.memberReplace())
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
	nodes := slices.ContainsFunc(m.Members, func(s httpapi.Member) bool { return s.Node != "" })
	row(w, withNode(nodes, "NODE", "NAME", "STATE", "REGION", "ADDRESS", "HEALTH", "HEIR", "WAITS FOR")...)
	for _, s := range m.Members {
		state := s.State
		if s.Rescued {
			state += ", rescued"
		}
		row(w, withNode(nodes, nodeLine(s.Node, s.Term, s.Standbys), s.Name, state, cmp.Or(s.Region, "-"), cmp.Or(s.Address, "-"),
			cmp.Or(s.Health, "-"), cmp.Or(s.Heir, "-"), cmp.Or(s.WaitsFor, "-"))...)
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
			c := t.memberChange(client, args[0], "samya member add "+args[0], timeout)
			added, err := c.ask(cmd.Context(), func(ctx context.Context) (httpapi.ChangedMember, error) {
				return client.AddMember(ctx, args[0], "")
			})
			if err != nil {
				return fmt.Errorf("add %s: %w", args[0], err)
			}
			if noWait {
				return t.print(added, func(w io.Writer) { row(w, memberLine(added.Member)) })
			}
			m, err := c.await(cmd.Context(), isMember)
			if err != nil {
				return err
			}
			return t.print(m, func(w io.Writer) { row(w, m.Name+" is a member") })
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", memberTimeout, timeoutHelp)
	cmd.Flags().BoolVar(&noWait, "no-wait", false, noWaitHelp)
	return cmd
}

// memberLine tells of a site in words.
func memberLine(m httpapi.Member) string {
	if m.WaitsFor != "" {
		return fmt.Sprintf("%s: %s, waits for %s", m.Name, m.State, m.WaitsFor)
	}
	return m.Name + ": " + m.State
}
