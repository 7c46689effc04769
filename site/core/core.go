package core

import (
	"errors"
	"fmt"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/handoff"
	"github.com/samya-db/samya/avantan/star"
	"github.com/samya-db/samya/avantan/transfer"
	"github.com/samya-db/samya/internal/versions"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// Core is one site's deterministic core. See the package comment for the duties of its
// caller. It hands each input to one of its machines, of which each embeds those before
// it that it builds on.
type Core struct {
	*common
	*peering
	*forecasting
	*charging
	*reading
	*assessing
	*remembering
	*asking
	*leasing
	*repeating
	*keying
	*admitting
	*limiting
	*auditing
	*rebalancing
	*gossiping
	*sharding
	*cataloguing
	*fencing
	*serving
	*leaving
}

// newCore makes the machines of a core.
func newCore(common *common) *Core {
	peering := &peering{common: common}
	forecasting := &forecasting{common: common, peering: peering}
	charging := &charging{common: common, forecasting: forecasting}
	reading := &reading{common: common, peering: peering, watchers: make(map[input.Call]*entity), revision: 1}
	assessing := &assessing{common: common, peering: peering, forecasting: forecasting, reading: reading}
	remembering := &remembering{
		common: common, reading: reading, waiting: make(map[attempt.Key]*waiting), waitingCalls: make(map[input.Call]*waiting),
	}
	asking := &asking{common: common, charging: charging, remembering: remembering}
	leasing := &leasing{common: common, charging: charging, remembering: remembering, asking: asking}
	repeating := &repeating{common: common, charging: charging, remembering: remembering, asking: asking, leasing: leasing}
	keying := &keying{common: common, charging: charging, remembering: remembering, asking: asking}
	admitting := &admitting{
		common: common, forecasting: forecasting, charging: charging, assessing: assessing, remembering: remembering,
		asking: asking, leasing: leasing, repeating: repeating, keying: keying,
	}
	limiting := &limiting{common: common, assessing: assessing}
	auditing := &auditing{common: common, peering: peering, assessing: assessing}
	rebalancing := &rebalancing{common: common, peering: peering, assessing: assessing, admitting: admitting, limiting: limiting}
	gossiping := &gossiping{common: common, peering: peering, assessing: assessing, auditing: auditing}
	sharding := &sharding{common: common}
	cataloguing := &cataloguing{
		common: common, peering: peering, forecasting: forecasting, reading: reading, sharding: sharding, leasing: leasing,
		admitting: admitting, limiting: limiting,
	}
	fencing := &fencing{common: common, forecasting: forecasting, asking: asking, cataloguing: cataloguing}
	serving := &serving{
		common: common, peering: peering, forecasting: forecasting, charging: charging, assessing: assessing,
		remembering: remembering, leasing: leasing, sharding: sharding, rebalancing: rebalancing, fencing: fencing,
	}
	leaving := &leaving{
		common: common, peering: peering, charging: charging, remembering: remembering, asking: asking, leasing: leasing, limiting: limiting,
		rebalancing: rebalancing, cataloguing: cataloguing,
	}
	return &Core{
		common: common, peering: peering, forecasting: forecasting, charging: charging, reading: reading,
		assessing: assessing, remembering: remembering, asking: asking, leasing: leasing, repeating: repeating, keying: keying,
		admitting: admitting, limiting: limiting, auditing: auditing, rebalancing: rebalancing, gossiping: gossiping,
		sharding: sharding, cataloguing: cataloguing, fencing: fencing, serving: serving, leaving: leaving,
	}
}

// New makes a core from its configuration and the contents of its disk; the zero Restored
// is a new site's. Errors name the configuration field at fault, or the inconsistency on
// the disk.
func New(cfg Config, from stored.Restored) (*Core, error) {
	cfg.setDefaults()
	mods, err := cfg.choose()
	if err != nil {
		return nil, fmt.Errorf("configuring the core: %w", err)
	}
	decided, err := rosterOf(&cfg, &from)
	if err != nil {
		return nil, fmt.Errorf("restoring the roster: %w", err)
	}
	c := newCore(&common{cfg: cfg, mods: mods, space: newSpace(), roster: newRoster(cfg.Self, cfg.Members, decided)})
	c.requests = newRequestTable(cfg.MaxRequests, cfg.MaxOpen)
	if err := c.requests.restore(&from, cfg.Skew, newTenantsOf(&cfg, &from)); err != nil {
		return nil, fmt.Errorf("restoring the requests: %w", err)
	}
	c.machine = avantan.Config{
		Self: cfg.Self, Known: c.roster.knows, Lost: c.roster.destroyed, Serving: c.roster.survivors,
		Wait: mods.Wait, Window: cfg.Window, Patience: cfg.Patience,
		Backoff: cfg.Backoff, MaxBackoff: cfg.MaxBackoff, Rand: cfg.Rand, Policy: cfg.Policy,
	}
	c.starMachine = star.Config{
		Self: cfg.Self, Members: c.roster.names, Serves: c.roster.shares, Window: cfg.Window, Patience: cfg.Patience,
		Backoff: cfg.Backoff, MaxBackoff: cfg.MaxBackoff, MaxSlices: maxSlices, Policy: cfg.Policy,
		// A slice with a site that is gone has ended everywhere: nothing else was under way
		// when the site went. A crash may bring its record back, and nobody waits for the site.
		Reachable: c.seemsUp, Lost: c.roster.out, Rand: cfg.Rand,
	}
	c.transferMachine = transfer.Config{
		Self: cfg.Self, Members: c.roster.names, Lost: c.roster.out, Window: cfg.Window,
		// Half of Backoff lies above the farthest round trip.
		Backoff: 2 * cfg.Window, MaxBackoff: max(2*cfg.Window, cfg.MaxResend), Rand: cfg.Rand,
	}
	c.leave.machine = handoff.Config{
		Self: cfg.Self, MaxItems: handoff.MaxItems, Backoff: 2 * cfg.Window, MaxBackoff: max(2*cfg.Window, cfg.MaxResend), Rand: cfg.Rand,
	}
	if err := errors.Join(c.leave.machine.Validate(), c.machine.Validate(), c.starMachine.Validate(), c.transferMachine.Validate()); err != nil {
		return nil, fmt.Errorf("configuring the protocols: %w", err)
	}
	c.machine.Reachable = c.seemsUp
	c.fresh = decided.Version == 0
	if s := decided.Seat(cfg.Self); s != nil && s.State == stored.SeatMember && s.Since == 0 {
		c.settledIn = true
	}
	if err := c.restore(&from); err != nil {
		return nil, fmt.Errorf("restoring the core: %w", err)
	}
	c.fencing.startFence(&from)
	if decided.Version > 0 && c.roster.changed().Version > 0 {
		c.tellSites()
	}
	return c, nil
}

// Step handles an input at the time now and gathers its effects.
func (c *Core) Step(now input.Now, in input.Input) {
	now.Tick = max(now.Tick, c.now.Tick)
	c.now = now
	if c.shards.apart {
		c.serving.joinShards()
	}
	if !c.clock.started {
		c.leasing.startClock()
		c.leasing.startLeases()
		c.keying.start()
	}
	if in, recovers := in.(*input.Recover); recovers {
		c.recovered(in)
		return
	}
	if !c.fence.open {
		c.fencing.stepFenced(in)
		if _, woken := in.(input.Wake); !woken || !c.fence.open {
			return
		}
		// The site has just begun to serve, and all else may be due.
	}
	c.suspectRestored()
	if c.refuseOutside(in) || c.refuseHalted(in) {
		return
	}
	switch in := in.(type) {
	case *input.Acquire:
		c.admitting.acquire(in)
	case *input.AcquireAll:
		c.admitting.acquireAll(in)
	case *input.Release:
		c.admitting.release(in)
	case *input.Cancel:
		if !c.reading.unwatch(in.Call) {
			c.remembering.cancel(in.Call)
		}
	case *input.Read:
		c.readEntity(in)
	case *input.ReadMode:
		c.reply(in.Call, answer.Answer{Details: &answer.Details{Mode: c.assessing.modeNow()}})
	case *input.ReadMembers:
		c.reply(in.Call, answer.Answer{Details: &answer.Details{Members: c.fencing.remembers(c.leaving.members())}})
	case *input.RenewLease, *input.CommitLease, *input.ListLeases:
		c.leasing.leaseInput(in)
	case *input.Watch:
		c.reading.watch(in)
	case *input.Reset:
		c.reset(in)
	case *input.SetForecast:
		c.forecasting.setForecast(in)
	case *input.ReadForecast:
		c.reply(in.Call, answer.Answer{Details: &answer.Details{Forecast: c.forecasting.forecastChoice()}})
	case *input.List:
		c.reading.list(in)
	case *input.Observe:
		c.observe(in)
	case *input.Change:
		c.leaving.changeHere(in)
		c.reseat()
	case input.Deliver:
		c.deliver(in)
	case input.Reachable:
		c.fencing.reach(in.Sites)
	case input.Speaks:
		c.cataloguing.speaks(in)
	case input.Stop:
		c.stop()
		c.reading.stopWatches()
	case input.Wake:
		c.wake()
	}
	if len(c.mistrusted) > 0 {
		c.auditing.mistrustReports()
	}
	c.rebalancing.settle()
}

// Status is the state of a core for health checks and gauges.
type Status struct {
	Entities, Waiting, Requests, Changes, Leases, Watchers int
	// Keys counts the keys of templates that need memory; never fewer than there are.
	Keys int
	// Waited counts the acquires that ever waited for tokens, present ones included.
	Waited uint64
	// Claims are the requests about which other members have not answered yet.
	Claims int
	// Missing is the number of members that must vouch for the site's data before it
	// serves; 0 once it does.
	Missing int
	// Halted is the number of entities halted because of a broken balance.
	Halted int
	// Surplus is the number of tokens kept out of circulation, of all entities.
	Surplus Tokens
	// Leaves says that the site drains.
	Leaves bool
	// Settling is Missing where the data is vouched for and the members have to hear of
	// this site.
	Settling int
	// WrittenOff is the number of tokens written off with lost sites, of all entities.
	WrittenOff Tokens
	// Members is the number of members, and Behind the number of entities that have not
	// adopted their view yet, as far as this site knows.
	Members, Behind int
	Catalogue       avantan.Instance
	// Mode names the protocol under which the site begins instances.
	Mode answer.Mode
	// Versions is what the site tells of its versions.
	Versions versions.Speaker
}

// settling is the number of members that have to hear of this site before it serves.
func (c *Core) settling() int {
	if !c.fence.open || c.settledIn {
		return 0
	}
	return c.cataloguing.unheard()
}

// Status counts the contents of the core.
func (c *Core) Status() Status {
	if c.shards.apart {
		c.serving.joinShards()
	}
	return Status{
		Entities: c.space.len(), Keys: c.space.keys, Waiting: len(c.waiting), Waited: c.arrivals, Requests: c.requests.len(),
		Changes: len(c.cat.pending), Leases: len(c.leases.byKey), Watchers: len(c.watchers), Claims: c.queries.open,
		Surplus: c.surplus, WrittenOff: c.writtenOff, Halted: len(c.halt.generations),
		Leaves: c.roster.leaves, Members: c.roster.size(), Behind: c.roster.behind,
		Missing: c.fence.missing() + c.settling(), Settling: c.settling(), Catalogue: c.cat.protocol.State().Applied, Mode: c.assessing.modeNow(),
		Versions: c.versions,
	}
}
