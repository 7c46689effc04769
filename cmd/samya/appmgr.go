package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/appmgr"
	"github.com/samya-db/samya/internal/preset"
)

// appmgrCommand is `samya appmgr`.
func (p *program) appmgrCommand() *cobra.Command {
	var s served
	var cfg appmgr.Config
	cmd := &cobra.Command{
		Use:   "appmgr --name NAME --region REGION --join HOST:PORT,…",
		Short: "Run an app manager: it serves clients and asks the nearest site",
		Long: `Runs one app manager until it is interrupted. It keeps no state: any number of
them can run, in any region.`,
		Example: "  samya appmgr --name am-us --region us --http 127.0.0.1:8080 --join 10.0.0.1:7201",
		GroupID: groupServe,
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s.service = "samya-appmgr"
			guarded, err := s.complete(p, guardConfig{})
			if err != nil {
				return err
			}
			defer guarded.close()
			cfg.Config, cfg.MaxConcurrent = s.Config, s.security.inFlight
			if err := cfg.Validate(); err != nil {
				return &usageError{err}
			}
			cfg.Doctor = doctorOf(&cfg)
			manager, err := appmgr.New(cfg)
			if err != nil {
				return err
			}
			cfg.Logger.Info("starting", slog.String("version", version()), slog.String("region", cfg.Region),
				slog.String("grpc", cfg.GRPC), slog.String("http", cfg.HTTP))
			return p.serve(cmd, &s, func(ctx context.Context) error {
				if err := manager.Run(ctx); err != nil {
					return fmt.Errorf("app manager %s: %w", cfg.Name, err)
				}
				return nil
			})
		},
	}
	f := cmd.Flags()
	settingsOf(cmd, kindAppmgr)
	configFlag(f)
	s.flags(f, "127.0.0.1:8180", "127.0.0.1:8080", "127.0.0.1:8280")
	preset.Var(f, &cfg.ProbeInterval, "probe-interval")
	preset.Var(f, &cfg.ProbeTimeout, "probe-timeout")
	preset.Var(f, &cfg.TryTime, "try-time")
	f.DurationVar(&cfg.RepeatTime, "repeat-time", appmgr.DefaultRepeatTime, "how long beyond its wait a request without a not_after can be repeated at any site")
	f.BoolVar(&cfg.Console, "console", true, "serve the web console at /console/ of the HTTP listener")
	rateLimitFlags(cmd, &cfg.RateLimits)
	s.completions(cmd)
	return cmd
}
