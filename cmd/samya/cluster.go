package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/internal/httpapi"
)

// clusterCommand is `samya cluster`.
func (p *program) clusterCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Show and raise the version of a cluster, or recover it",
		Args:  exactly(),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	t := p.talk(cmd)
	cmd.AddCommand(t.clusterVersion(), t.clusterRecover())
	return cmd
}

func (t *talker) clusterVersion() *cobra.Command {
	var raise bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the version of the cluster and of its sites' builds, or raise it",
		Long: `Shows the version of the cluster, in whose form the sites write messages and
data, and which versions the build of each site speaks.

With --raise the sites raise the version by one, if all are connected and speak the
next version. Until then every site can go back to its build before; afterwards it
cannot. Raise the version once the upgraded cluster has proved itself, and before
the next upgrade.`,
		Example: "  samya cluster version\n  samya cluster version --raise",
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := t.client()
			if err != nil {
				return err
			}
			return within(cmd.Context(), 0, func(ctx context.Context) error {
				v, err := client.GetVersion(ctx)
				if err != nil {
					return fmt.Errorf("read the version: %w", err)
				}
				if !raise {
					return t.print(v, func(w io.Writer) { printVersion(w, v) })
				}
				if v.Complete && !slices.ContainsFunc(v.Sites, func(s httpapi.SiteVersion) bool { return s.Newest > v.Version.Version }) {
					return t.print(v.Version, func(w io.Writer) {
						row(w, fmt.Sprintf("the cluster is of version %d, and no site has a build of a later one", v.Version.Version))
					})
				}
				raised, err := client.RaiseVersion(ctx, v.Version.Version+1, "")
				if err != nil {
					return fmt.Errorf("raise the version: %w", err)
				}
				return t.print(raised, func(w io.Writer) { row(w, fmt.Sprintf("the cluster is now of version %d", raised.Version)) })
			})
		},
	}
	cmd.Flags().BoolVar(&raise, "raise", false, "raise the version of the cluster by one")
	return cmd
}

func printVersion(w io.Writer, v httpapi.VersionStatus) {
	row(w, fmt.Sprintf("the cluster is of version %d", v.Version.Version))
	row(w)
	row(w, "SITE", "KNOWS", "SPEAKS", "BUILD")
	var behind []string
	for _, s := range v.Sites {
		if !s.Known {
			row(w, s.Site, "?", "?", s.Problem)
			continue
		}
		row(w, s.Site, s.Version, spoken(s.Oldest, s.Newest), cmp.Or(s.Build, "-"))
		if s.Newest <= v.Version.Version {
			behind = append(behind, s.Site)
		}
	}
	row(w)
	switch {
	case !v.Complete:
		row(w, "Not every site answered.")
	case len(behind) == len(v.Sites):
		row(w, "No site has a build of a later version.")
	case len(behind) > 0:
		row(w, fmt.Sprintf("Version %d waits for another build at: %s.", v.Version.Version+1, strings.Join(behind, ", ")))
	default:
		row(w, fmt.Sprintf("All sites speak version %d: raise it with --raise. No site can go back afterwards.", v.Version.Version+1))
	}
}

// spoken writes the versions that a build speaks; 0 stands for not known.
func spoken(oldest, newest uint32) string {
	switch {
	case newest == 0:
		return "-"
	case oldest == newest:
		return fmt.Sprint(newest)
	}
	return fmt.Sprintf("%d to %d", oldest, newest)
}
