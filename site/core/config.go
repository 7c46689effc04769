package core

import (
	"errors"
	"fmt"
	"slices"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/internal/session"
	"github.com/samya-db/samya/internal/versions"
	"github.com/samya-db/samya/predict"
	"github.com/samya-db/samya/redistribute"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/policy"
)

// Config identifies a core and chooses how it decides. The zero value of a field with a
// default means that default.
type Config struct {
	// Self is this site, a member.
	Self SiteID
	// Members are the sites of a new cluster; the catalogue decides on others later. For
	// a site that joins they are sites that it may learn from.
	Members []SiteID
	// Joining says that this site joins a cluster. Without data of its own, it waits to
	// be admitted.
	Joining bool

	// Versions are the versions that the build speaks; default [versions.Own].
	Versions versions.Range

	// Protocol, Strategy, Policy, Offer, Trigger, Forecast and Admission choose the
	// modules by name: see the exported name list of each. Protocol holds until the
	// cluster decides on a mode, see SetMode.
	Protocol, Strategy, Policy, Offer, Trigger, Forecast, Admission string
	// Want and Wait choose modules too: how much a site wants to hold, and for which
	// sites it waits as the leader of a majority instance.
	Want, Wait string

	// Retention is the time for which records of answered requests are kept, in
	// milliseconds; default 5 minutes. A later repeat runs anew, unless it has a time
	// after which it must not run. Records are kept longer while another member is out of
	// reach and there are fewer than half of MaxRequests.
	Retention int64
	// Skew is the most by which this site's wall clock may be set back within Retention,
	// in milliseconds; default 10 seconds, or a quarter of a Retention below 40 seconds.
	// The guarantee that a request runs once, however late an attempt comes, rests on it.
	Skew int64
	// MaxClaims bounds, for each other member, the requests to ask that member about,
	// without acquires that still wait; default 65536 (about 500 bytes each).
	MaxClaims int
	// MaxRequests bounds the records kept, and the acquires that wait; default 18,000,000
	// (about 57 bytes of memory each). At the bound requests are refused as Overloaded;
	// from seven eighths on, only requests of tenants that have an equal part of it.
	MaxRequests int
	// MaxOpen bounds the requests between the first of a session without acknowledgement and the
	// last: the records of a longer session are kept as those without a session. Default
	// session.MaxOpen.
	MaxOpen int
	// TenantSegments is the number of leading segments of an entity's name that name its
	// tenant; default 1. Tenants share MaxRequests, MaxWaitingAll and MaxWatchers.
	TenantSegments int
	// MaxLeases bounds the leases; default 1,000,000 (about 300 bytes of memory each). At
	// the bound acquires of leases are refused as Overloaded.
	MaxLeases int
	// MaxWaiting bounds the acquires that wait for an entity; default 10,000.
	MaxWaiting int
	// MaxWaitingAll bounds the acquires that wait at the site; default 100,000.
	MaxWaitingAll int
	// Hold is the time in milliseconds for which other acquires wait for the acquire that
	// has waited longest for an entity, while a redistribution counts it; default 1000.
	Hold Tick
	// MaxEntities bounds the entities that this site lets be created; default 250,000
	// (about 0.6 kB of memory each, and the forecasting model for entities with demand in
	// more than one bin). Sites configured otherwise may create more.
	MaxEntities int
	// MaxKeys bounds the keys of all templates that need memory; default 2,000,000 (about 100
	// bytes each). Beyond it keys not used lately are dropped: they come back with as few
	// tokens as the key with the fewest among them.
	MaxKeys int
	// MaxChanges bounds the administrative changes under way; default 10,000.
	MaxChanges int
	// MaxResults and MaxLimitResults bound the kept results of decided changes, kept for
	// twice Retention so that no change runs twice. MaxResults is for the catalogue
	// (about 600 bytes each; default 262,144), MaxLimitResults for the limit changes of
	// an entity (about 150 bytes each; default 256). When a table is full, changes are
	// refused as Overloaded.
	MaxResults, MaxLimitResults int
	// KeepChanges is the number of decided changes of the catalogue kept, however old,
	// for sites that missed them; default 4096. A site that missed more gets the whole
	// catalogue.
	KeepChanges int
	// MaxBatch bounds the changes that an instance of the catalogue decides; default
	// 1024.
	MaxBatch int
	// MaxTold bounds the entities whose applied limits are told in a round, default 64.
	// MaxSummaries bounds the entities in a message about a site's tokens, default 512.
	// MaxAsks bounds the requests that a message asks about, default 512.
	MaxTold, MaxSummaries, MaxAsks int
	// MaxWatchers bounds the callers that watch entities; default 10,000.
	MaxWatchers int

	// Window is the time in milliseconds for which a leader waits for the contributions
	// of all reachable sites: above the farthest round trip and its syncs; default 450.
	Window Tick
	// Patience is the time in milliseconds for which a site waits for an instance to move
	// before it asks or takes over: at least three Windows; default 1500.
	Patience Tick
	// Backoff and MaxBackoff bound the pause, in milliseconds, of a leader that lost
	// against another or found no majority; defaults 50 and 2000.
	Backoff, MaxBackoff Tick
	// GiveUp and MaxGiveUp bound the pause, in milliseconds, after an instance that
	// showed that no site has tokens; defaults 500 and 8000.
	GiveUp, MaxGiveUp Tick
	// MaxResend bounds the pause, in milliseconds, after which unacknowledged tokens sent
	// to another site are sent again; default 8000.
	MaxResend Tick
	// Sync is the pause in milliseconds between two rounds of peering the other sites how
	// far the catalogue and changed limits are applied; default 5000.
	Sync Tick
	// Bin is the length of a forecasting bin in milliseconds; default 5000. Horizon is
	// the number of bins that a redistribution provides for, at most 288; default 6. Day
	// is the number of bins in a day, for models that look for seasons: at most 86400.
	// Day 0 means a day of 24 hours, unless a bin is shorter than a second; -1 means no
	// seasons.
	Bin     Tick
	Horizon int
	Day     int
	// ForecastIdle is the time in milliseconds without demand after which an entity's
	// forecasting model leaves the memory. Its state stays on disk and, within MaxParked
	// bytes for all, in memory. Defaults 24 hours and 64 MiB.
	ForecastIdle Tick
	MaxParked    int

	// Traces says that the caller records the spans of the events. Otherwise the core hands
	// traces on, and adds none of its spans.
	Traces bool
	// Run is the random id of this start, drawn anew for each. The site then serves only
	// once enough members vouch for its data; see guard. 0 is for tests of other things:
	// the guard asks, tells and checks nothing.
	Run message.Run
	// Unvouched has the site serve before any member has vouched: the operator knows that
	// the data is the latest. A member that knows better stops the site.
	Unvouched bool
	// VouchWait is the time in milliseconds after its start for which a site waits for
	// the word of all members although enough have vouched for its data. It should exceed
	// the time to make links; default 2000.
	VouchWait Tick
	// Tell is the pause in milliseconds between two rounds of asking members to vouch, or
	// of peering them about this site's data and busy entities. It also bounds the time
	// for which the members' marks are remembered in memory only; default 1000.
	Tell Tick

	// Rand is the source of jitter.
	Rand avantan.Rand
}

func orDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// RequestHorizon bounds how far ahead, in milliseconds, the time after which a request
// must not run may lie: a record outlives all attempts of its request.
func (c *Config) RequestHorizon() int64 { return c.Retention - c.Skew }

// WithDefaults returns the configuration with the defaults filled in.
func (c Config) WithDefaults() Config {
	c.setDefaults()
	return c
}

func (c *Config) setDefaults() {
	orDefault(&c.Versions, versions.Own())
	orDefault(&c.Protocol, "majority")
	orDefault(&c.Policy, redistribute.EqualRisk)
	orDefault(&c.Strategy, "transfer")
	orDefault(&c.Offer, "spare")
	orDefault(&c.Trigger, "low-water")
	orDefault(&c.Forecast, predict.Auto)
	orDefault(&c.Admission, "wait")
	orDefault(&c.Want, "quantile")
	orDefault(&c.Wait, "all")
	orDefault(&c.Retention, 5*60*1000)
	orDefault(&c.Skew, min(10_000, c.Retention/4))
	orDefault(&c.MaxClaims, 65536)
	orDefault(&c.MaxRequests, 18_000_000)
	orDefault(&c.MaxOpen, session.MaxOpen)
	orDefault(&c.TenantSegments, 1)
	orDefault(&c.MaxLeases, 1_000_000)
	orDefault(&c.MaxWaiting, 10_000)
	orDefault(&c.MaxWaitingAll, 100_000)
	orDefault(&c.Hold, 1000)
	orDefault(&c.MaxEntities, 250_000)
	orDefault(&c.MaxKeys, 2_000_000)
	orDefault(&c.MaxChanges, 10_000)
	orDefault(&c.MaxWatchers, 10_000)
	orDefault(&c.MaxResults, 262_144)
	orDefault(&c.MaxLimitResults, 256)
	orDefault(&c.KeepChanges, 4096)
	orDefault(&c.MaxBatch, 1024)
	orDefault(&c.MaxTold, 64)
	orDefault(&c.MaxSummaries, 512)
	orDefault(&c.MaxAsks, 512)
	orDefault(&c.Window, 450)
	orDefault(&c.Patience, 1500)
	orDefault(&c.Backoff, 50)
	orDefault(&c.MaxBackoff, 2000)
	orDefault(&c.GiveUp, 500)
	orDefault(&c.MaxGiveUp, 8000)
	orDefault(&c.MaxResend, 8000)
	orDefault(&c.Sync, 5000)
	orDefault(&c.VouchWait, 2000)
	orDefault(&c.Tell, 1000)
	orDefault(&c.Bin, 5000)
	orDefault(&c.Horizon, 6)
	orDefault(&c.ForecastIdle, 24*60*60*1000)
	orDefault(&c.MaxParked, 64<<20)
	if c.Day == 0 {
		c.Day = -1
		if c.Bin >= 1000 {
			c.Day = int((24*60*60*1000 + c.Bin/2) / c.Bin)
		}
	}
}

// choose resolves the configuration's names. Its errors name the field.
func (c *Config) choose() (policy.Modules, error) {
	m, err := policy.Choose(policy.Names{
		Admission: c.Admission, Strategy: c.Strategy, Offer: c.Offer, Trigger: c.Trigger, Want: c.Want, Wait: c.Wait,
	})
	errs := []error{err}
	check := func(field string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", field, err))
		}
	}
	_, err = policy.ProtocolNamed(c.Protocol)
	check("protocol", err)
	_, err = redistribute.ByName(c.Policy)
	check("policy", err)
	_, err = predict.ByName(c.Forecast, c.forecastOptions())
	check("forecast", err)
	if !slices.IsSorted(c.Members) || len(slices.Compact(slices.Clone(c.Members))) != len(c.Members) {
		errs = append(errs, errors.New("members: not sorted or not distinct"))
	}
	if !c.Joining && !slices.Contains(c.Members, c.Self) {
		errs = append(errs, fmt.Errorf("self: site %q is no member", c.Self))
	}
	if c.Rand == nil {
		errs = append(errs, errors.New("rand: missing"))
	}
	if c.Skew < 0 || c.Skew >= c.Retention {
		errs = append(errs, fmt.Errorf("skew: %d ms, with a retention of %d ms", c.Skew, c.Retention))
	}
	if c.Patience < 3*c.Window {
		errs = append(errs, fmt.Errorf("patience: %d ms is not three times window, %d ms", c.Patience, c.Window))
	}
	return m, errors.Join(errs...)
}

// forecastOptions are the options of all models.
func (c *Config) forecastOptions() predict.Options {
	return predict.Options{Horizon: c.Horizon, Day: max(0, c.Day)}
}
