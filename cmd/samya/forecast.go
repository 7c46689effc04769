package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/name"
)

// forecastCommand is `samya forecast`.
func (p *program) forecastCommand() *cobra.Command {
	var t *talker
	cmd := &cobra.Command{
		Use:   "forecast",
		Short: "Show by which model the sites forecast demand, or change it",
		Long: `Shows by which model each site forecasts demand: its own --forecast, or the one
that it was last told to use since it started.`,
		Example: "  samya forecast\n  samya forecast set mean-rate",
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := t.client()
			if err != nil {
				return err
			}
			return within(cmd.Context(), 0, func(ctx context.Context) error {
				f, err := client.GetForecast(ctx)
				if err != nil {
					return fmt.Errorf("read the model: %w", err)
				}
				return t.print(f, func(w io.Writer) { printForecast(w, f) })
			})
		},
	}
	t = p.talk(cmd)
	cmd.AddCommand(t.forecastSet())
	return cmd
}

func printForecast(w io.Writer, f httpapi.ForecastStatus) {
	row(w, "SITE", "IN FORCE", "--forecast")
	for _, s := range f.Sites {
		if s.Known {
			row(w, s.Site, s.Model, s.Configured)
		} else {
			row(w, s.Site, "?", "?")
		}
	}
	if !f.Complete {
		row(w)
		row(w, "Not every site answered.")
	}
}

// errSomeSites says that a change has not reached all sites.
var errSomeSites = errors.New("not every site has changed")

func (t *talker) forecastSet() *cobra.Command {
	return &cobra.Command{
		Use:   "set MODEL",
		Short: "Change the model of all sites until they are restarted",
		Long: `Has every site forecast by another model, at once and without a restart. What can
be kept of what was learnt is kept. It holds until a site is restarted: the
lasting setting is --forecast of samya site.

Beware of lstm, which is for trials: each time an entity's model learns, its site
answers nobody for up to a second.

Each site changes by itself. If one does not answer, the command fails and tells
which; the others have changed, and to repeat it does no harm.`,
		Args:      exactly("MODEL"),
		ValidArgs: name.Forecasts(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := name.Forecast("model", args[0]); err != nil {
				return err
			}
			client, err := t.client()
			if err != nil {
				return err
			}
			return within(cmd.Context(), 0, func(ctx context.Context) error {
				f, err := client.SetForecast(ctx, args[0])
				if err != nil {
					return fmt.Errorf("change the model: %w", err)
				}
				if err := t.print(f, func(w io.Writer) { printForecast(w, f) }); err != nil {
					return err
				}
				for _, s := range f.Sites {
					if !s.Known {
						err = errors.Join(err, fmt.Errorf("%s: %s", s.Site, s.Problem))
					}
				}
				if err != nil {
					return &hintError{
						fmt.Errorf("change the model: %w: %w", errSomeSites, err),
						"repeat the command; the sites that have changed stay as they are",
					}
				}
				return nil
			})
		},
	}
}
