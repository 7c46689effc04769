package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"
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
					row(w, "SITE", "REGION", "HEALTH", "ROUND TRIP", "SPEAKS", "ADDRESS")
					for _, site := range s.Sites {
						trip := "-"
						if site.RoundTripMS != nil {
							trip = strconv.FormatFloat(*site.RoundTripMS, 'f', 1, 64) + " ms"
						}
						row(w, site.Name, site.Region, cmp.Or(site.Health, "-"), trip, spoken(site.OldestVersion, site.NewestVersion), cmp.Or(site.Address, "-"))
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
