package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/appmgr"
	"github.com/samya-db/samya/internal/membership"
)

// appmgrCommand is `samya appmgr`.
func (p *program) appmgrCommand() *cobra.Command {
	var s served
	var grpc string
	var repeatTime time.Duration
	cmd := &cobra.Command{
		Use:   "appmgr --name NAME --region REGION --join HOST:PORT,…",
		Short: "Run an app manager: it serves clients and asks the nearest site",
		Long: `Runs one app manager until it is interrupted. It keeps no state: any number of
them can run, in any region.`,
		Example: "  samya appmgr --name am-us --region us --http 127.0.0.1:8080 --join 10.0.0.1:7201",
		GroupID: groupServe,
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := s.logger(p.stderr)
			if err != nil {
				return err
			}
			latency, err := s.latency()
			if err != nil {
				return err
			}
			cfg := appmgr.Config{
				Name: s.name, Region: cmp.Or(s.region, s.name), Cluster: s.cluster, HTTPAddr: s.http, GRPCAddr: grpc,
				Gossip:     appmgr.Gossip{Bind: s.gossip, Join: s.join, Preset: membership.Preset(s.preset), KeyFile: s.keyFile},
				RepeatTime: repeatTime, Logger: log,
			}
			guarded, err := s.security.open(guardConfig{keyFile: s.keyFile, judging: p.judging, log: log})
			if err != nil {
				return err
			}
			defer guarded.close()
			cfg.TLS, cfg.Access, cfg.Restricted, cfg.Insecure = guarded.tls, guarded.access, guarded.restricted, s.security.insecure
			cfg.MaxConns, cfg.MaxConcurrent, cfg.Build = s.security.conns, s.security.inFlight, build()
			if latency != nil {
				cfg.Latency = latency.OneWay
			}
			if err := cfg.Validate(); err != nil {
				return &usageError{err}
			}
			manager, err := appmgr.New(cfg)
			if err != nil {
				return err
			}
			log.Info("starting", slog.String("version", version()), slog.String("region", cfg.Region),
				slog.String("grpc", cfg.GRPCAddr), slog.String("http", cfg.HTTPAddr))
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
	s.flags(f, "127.0.0.1:8080", "127.0.0.1:8280")
	f.StringVar(&grpc, "grpc", "127.0.0.1:8180", "address to serve gRPC on")
	f.DurationVar(&repeatTime, "repeat-time", appmgr.DefaultRepeatTime, "how long beyond its wait a request without a not_after can be repeated at any site")
	s.completions(cmd)
	return cmd
}
