package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/internal/preset"
	"github.com/samya-db/samya/internal/settings"
	"github.com/samya-db/samya/site"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/replica"
	"github.com/samya-db/samya/site/standby"
	"github.com/samya-db/samya/site/store"
)

// siteCommand is `samya site`.
func (p *program) siteCommand() *cobra.Command {
	var s served
	var cfg site.Config
	var e etcdFlags
	var limits siteLimits
	cmd := &cobra.Command{
		Use:   "site --name NAME --data DIR --members NAME,…",
		Short: "Run a site: it holds tokens and grants them",
		Long: `Runs one site of a cluster until it is interrupted.

The members are needed for the first start alone: they are kept in the data
directory, and from then on a decision of the sites changes them, no flag.

A site that joins a running cluster has a new data directory, a name that no site
of the cluster has had, no --members, and the gossip address of any member in
--join. It serves once it was added (samya member add NAME) and all members know it.`,
		Example: `  samya site --name us --members us,eu,as --data /var/lib/samya \
    --grpc 10.0.0.1:7001 --http 10.0.0.1:7101 --gossip 10.0.0.1:7201 --join 10.1.0.1:7201 \
    --tls-cert site-us.pem --tls-key site-us-key.pem --tls-ca ca.pem --access-file access.yaml --gossip-key-file gossip.key`,
		GroupID: groupServe,
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if s.service = "samya-site"; e.node.Node != "" {
				s.instance = s.Name + "/" + e.node.Node
			}
			guarded, err := s.complete(p, guardConfig{data: cfg.DataDir, relays: true})
			if err != nil {
				return err
			}
			defer guarded.close()
			cfg.Config = s.Config
			if err := cfg.Validate(); err != nil {
				return &usageError{err}
			}
			replicated, err := e.complete()
			if err != nil {
				return err
			}
			if cfg.Front, err = limits.front(&s); err != nil {
				return err
			}
			e.node.Site = cfg
			if replicated {
				if err := e.node.Validate(); err != nil {
					return &usageError{err}
				}
			}
			cfg.Logger.Info("starting", slog.String("version", version()), slog.String("region", cfg.Region),
				slog.String("grpc", cfg.GRPC), slog.String("http", cfg.HTTP), slog.String("data", cfg.DataDir))
			return p.serve(cmd, &s, func(ctx context.Context) error {
				run := func() error { return site.Run(ctx, cfg) }
				if replicated {
					run = func() error { return standby.Run(ctx, e.node) }
				}
				err := run()
				switch {
				case errors.Is(err, store.ErrNoMembers):
					return &hintError{fmt.Errorf("site %s: %w", cfg.Name, err), "for a new cluster, name all its sites with --members; to join a running one, name a site of it with --join, and add this one with: samya member add " + cfg.Name}
				case stale(err):
					return &hintError{
						fmt.Errorf("site %s: %w", cfg.Name, err),
						"put the latest data of this site in --data, or its latest backup; docs/backup.md tells what can be done without. A site that joins anew needs a name that no site has had",
					}
				case usedName(err):
					return &hintError{
						fmt.Errorf("site %s: %w", cfg.Name, err),
						"a site that lost its data cannot come back under its name: remove the new data, and join with a --name that no site has had",
					}
				case errors.Is(err, store.ErrRescued):
					return &hintError{fmt.Errorf("site %s: %w", cfg.Name, err), "samya member list tells whether the rescue is done; then the directory may be deleted"}
				case out(err):
					return &hintError{
						fmt.Errorf("site %s: %w", cfg.Name, err),
						"if the site was written off, its data can still bring back what it held: samya site rescue " + cfg.DataDir,
					}
				case errors.Is(err, store.ErrNode):
					return &hintError{fmt.Errorf("site %s: %w", cfg.Name, err), "start the node with --log etcd, --node and --etcd-endpoints as before"}
				case errors.Is(err, replica.ErrLost):
					return &hintError{fmt.Errorf("site %s: %w", cfg.Name, err), "if etcd is a new or an older one, put the latest back; docs/nodes.md tells what can be done without"}
				case err != nil:
					return fmt.Errorf("site %s: %w", cfg.Name, err)
				}
				return nil
			})
		},
	}
	f := cmd.Flags()
	settingsOf(cmd, kindSite)
	configFlag(f)
	s.flags(f, "127.0.0.1:7001", "127.0.0.1:7101", "127.0.0.1:7201")
	f.StringVar(&cfg.DataDir, "data", "", dataUsage)
	f.StringSliceVar(&cfg.Members, "members", nil, "names of all sites of the cluster, for the first start")
	f.BoolVar(&cfg.Unvouched, "unvouched", false, "serve before other sites vouch that the data is the latest; only if you know that it is")
	preset.Var(f, &cfg.CollectTime, "collect-time")
	preset.Var(f, &cfg.TakeoverTime, "takeover-time")
	f.DurationVar(&cfg.RequestRetention, "request-retention", 5*time.Minute, "how long the answer to a request id is remembered")
	f.DurationVar(&cfg.ClockSkew, "clock-skew", 0, "by how much the clocks that requests go by may differ: less than the request retention (default 10s, or a quarter of a retention below 40s)")
	f.IntVar(&cfg.Partitions, "partitions", 0, "partitions, serving requests side by side; 0 is 1")
	f.BoolVar(&cfg.Fixed, "fixed-partitions", false, "leave entities in the partitions in which they come, instead of bringing entities used together into the same partition, and split none")
	f.IntVar(&cfg.MaxRequests, "max-requests", 18_000_000, "how many request ids of clients are remembered at most, about 57 bytes each; beyond, requests are refused. An eighth more is kept for requests that other sites ask about")
	f.IntVar(&cfg.TenantSegments, "tenant-segments", 1, "how many segments of an entity's name, from the first on, name its tenant: once seven eighths of max-requests are taken, tenants with an equal part are refused")
	f.StringSliceVar(&cfg.MetricsEntities, "metrics-entities", nil, "entities whose limit, available and acquired tokens are metrics: names, each with all below it; acme/* is all below acme, * all; 1,000 entities at most")
	settings.SizeVar(f, &cfg.CheckpointBytes, "checkpoint-bytes", 64<<20, "how long the log gets before it is carried over to the database; after a crash so much is read again, or four times that at most")
	f.DurationVar(&cfg.CheckpointInterval, "checkpoint-interval", time.Minute, "how often the log is carried over to the database at least")
	settings.SizeVar(f, &cfg.BackupLog, "backup-log", 0, "how long the log gets while a backup is made, which is ended then: the log is not carried over meanwhile; at most three times checkpoint-bytes (default twice checkpoint-bytes)")
	f.DurationVar(&cfg.BackupTime, "backup-time", 10*time.Minute, "how long a backup may take from the time its data begins")
	f.DurationVar(&cfg.ForecastBin, "forecast-bin", 5*time.Second, "length of the bins in which demand is counted and forecast")
	f.IntVar(&cfg.ForecastHorizon, "forecast-horizon", 6, "how many bins a redistribution provides for")
	for _, m := range cfg.Modules() {
		f.StringVar(m.Choice, m.Name, m.Default, fmt.Sprintf("%s: %s", moduleUses[m.Name], strings.Join(m.Known, ", ")))
		must(cmd.RegisterFlagCompletionFunc(m.Name, cobra.FixedCompletions(m.Known, cobra.ShellCompDirectiveNoFileComp)))
	}
	settings.FormerOfAnother(f, "wait", "wait-for")
	rateLimitFlags(cmd, &limits.Settings)
	e.flags(f)
	e.completions(cmd)
	s.completions(cmd)
	cmd.AddGroup(&cobra.Group{ID: groupTalk, Title: titleTalk})
	cmd.AddCommand(p.siteInspect(), p.siteBackup(), p.siteRestore(), p.siteRescue(), p.siteNodes(), p.siteHandOver(), p.siteForgetNode())
	return cmd
}

// dataUsage describes the flag --data.
const dataUsage = "directory of the site's state, its own for ever"

// stale reports whether err says that a site was started on data other than its latest.
func stale(err error) bool {
	_, is := errors.AsType[*core.StaleError](err)
	return is
}

// usedName reports whether err says that a site joins under a name that was used before.
func usedName(err error) bool {
	_, is := errors.AsType[*core.UsedNameError](err)
	return is
}

// out reports whether err says that the site has no place in the cluster any more.
func out(err error) bool {
	_, is := errors.AsType[*core.OutError](err)
	return is
}

// moduleUses describes the decision of each module of a site.
var moduleUses = map[string]string{
	"protocol":  "how redistributions are agreed, until the cluster decides on a mode (samya mode)",
	"strategy":  "how a site gets tokens it is short of: by an instance, or from other sites one by one first",
	"policy":    "who gets how many tokens",
	"offer":     "tokens that a site offers to a redistribution",
	"trigger":   "when a redistribution starts",
	"want":      "how many tokens a site wants to hold",
	"wait-for":  "for whom the leader of a redistribution waits that a majority decides",
	"forecast":  "how demand is forecast",
	"admission": "fate of an acquire for which a site is short of tokens",
}
