package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/devcluster/local"
)

// localDrain is `samya local drain`.
func (p *program) localDrain() *cobra.Command {
	return p.localChange("drain SITE", "Have a site leave the cluster, which hands over what it holds",
		`Has a site leave the cluster, stops it once it has, and sets its data aside, in the
folder left of the cluster's directory. The command waits until the site has forgotten
its requests (5 minutes, unless --request-retention is set). It may be interrupted and
repeated.`,
		func(cfg *local.Config, region, site string) error {
			cfg.Leave = []string{site}
			shrink(cfg, region)
			return nil
		})
}

// localReplace is `samya local replace`.
func (p *program) localReplace() *cobra.Command {
	var lost bool
	cmd := p.localChange("replace SITE", "Have a site leave in favour of a new one of its region",
		`Adds a site in the region of another, which then leaves; see samya local drain. With
--lost the other is ended and written off first: nobody ever grants again the tokens
that it held.`,
		func(cfg *local.Config, _, site string) error {
			if lost {
				cfg.Lost = []string{site}
			} else {
				cfg.Leave = []string{site}
			}
			return nil
		})
	cmd.Flags().BoolVar(&lost, "lost", false, lostHelp)
	return cmd
}

// localRemove is `samya local remove`.
func (p *program) localRemove() *cobra.Command {
	var lost bool
	cmd := p.localChange("remove SITE", "End a site whose data is lost, and write it off",
		`Ends a site whose data is lost, and writes it off, with --lost: nobody ever grants
again the tokens that it held. Any other site leaves by samya local drain.`,
		func(cfg *local.Config, region, site string) error {
			if !lost {
				return &hintError{errors.New("nothing was changed: a site is removed only with --lost"), "have it leave: samya local drain " + site}
			}
			cfg.Lost = []string{site}
			shrink(cfg, region)
			return nil
		})
	cmd.Flags().BoolVar(&lost, "lost", false, lostHelp)
	return cmd
}

// shrink has a region want a site less. The region is empty if that was done before.
func shrink(cfg *local.Config, region string) {
	if r, ok := cfg.Regions[region]; ok {
		r.Sites = max(0, r.Sites-1)
		cfg.Regions[region] = r
	}
}

// localChange is a command that changes what was wanted last for a site.
func (p *program) localChange(use, short, long string, change func(cfg *local.Config, region, site string) error) *cobra.Command {
	var f localFlags
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Long:  long,
		Args:  exactly("SITE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := f.path()
			if err != nil {
				return err
			}
			cfg, region, err := wantedLast(dir, args[0])
			if err == nil {
				err = change(cfg, region, args[0])
			}
			if err != nil {
				return err
			}
			return p.applyLocal(cmd.Context(), *cfg, f.timeout)
		},
	}
	f.add(cmd, leaveTimeout)
	return cmd
}

// wantedLast is what was wanted last of a cluster that has, or has had, a site, and the
// region of the site; none for a site that leaves already or has left.
func wantedLast(dir, site string) (*local.Config, string, error) {
	state, err := local.Read(dir)
	if err != nil {
		return nil, "", err
	}
	run, has := state.Processes[site]
	gone := slices.Contains(state.Gone, site)
	switch {
	case state.Config == nil:
		return nil, "", &hintError{fmt.Errorf("there is no cluster in %s, or one of an older build", dir), "say what is wanted with: samya local up --dir " + dir}
	case !gone && (!has || run.Kind != local.KindSite || run.Site != "" && run.Site != site):
		return nil, "", &hintError{fmt.Errorf("there is no site %s in %s", site, dir), "see which there are with: samya local status --dir " + dir}
	}
	region := run.Region
	if gone || slices.Contains(state.Leaving, site) {
		region = ""
	}
	cfg := *state.Config
	cfg.Regions = maps.Clone(cfg.Regions)
	if cfg.Samya, err = os.Executable(); err != nil {
		return nil, "", fmt.Errorf("find this program: %w", err)
	}
	return &cfg, region, nil
}
