package main

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/name"
)

// modeCommand is `samya mode`.
func (p *program) modeCommand() *cobra.Command {
	var t *talker
	cmd := &cobra.Command{
		Use:   "mode",
		Short: "Show under which protocol the sites redistribute, or change it",
		Long: `Shows what each site goes by: the mode that the cluster decided on, or, as long
as it decided on none, the site's own --protocol. It governs what a site begins;
what is under way ends under the protocol that it began under.`,
		Example: "  samya mode\n  samya mode set auto",
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := t.client()
			if err != nil {
				return err
			}
			return within(cmd.Context(), 0, func(ctx context.Context) error {
				m, err := client.GetMode(ctx)
				if err != nil {
					return fmt.Errorf("read the mode: %w", err)
				}
				return t.print(m, func(w io.Writer) { printMode(w, m) })
			})
		},
	}
	t = p.talk(cmd)
	cmd.AddCommand(t.modeSet())
	return cmd
}

func printMode(w io.Writer, m httpapi.ModeStatus) {
	if m.Version == 0 {
		row(w, "no mode was decided; each site goes by its own --protocol")
	} else {
		row(w, fmt.Sprintf("the mode is %s (version %d)", m.Protocol, m.Version))
	}
	row(w)
	row(w, "SITE", "IN FORCE", "VERSION", "--protocol")
	for _, s := range m.Sites {
		if !s.Known {
			row(w, s.Site, "?", "?", "?")
			continue
		}
		row(w, s.Site, s.Protocol, s.Version, cmp.Or(s.Configured, "-"))
	}
	if !m.Complete {
		row(w)
		row(w, "Not every site answered.")
	}
}

func (t *talker) modeSet() *cobra.Command {
	var version uint64
	var requestID string
	cmd := &cobra.Command{
		Use:       "set MODE",
		Short:     "Change the protocol of all sites: majority, star or auto",
		Args:      exactly("MODE"),
		ValidArgs: name.Modes(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := name.Mode("mode", args[0]); err != nil {
				return err
			}
			client, err := t.client()
			if err != nil {
				return err
			}
			return within(cmd.Context(), 0, func(ctx context.Context) error {
				m, err := client.SetMode(ctx, args[0], version, requestID)
				if err != nil {
					return fmt.Errorf("change the mode: %w", err)
				}
				return t.print(m, func(w io.Writer) { row(w, fmt.Sprintf("the mode is now %s (version %d)", m.Protocol, m.Version)) })
			})
		},
	}
	cmd.Flags().Uint64Var(&version, "expected-version", 0, "change only from this version; 0: any")
	cmd.Flags().StringVar(&requestID, "request-id", "", requestIDUsage)
	return cmd
}
