package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/name"
)

func (t *talker) clusterRecover() *cobra.Command {
	r := recovery{t: t}
	var yes, destroyed bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "recover",
		Short: "Go on after a majority of the sites was lost for good",
		Long: `Has the surviving sites of a cluster go on after a majority of the sites was lost
with its data. Without a majority the sites serve what they hold, and decide nothing:
no redistribution, no limit, not even that a site is lost.

Name every site, as a survivor or as lost. All survivors must answer. The
machines of the lost sites must be destroyed: a lost site that still served would
grant tokens that others grant too. Decisions of the lost majority that no survivor
has heard of are lost: a limit raised or lowered, an entity created. Tokens that a
survivor had offered to a redistribution under way may be granted at a lost site, and
are written off.

The command then writes off each lost site, as samya member remove --lost does. A repeat does no harm, and goes on. If a majority is left, use that command.`,
		Example: "  samya cluster recover --survivors eu --lost-sites as,us --machines-destroyed",
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := r.validate(destroyed); err != nil {
				return err
			}
			client, err := t.client()
			if err != nil {
				return err
			}
			r.client, r.timeout = client, timeout
			return r.run(cmd.Context(), yes)
		},
	}
	cmd.Flags().StringSliceVar(&r.survivors, "survivors", nil, "the sites that are left, separated by commas")
	cmd.Flags().StringSliceVar(&r.lost, "lost-sites", nil, "all other sites, separated by commas")
	cmd.Flags().BoolVar(&destroyed, "machines-destroyed", false, "the machines of the lost sites are destroyed: none serves, none is ever started again")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, yesHelp)
	cmd.Flags().DurationVar(&timeout, "timeout", memberTimeout, timeoutHelp)
	must(cmd.RegisterFlagCompletionFunc("survivors", t.completeAnyMember))
	must(cmd.RegisterFlagCompletionFunc("lost-sites", t.completeAnyMember))
	return cmd
}

// recovery is a run of samya cluster recover.
type recovery struct {
	t               *talker
	client          *httpapi.Client
	survivors, lost []string
	timeout         time.Duration
}

// validate checks the flags.
func (r *recovery) validate(destroyed bool) error {
	var faults []error
	for _, f := range []struct {
		flag  string
		sites []string
	}{{"survivors", r.survivors}, {"lost-sites", r.lost}} {
		if len(f.sites) == 0 {
			faults = append(faults, &name.Error{Field: f.flag, Problem: "missing"})
		}
		for _, site := range f.sites {
			faults = append(faults, name.Site(f.flag, site))
		}
	}
	if !destroyed {
		faults = append(faults, &name.Error{Field: "machines-destroyed", Problem: "missing: a lost site that still serves would grant tokens that others grant too"})
	}
	return errors.Join(faults...)
}

// again is the command that goes on with the recovery.
func (r *recovery) again() string {
	return fmt.Sprintf("samya cluster recover --survivors %s --lost-sites %s --machines-destroyed", strings.Join(r.survivors, ","), strings.Join(r.lost, ","))
}

// noneServes refuses to give up a site that serves. If nobody can list the members, no
// site does, as far as anyone knows.
func (r *recovery) noneServes(ctx context.Context) error {
	var all httpapi.Members
	err := within(ctx, 0, func(ctx context.Context) (err error) {
		all, err = r.client.ListMembers(ctx)
		return err
	})
	for i := range all.Members {
		m := &all.Members[i]
		if err == nil && slices.Contains(r.lost, m.Name) && serves(m) {
			return fmt.Errorf("%s serves, so its machine is not destroyed; nothing was changed", m.Name)
		}
	}
	return nil
}

func (r *recovery) run(ctx context.Context, yes bool) error {
	if err := r.noneServes(ctx); err != nil {
		return err
	}
	if !yes {
		err := r.t.confirm(
			fmt.Sprintf("Go on without %s? What only they have decided is lost, and none of them can come back. [y/N] ", strings.Join(r.lost, ", ")),
			"pass --yes to recover without being asked", "nothing was changed",
		)
		if err != nil {
			return err
		}
	}
	var recovered httpapi.Recovery
	err := within(ctx, 0, func(ctx context.Context) (err error) {
		recovered, err = r.client.RecoverCluster(ctx, r.survivors, r.lost)
		return err
	})
	if err != nil {
		return &hintError{fmt.Errorf("recover the cluster: %w", err), "a survivor may have gone on already; repeat until all have: " + r.again()}
	}
	if err := r.t.say(fmt.Sprintf("%s decide without %s", strings.Join(recovered.Sites, ", "), strings.Join(r.lost, ", "))); err != nil {
		return err
	}
	for _, site := range slices.Sorted(slices.Values(r.lost)) {
		if err := r.writeOff(ctx, site); err != nil {
			return err
		}
	}
	return r.t.print(recovered, func(w io.Writer) {
		row(w, "the cluster goes on with "+strings.Join(recovered.Sites, ", ")+"; add sites with samya member add, as one more loss may stop it again")
	})
}

// writeOff writes a lost site off, or withdraws the seat of a site that had not joined.
func (r *recovery) writeOff(ctx context.Context, site string) error {
	c := r.t.memberChange(r.client, site, r.again(), r.timeout)
	var all httpapi.Members
	err := within(ctx, 0, func(ctx context.Context) (err error) {
		all, err = r.client.ListMembers(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("look at the members: %w", err)
	}
	m := seatOf(&all, site)
	if m == nil || m.State == "gone" || m.State == "lost" {
		return nil
	}
	lost := m.State != "joining"
	removed, err := c.remove(ctx, lost)
	if err == nil && lost {
		removed, err = c.await(ctx, isLost)
	}
	if err != nil {
		return err
	}
	return r.t.say(removedLine(removed))
}
