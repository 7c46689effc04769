package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/internal/httpapi"
)

// sitesCommand is `samya sites`.
func (p *program) sitesCommand() *cobra.Command {
	var t *talker
	cmd := &cobra.Command{
		Use:   "sites",
		Short: "Show the sites of a cluster and their health",
		Args:  exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := t.client()
			if err != nil {
				return err
			}
			return within(cmd.Context(), 0, func(ctx context.Context) error {
				s, err := client.ListSites(ctx)
				if err != nil {
					return fmt.Errorf("list the sites: %w", err)
				}
				return t.print(s, func(w io.Writer) {
					nodes := slices.ContainsFunc(s.Sites, func(site httpapi.Site) bool { return site.Node != "" })
					row(w, withNode(nodes, "NODE", "SITE", "REGION", "HEALTH", "ROUND TRIP", "SPEAKS", "ADDRESS")...)
					for _, site := range s.Sites {
						trip := "-"
						if site.RoundTripMS != nil {
							trip = strconv.FormatFloat(*site.RoundTripMS, 'f', 1, 64) + " ms"
						}
						row(w, withNode(nodes, nodeLine(site.Node, site.Term, site.Standbys),
							site.Name, site.Region, cmp.Or(site.Health, "-"), trip, spoken(site.OldestVersion, site.NewestVersion), cmp.Or(site.Address, "-"))...)
					}
					row(w)
					for _, site := range s.Sites {
						if site.Refusal != "" {
							row(w, site.Name+" is refused: "+site.Refusal)
						}
					}
					row(w, fmt.Sprintf("cluster %s, as seen by %s", s.Cluster, s.AnsweredBy))
				})
			})
		},
	}
	t = p.talk(cmd)
	return cmd
}

// withNode adds a column to a row, if any site has nodes.
func withNode(nodes bool, node string, cells ...any) []any {
	if nodes {
		cells = append(cells, node)
	}
	return cells
}

// nodeLine says which node runs a site, since which take-over, and how many others follow.
func nodeLine(node string, term int64, standbys uint32) string {
	switch {
	case node == "":
		return "-"
	case standbys == 0:
		return fmt.Sprintf("%s, term %d, no standby", node, term)
	case standbys == 1:
		return fmt.Sprintf("%s, term %d, 1 standby", node, term)
	}
	return fmt.Sprintf("%s, term %d, %d standbys", node, term, standbys)
}
