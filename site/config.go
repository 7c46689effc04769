package site

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/node"
	"github.com/samya-db/samya/internal/preset"
	"github.com/samya-db/samya/internal/tlsconf"
	"github.com/samya-db/samya/internal/versions"
	"github.com/samya-db/samya/predict"
	"github.com/samya-db/samya/redistribute"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/policy"
	"github.com/samya-db/samya/site/partitions"
	"github.com/samya-db/samya/site/store"
	"github.com/samya-db/samya/site/wire"
)

// Config says who a site is, where it listens and keeps its data, and how it decides.
type Config struct {
	node.Config

	// DataDir is the directory of the site's state. It is made if it does not exist,
	// belongs to this site for ever after, and is locked while the site runs.
	DataDir string
	// Members is the member set of the cluster: needed for a new DataDir, and fixed by
	// it. It may be empty for an existing DataDir.
	Members []string

	// Versions are the versions that the site speaks; zero: [versions.Own]. For tests of
	// clusters of several builds.
	Versions versions.Range

	// Unvouched has the site serve at once. By default the site first waits until half
	// of the other members, rounded up, have vouched that DataDir is the latest data
	// they know of; a site cut off from them waits. Set it only if no later data
	// exists: nobody would notice tokens granted twice. A member that knows of later
	// data still stops the site.
	Unvouched bool

	// Protocol, Strategy, Policy, Offer, Trigger, Forecast and Admission choose
	// the site's modules by name, see [Config.Modules]; empty for the defaults.
	Protocol, Strategy, Policy, Offer, Trigger, Forecast, Admission string
	// Want and WaitFor choose further modules by name.
	Want, WaitFor string
	// ForecastBin is the length of a bin of demand, ForecastHorizon the number of bins
	// that a redistribution provides for; 0: 5 seconds, 6. A bin is whole milliseconds,
	// from 1 second to 1 hour; a horizon is at most 288.
	ForecastBin     time.Duration
	ForecastHorizon int
	// RequestRetention is how long a site remembers the answer to a request for repeats
	// of its id; 0: 5 minutes. At least 1 second.
	RequestRetention time.Duration
	// ClockSkew bounds how far this machine's clock may be set back, or differ from the
	// clocks that set a request's not_after. 0: 10 seconds, or a quarter of
	// RequestRetention if that is less. It must be less than RequestRetention. The
	// guarantee that a request runs once, at whatever site it is repeated, rests on it.
	ClockSkew time.Duration
	// CollectTime is how long the leader of a redistribution waits for the contributions
	// of all reachable sites; TakeoverTime is how long a redistribution may stand still
	// before a site asks or takes over. 0: as Preset says. CollectTime should exceed the
	// longest round trip with its syncs. TakeoverTime must be at least three times as
	// long.
	CollectTime, TakeoverTime time.Duration
	// CheckpointBytes is the length at which the log is carried over to the database,
	// and CheckpointInterval the longest time between two checkpoints; 0: 64 MiB, 1
	// minute. Requests wait for a checkpoint when the log is four times as long. From 4
	// KiB to 16 GiB, and from 100 milliseconds to 1 hour.
	CheckpointBytes    int64
	CheckpointInterval time.Duration
	// BackupLog is the length of the log at which a backup ends, as no checkpoint is made
	// while a backup reads the database, and BackupTime the longest time that it may
	// read; 0: twice CheckpointBytes, 10 minutes. At most three times CheckpointBytes,
	// and from 1 second to 24 hours.
	BackupLog  int64
	BackupTime time.Duration
	// MetricsEntities are entities with metrics of their own. A name chooses the entity
	// and all entities below it; a name with a / or a /* at the end only the entities
	// below; * all entities. At most 100 names, for 1,000 entities.
	MetricsEntities []string
	// MaxRequests bounds the requests remembered; 0: 18,000,000.
	MaxRequests int
	// TenantSegments is the number of leading segments of an entity's name that name
	// its tenant. Once seven eighths of MaxRequests are taken, a tenant with an equal
	// part is refused. 0: 1. At most 128.
	TenantSegments int
	// Partitions is the number of partitions that serve requests side by side; 0: a
	// partition for every two processors. At most 64.
	Partitions int
	// Fixed leaves entities in their first partitions, and splits none. Otherwise
	// entities that are used together come together.
	Fixed bool

	// Data is the open data of the site, which the site closes; nil: the site opens DataDir.
	// Nodes is the node that runs the site, if several may; see package standby. Instance and
	// Term name the node then.
	Data  *store.Store
	Nodes Nodes

	// Front makes the services that the site serves beside its own; nil: none. The site calls
	// it once.
	Front func(*Inside) (Front, error)

	// Fault drops messages to a member while it returns true: the hook of
	// tests that cut sites off. Nil never drops.
	Fault func(to string) bool
}

// Module is a choice of a site's configuration by name, such as its policy (Samya
// (Maiyya et al.), Section 4.1.1).
type Module struct {
	// Name is the setting's name, such as "policy".
	Name string
	// Choice is where the configuration holds the name chosen.
	Choice *string
	// Known are the possible names.
	Known []string
	// Default is the meaning of an empty choice.
	Default string
}

// StoreOptions are the options that the site opens DataDir with.
func (c *Config) StoreOptions() store.Options {
	return store.Options{
		Dir: c.DataDir, Cluster: c.Cluster, Site: core.SiteID(c.Name), Members: c.members(), Join: len(c.Gossip.Join) > 0,
		CheckpointBytes: c.CheckpointBytes, CheckpointEvery: c.CheckpointInterval,
		Versions:  c.Versions,
		BackupLog: c.BackupLog, BackupTime: c.BackupTime,
	}
}

// Modules returns the modules that c chooses.
func (c *Config) Modules() []Module {
	d := core.Config{}.WithDefaults()
	return []Module{
		{"protocol", &c.Protocol, policy.ProtocolNames(), d.Protocol},
		{"strategy", &c.Strategy, policy.StrategyNames(), d.Strategy},
		{"policy", &c.Policy, redistribute.Names(), d.Policy},
		{"offer", &c.Offer, policy.OfferNames(), d.Offer},
		{"trigger", &c.Trigger, policy.TriggerNames(), d.Trigger},
		{"forecast", &c.Forecast, predict.Names(), d.Forecast},
		{"want", &c.Want, policy.WantNames(), d.Want},
		{"wait-for", &c.WaitFor, policy.WaitNames(), d.Wait},
		{"admission", &c.Admission, policy.AdmissionNames(), d.Admission},
	}
}

// Validate checks all settings that it can check without touching disk or network. Its
// error names every field at fault.
func (c *Config) Validate() error {
	errs := []error{c.Config.Validate(tlsconf.Site, true)}
	bad := func(field, format string, args ...any) {
		errs = append(errs, &name.Error{Field: field, Problem: fmt.Sprintf(format, args...)})
	}
	if c.DataDir == "" {
		bad("data", "empty, must be a directory of the site's own")
	}
	errs = append(errs, c.checkMembers())
	if c.Restricted && c.TLS == nil {
		bad("access-file", "needs certificates: app managers prove by theirs who they are")
	}
	for _, m := range c.Modules() {
		if *m.Choice != "" && !slices.Contains(m.Known, *m.Choice) {
			bad(m.Name, "%.64q, must be one of %s", *m.Choice, strings.Join(m.Known, ", "))
		}
	}
	if b := c.ForecastBin; b != 0 && (b < time.Second || b > time.Hour || b%time.Millisecond != 0) {
		bad("forecast-bin", "%v, must be whole milliseconds from 1s to 1h", b)
	}
	if h := c.ForecastHorizon; h < 0 || h > predict.MaxHorizon {
		bad("forecast-horizon", "%d, must be within 0 (the default) and %d bins", h, predict.MaxHorizon)
	}
	if c.RequestRetention != 0 && c.RequestRetention < time.Second {
		bad("request-retention", "%v, at least 1s", c.RequestRetention)
	}
	if c.ClockSkew < 0 || c.ClockSkew > 0 && c.ClockSkew >= cmp.Or(c.RequestRetention, defaultRetention) {
		bad("clock-skew", "%v, must be less than the request retention", c.ClockSkew)
	}
	errs = append(errs, preset.Between("collect-time", c.CollectTime), preset.Between("takeover-time", c.TakeoverTime))
	if collect, takeover := c.timings(); takeover < 3*collect {
		bad("takeover-time", "%v, must be at least three times the collect-time of %v", takeover, collect)
	}
	if b := c.CheckpointBytes; b != 0 && (b < minCheckpoint || b > maxCheckpoint) {
		bad("checkpoint-bytes", "%d, must be from %d to %d", b, minCheckpoint, int64(maxCheckpoint))
	}
	if i := c.CheckpointInterval; i != 0 && (i < 100*time.Millisecond || i > time.Hour) {
		bad("checkpoint-interval", "%v, must be from 100ms to 1h", i)
	}
	if most := 3 * cmp.Or(c.CheckpointBytes, defaultCheckpoint); c.BackupLog != 0 && (c.BackupLog < minCheckpoint || c.BackupLog > most) {
		bad("backup-log", "%d, must be from %d to %d, three times checkpoint-bytes", c.BackupLog, minCheckpoint, most)
	}
	if t := c.BackupTime; t != 0 && (t < time.Second || t > 24*time.Hour) {
		bad("backup-time", "%v, must be from 1s to 24h", t)
	}
	if c.MaxRequests < 0 {
		bad("max-requests", "%d, at least 0 (the default)", c.MaxRequests)
	}
	if c.TenantSegments < 0 || c.TenantSegments > maxSegments {
		bad("tenant-segments", "%d, from 1 to %d, or 0 (the default)", c.TenantSegments, maxSegments)
	}
	if err := checkMetricsEntities("metrics-entities", c.MetricsEntities); err != nil {
		errs = append(errs, err)
	}
	if c.Partitions < 0 || c.Partitions > partitions.MaxCount {
		bad("partitions", "%d, want 0 (the default) to %d", c.Partitions, partitions.MaxCount)
	}
	return errors.Join(errs...)
}

// The bounds and the default of CheckpointBytes.
const (
	minCheckpoint     = 4 << 10
	maxCheckpoint     = 16 << 30
	defaultCheckpoint = 64 << 20
)

// maxSegments is the most segments of a name.
const maxSegments = 128

// Defaults of the settings that bound a request's not_after.
const (
	defaultRetention = 5 * time.Minute
	defaultSkew      = 10 * time.Second
)

// timings returns the collect time and the takeover time.
func (c *Config) timings() (collect, takeover time.Duration) {
	t, _ := preset.Of(c.Preset)
	return cmp.Or(c.CollectTime, t.CollectTime), cmp.Or(c.TakeoverTime, t.TakeoverTime)
}

// horizon is how far ahead a request's not_after may lie.
func (c *Config) horizon() time.Duration {
	retention := cmp.Or(c.RequestRetention, defaultRetention)
	return retention - cmp.Or(c.ClockSkew, min(defaultSkew, retention/4))
}

// checkMembers is strict: the members it accepts are fixed for the cluster's life.
func (c *Config) checkMembers() error {
	if len(c.Members) == 0 {
		return nil
	}
	if len(c.Members) > avantan.MaxMembers {
		return &name.Error{Field: "members", Problem: fmt.Sprintf("%d sites, at most %d", len(c.Members), avantan.MaxMembers)}
	}
	var errs []error
	for i, m := range c.Members {
		field := fmt.Sprintf("members[%d]", i)
		errs = append(errs, name.Site(field, m))
		if slices.Contains(c.Members[:i], m) {
			errs = append(errs, &name.Error{Field: field, Problem: fmt.Sprintf("%.64q stands there twice", m)})
		}
	}
	if !slices.Contains(c.Members, c.Name) {
		errs = append(errs, &name.Error{Field: "members", Problem: fmt.Sprintf("this site, %.64q, is not among them", c.Name)})
	}
	return errors.Join(errs...)
}

func (c *Config) members() []core.SiteID { return wire.SitesOf(c.Members) }
