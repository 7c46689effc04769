package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/internal/name"
)

// entityReset is `samya entity reset`.
func (t *talker) entityReset() *cobra.Command {
	return &cobra.Command{
		Use:   "reset NAME",
		Short: "Have the tokens of a rate quota come back at once",
		Long: `Has the tokens of a rate quota come back at once, at all sites: of an entity, of a key of a
template, or of all keys of a template. The quota may grant its limit again from then on.
Tokens of open leases stay out.`,
		Example: `  samya entity reset llm/acme
  samya entity reset calls/203.0.113.7`,
		Args:              exactly("NAME"),
		ValidArgsFunction: t.completeEntities,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := name.Entity("name", args[0]); err != nil {
				return err
			}
			client, err := t.client()
			if err != nil {
				return err
			}
			return within(cmd.Context(), 0, func(ctx context.Context) error {
				r, err := client.ResetEntity(ctx, args[0])
				if err != nil {
					return fmt.Errorf("reset %s: %w", args[0], err)
				}
				return t.print(r, func(w io.Writer) {
					done := "reset " + args[0]
					if r.Returned > 0 {
						// A template does not count the tokens of its keys.
						done += fmt.Sprintf("; %d tokens came back", r.Returned)
					}
					row(w, done)
					if len(r.MissingSites) > 0 {
						row(w, "without an answer: "+strings.Join(r.MissingSites, ", ")+"; reset again once they answer")
					}
				})
			})
		},
	}
}
