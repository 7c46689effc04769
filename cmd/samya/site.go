package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/predict"
	"github.com/samya-db/samya/redistribute"
	"github.com/samya-db/samya/site"
	"github.com/samya-db/samya/site/core"
)

// siteGCPercent is how much a site's heap grows between two collections. Its
// garbage is that of single requests, its live memory mostly a table without
// pointers: half as many collections as by default give some 5 % of throughput
// for memory that a site has. GOGC overrides it.
const siteGCPercent = 200

// siteCommand is `samya site`.
func (p *program) siteCommand() *cobra.Command {
	var s served
	var cfg site.Config
	cmd := &cobra.Command{
		Use:   "site --name NAME --data DIR --members NAME,…",
		Short: "Run a site: it holds tokens and grants them",
		Long: `Runs one site of a cluster until it is interrupted.

The members are needed for the first start alone: they are kept in the data
directory, and from then on a decision of the sites changes them, no flag.`,
		Example: `  samya site --name us --members us,eu,as --data /var/lib/samya \
    --listen 10.0.0.1:7001 --http 10.0.0.1:7101 --gossip 10.0.0.1:7201 --join 10.1.0.1:7201`,
		GroupID: groupServe,
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := s.logger(p.stderr)
			if err != nil {
				return err
			}
			key, err := s.gossipKey()
			if err != nil {
				return err
			}
			latency, err := s.latency()
			if err != nil {
				return err
			}
			cfg.Cluster, cfg.Name, cfg.Region = s.cluster, s.name, cmp.Or(s.region, s.name)
			cfg.HTTP, cfg.Gossip, cfg.Join = s.http, s.gossip, s.join
			cfg.GossipPreset, cfg.GossipKey, cfg.WAN, cfg.Logger = s.preset, key, latency, log
			if err := errors.Join(cfg.Validate(), checkModules(&cfg)); err != nil {
				return &usageError{err}
			}
			log.Info("starting", slog.String("version", version()), slog.String("region", cfg.Region),
				slog.String("grpc", cfg.Listen), slog.String("http", cfg.HTTP), slog.String("data", cfg.DataDir))
			if os.Getenv("GOGC") == "" {
				debug.SetGCPercent(siteGCPercent)
			}
			return p.serve(cmd, &s, func(ctx context.Context) error {
				if err := site.Run(ctx, cfg); err != nil {
					return fmt.Errorf("site %s: %w", cfg.Name, err)
				}
				return nil
			})
		},
	}
	f := cmd.Flags()
	s.flags(f, "127.0.0.1:7101", "127.0.0.1:7201")
	f.StringVar(&cfg.DataDir, "data", "", "directory of the site's state, its own for ever")
	f.StringSliceVar(&cfg.Members, "members", nil, "names of all sites of the cluster, for the first start")
	f.StringVar(&cfg.Listen, "listen", "127.0.0.1:7001", "address to serve gRPC on: the API and the other sites")
	f.DurationVar(&cfg.RequestRetention, "request-retention", 5*time.Minute, "how long the answer to a request id is remembered")
	f.IntVar(&cfg.MaxRequests, "max-requests", 4_000_000, "how many request ids are remembered at most, about 100 bytes each; beyond, requests are refused")
	for _, m := range modules(&cfg) {
		f.StringVar(m.value, m.flag, "", fmt.Sprintf("%s: %s (default: the site's)", m.use, strings.Join(m.names, ", ")))
		must(cmd.RegisterFlagCompletionFunc(m.flag, cobra.FixedCompletions(m.names, cobra.ShellCompDirectiveNoFileComp)))
	}
	s.completions(cmd)
	return cmd
}

// module is one of a site's modules that are chosen by name.
type module struct {
	flag, use string
	value     *string
	names     []string
}

func modules(cfg *site.Config) []module {
	return []module{
		{"protocol", "how redistributions are agreed", &cfg.Protocol, core.ProtocolNames()},
		{"policy", "who gets how many tokens", &cfg.Policy, redistribute.Names()},
		{"offer", "what a site gives to a redistribution", &cfg.Offer, core.OfferNames()},
		{"trigger", "when a redistribution starts", &cfg.Trigger, core.TriggerNames()},
		{"forecast", "how demand is forecast", &cfg.Forecast, predict.Names()},
		{"admission", "what becomes of an acquire that a site is short of tokens for", &cfg.Admission, core.AdmissionNames()},
	}
}

// checkModules checks the names before anything is made of them on disk.
func checkModules(cfg *site.Config) error {
	for _, m := range modules(cfg) {
		if *m.value != "" && !slices.Contains(m.names, *m.value) {
			return fmt.Errorf("%s: %q, must be one of %s", m.flag, *m.value, strings.Join(m.names, ", "))
		}
	}
	return nil
}
