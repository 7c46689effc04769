package core

import (
	"errors"
	"fmt"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/star"
	"github.com/samya-db/samya/avantan/transfer"
	"github.com/samya-db/samya/internal/portion"
	"github.com/samya-db/samya/site/core/books"
)

// Core is one site's deterministic core. See the package comment for the
// duties of its caller.
type Core struct {
	cfg  Config
	mods modules
	// machine, starMachine and transferMachine configure the machines of all entities.
	machine         avantan.Config
	starMachine     star.Config
	transferMachine transfer.Config
	// applied is the last instance applied in the current step of a machine, if any.
	applied *settled

	space    space
	cat      catalogue
	requests requestTable
	lanes    lanes
	leases   leases
	clock    clock
	owed     owed
	// surplus is the number of tokens kept out of circulation, of all entities.
	surplus Tokens
	// waiting finds the acquires that wait, by request and by caller.
	waiting      map[RequestKey]*waiting
	waitingCalls map[Call]*waiting
	// arrivals counts the acquires that ever waited; charges counts the entities charged
	// by waiting acquires, waitingParts their parts.
	arrivals              uint64
	charges, waitingParts int
	// waitingOf counts each tenant's waiting acquires, watchersOf the watchers of its
	// entities.
	waitingOf, watchersOf portion.Counts
	// watchers finds the entities that callers watch; revision is the revision of the
	// last transaction with an entity.
	watchers map[Call]*entity
	revision Revision
	timers   calendar[*entity] // of the entities that wait for a time
	// reachable are the sites that seem to be up; nil if unknown.
	reachable []SiteID
	guard     guard
	gossip    gossip
	halt      halt
	forecasts forecasts

	now Now
	out Effects
	// stopping is set once no acquire may wait any more.
	stopping bool
	// suspected is set once suspectRestored has looked at the restored entities.
	suspected bool
	// touched are the entities with something to persist.
	touched []*entity
	// due are the marked entities, to be settled before the step ends.
	due []*entity
}

// New makes a core from its configuration and the contents of its disk; the zero Restored
// is a new site's. Errors name the configuration field at fault, or the inconsistency on
// the disk.
func New(cfg Config, from Restored) (*Core, error) {
	cfg.setDefaults()
	mods, err := cfg.choose()
	if err != nil {
		return nil, fmt.Errorf("configuring the core: %w", err)
	}
	c := &Core{
		cfg: cfg, mods: mods,
		machine: avantan.Config{
			Self: cfg.Self, Members: cfg.Members,
			Wait: mods.wait, Window: cfg.Window, Patience: cfg.Patience,
			Backoff: cfg.Backoff, MaxBackoff: cfg.MaxBackoff, Rand: cfg.Rand, Policy: cfg.Policy,
		},
		space:        newSpace(),
		requests:     newRequestTable(from.Blocks, cfg.Skew, newTenantsOf(&cfg, &from)),
		waiting:      make(map[RequestKey]*waiting),
		waitingCalls: make(map[Call]*waiting),
		watchers:     make(map[Call]*entity), revision: 1,
	}
	c.starMachine = star.Config{
		Self: cfg.Self, Members: cfg.Members, Window: cfg.Window, Patience: cfg.Patience,
		Backoff: cfg.Backoff, MaxBackoff: cfg.MaxBackoff, MaxSlices: maxSlices, Policy: cfg.Policy,
		Reachable: c.seemsUp, Rand: cfg.Rand,
	}
	c.transferMachine = transfer.Config{
		Self: cfg.Self, Members: cfg.Members, Window: cfg.Window,
		// Half of Backoff lies above the farthest round trip.
		Backoff: 2 * cfg.Window, MaxBackoff: max(2*cfg.Window, cfg.MaxResend), Rand: cfg.Rand,
	}
	if err := errors.Join(c.machine.Validate(), c.starMachine.Validate(), c.transferMachine.Validate()); err != nil {
		return nil, fmt.Errorf("configuring the protocols: %w", err)
	}
	c.machine.Reachable = c.seemsUp
	if err := c.restore(&from); err != nil {
		return nil, fmt.Errorf("restoring the core: %w", err)
	}
	c.startGuard(&from)
	return c, nil
}

func (c *Core) restore(from *Restored) error {
	c.cat = catalogue{c: c, changes: newChangeResults(), asks: make(asks)}
	var state avantan.State
	if r := from.Catalogue; r != nil {
		c.cat.generation, c.cat.numbered, c.cat.mode, state = r.Generation, r.Numbered, r.Mode, r.Protocol
		if err := errors.Join(state.Validate(), r.Mode.validate()); err != nil {
			return fmt.Errorf("catalogue: %w", err)
		}
	}
	for _, r := range from.Changes {
		c.cat.note(r)
	}
	c.out.Reset()
	c.cat.protocol = avantan.New(&c.machine, &c.cat, state)
	c.scheduleCatalogue()
	stored := make(map[string]BooksRecord, len(from.Books))
	for _, b := range from.Books {
		stored[b.Name] = b
	}
	for _, r := range from.Entities {
		if err := r.Protocol.Validate(); err != nil {
			return fmt.Errorf("entity %q: %w", r.Name, err)
		}
		b, ok := stored[r.Name]
		if !ok || b.Generation != r.Generation {
			return fmt.Errorf("entity %q, generation %d: its books are missing", r.Name, r.Generation)
		}
		if err := r.Star.Validate(); err != nil {
			return fmt.Errorf("entity %q: %w", r.Name, err)
		}
		e := c.newEntity(r.Name, r.Generation, r.Initial)
		if !r.Protocol.IsZero() {
			e.majority = avantan.New(&c.machine, &entityLedger{c: c, e: e}, r.Protocol)
		}
		if r.Star.Reserved > 0 || len(r.Star.Slices) > 0 || len(r.Star.Floors) > 0 {
			e.star = star.New(&c.starMachine, &starLedger{entityLedger{c: c, e: e}}, r.Star)
		}
		if err := r.Transfer.Validate(); err != nil {
			return fmt.Errorf("entity %q: %w", r.Name, err)
		}
		if r.Transfer.Reserved > 0 || len(r.Transfer.Debits) > 0 || len(r.Transfer.Credits) > 0 {
			e.transfer = transfer.New(&c.transferMachine, &transferLedger{c: c, e: e}, r.Transfer.Clone())
		}
		e.moved, e.fetches = r.Moved, r.Fetches
		e.limit, e.version = r.Limit, r.Version
		e.setLimitResults(r.Results)
		var err error
		if e.books, err = books.Of(b.Left, b.Net, e.offered()); err != nil {
			return fmt.Errorf("entity %q: %w", r.Name, err)
		}
		c.keepOut(e, r.Surplus)
		if r.Debt != 0 || r.Held != 0 {
			*e.itsDebt() = debt{amount: r.Debt, since: r.DebtSince, held: r.Held, unheard: c.peers() &^ c.membersOf(r.DebtHeard)}
			e.restand()
		}
		c.space.put(e)
		if r.Shape != 0 {
			c.space.shapes[e] = r.Shape
		}
		c.schedule(e)
	}
	if err := c.restoreTree(from.Entities); err != nil {
		return err
	}
	if len(stored) != len(from.Entities) {
		return fmt.Errorf("%d books for %d entities", len(stored), len(from.Entities))
	}
	c.restoreLeases(from.Leases)
	c.clock.restored = from.Clock
	c.parkRestored(from.Forecasts)
	c.restoreClaims(from.Claims)
	return nil
}

// Step handles an input at the time now and gathers its effects.
func (c *Core) Step(now Now, in Input) {
	now.Tick = max(now.Tick, c.now.Tick)
	c.now = now
	if c.lanes.apart {
		c.joinLanes()
	}
	if !c.clock.started {
		c.startClock()
		c.startLeases()
	}
	if !c.guard.open {
		c.stepGuarded(in)
		if _, woken := in.(Wake); !woken || !c.guard.open {
			return
		}
		// The site has just begun to serve, and all else may be due.
	}
	c.suspectRestored()
	if c.refuseHalted(in) {
		return
	}
	switch in := in.(type) {
	case *Acquire:
		c.acquire(in)
	case *AcquireAll:
		c.acquireAll(in)
	case *Release:
		c.release(in)
	case *Cancel:
		if !c.unwatch(in.Call) {
			c.cancel(in.Call)
		}
	case *Read:
		c.readEntity(in)
	case *ReadMode:
		c.reply(in.Call, Answer{Details: &Details{Mode: c.modeNow()}})
	case *RenewLease, *CommitLease, *ListLeases:
		c.leaseInput(in)
	case *Watch:
		c.watch(in)
	case *SetForecast:
		c.setForecast(in)
	case *ReadForecast:
		c.reply(in.Call, Answer{Details: &Details{Forecast: c.forecastChoice()}})
	case *List:
		c.list(in)
	case *Change:
		c.change(in)
	case Deliver:
		c.deliver(in)
	case Reachable:
		c.reach(in.Sites)
	case Stop:
		c.stop()
		c.stopWatches()
	case Wake:
		c.wake()
	}
	if len(c.due) > 0 {
		c.settle()
	}
}

// Drain moves the gathered effects into e, which must be empty or Reset.
func (c *Core) Drain(e *Effects) {
	if c.lanes.apart {
		c.joinLanes()
	}
	rec := &c.out.Records
	c.verify()
	c.revise()
	for _, en := range c.touched {
		if c.serves(en) {
			c.recordEntity(rec, en)
		}
		en.listed, en.dirtyBooks, en.dirtyRecord = false, false, false
	}
	clear(c.touched)
	c.touched = c.touched[:0]
	if c.cat.dirty {
		c.cat.dirty = false
		rec.Catalogue = &CatalogueRecord{
			Generation: c.cat.generation, Numbered: c.cat.numbered, Mode: c.cat.mode,
			Protocol: c.cat.protocol.State().Clone(),
		}
	}
	if len(rec.Block.Records) > 0 {
		c.requests.seal(&rec.Block, c.now)
	}
	c.storeForecasts(rec)
	c.storeClock(rec)
	if c.guard.open {
		// Also without new records: a full table takes none before old records go.
		rec.ForgetBlocks = c.requests.expire(c.now.Tick, c.keepRequests(), forgetMost+2*len(rec.Block.Records))
	}
	c.withhold()
	c.askFresh()
	c.seal()
	*e, c.out = c.out, *e
}

func (c *Core) recordEntity(rec *Records, e *entity) {
	if e.dirtyBooks {
		rec.Books = append(rec.Books, BooksRecord{Name: e.name, Generation: e.generation, Left: e.books.Left(), Net: e.books.Net()})
	}
	if e.dirtyRecord {
		r := EntityRecord{
			Name: e.name, Generation: e.generation, Initial: e.initial, Limit: e.limit, Version: e.version,
			Results: append([]LimitResult(nil), e.limitResults()...), Moved: e.moved, Fetches: e.fetches,
			Surplus: e.surplus(), Shape: c.space.shapes[e],
		}
		if d := e.debt(); d != nil {
			r.Debt, r.DebtSince, r.DebtHeard, r.Held = d.amount, d.since, c.heardBy(d), d.held
		}
		if e.parent() != nil {
			r.Parent = e.parent().generation
		}
		if e.majority != nil {
			r.Protocol = e.majority.State().Clone()
		}
		if e.star != nil {
			r.Star = e.star.State().Clone()
		}
		if e.transfer != nil {
			r.Transfer = e.transfer.State().Clone()
		}
		rec.Entities = append(rec.Entities, r)
	}
}

// Pending reports whether Drain would return anything.
func (c *Core) Pending() bool {
	if c.lanes.apart {
		c.joinLanes()
	}
	return len(c.touched) > 0 || c.cat.dirty || c.guard.flush || c.forecasts.pressing || !c.out.Empty()
}

// Status is the state of a core for health checks and gauges.
type Status struct {
	Entities, Waiting, Requests, Changes, Leases, Watchers int
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
	Surplus   Tokens
	Catalogue avantan.Instance
	// Mode names the protocol under which the site begins instances.
	Mode Mode
}

// Status counts the contents of the core.
func (c *Core) Status() Status {
	if c.lanes.apart {
		c.joinLanes()
	}
	return Status{
		Entities: c.space.len(), Waiting: len(c.waiting), Waited: c.arrivals, Requests: c.requests.len(),
		Changes: len(c.cat.pending), Leases: len(c.leases.byKey), Watchers: len(c.watchers), Claims: c.owed.open,
		Surplus: c.surplus, Halted: len(c.halt.generations),
		Missing: c.guard.missing(), Catalogue: c.cat.protocol.State().Applied, Mode: c.modeNow(),
	}
}

func (c *Core) reply(call Call, a Answer) {
	c.out.Replies = append(c.out.Replies, Reply{Call: call, Answer: a})
}

func (c *Core) send(entity string, generation uint64, messages []avantan.Message) {
	for _, m := range messages {
		c.out.Messages = append(c.out.Messages, Envelope{Entity: entity, Generation: generation, Message: m})
	}
}

func (c *Core) touch(e *entity) {
	if !e.listed {
		e.listed = true
		c.touched = append(c.touched, e)
	}
}

func (c *Core) dirtyBooks(e *entity) {
	e.dirtyBooks = true
	if e.audit != nil {
		e.audit.note(e.books.Net())
	}
	c.touch(e)
}

func (c *Core) dirtyRecord(e *entity) {
	e.dirtyRecord = true
	c.touch(e)
}

func (c *Core) situation(e *entity) Situation {
	c.keepApart(e)
	s := e.situation(c.now.Tick, c.forecast(e))
	if left, told := c.elsewhere(e); told && left+max(0, e.usable()) < e.limit/worthwhilePart {
		s.Scarce = true
	}
	c.loans(e, &s)
	s.Direct = c.mods.strategy.Direct()
	if c.gossip.lackingOf == e {
		s.Lacking = c.gossip.lacking
	}
	return s
}

func (c *Core) exists(e *entity) bool { return !e.removed }

func (c *Core) newEntity(name string, generation uint64, initial Tokens) *entity {
	e := &entity{name: name, generation: generation, initial: initial, limit: initial, version: 1, heapAt: -1}
	e.hunt.lastGrant = shareOf(initial, c.cfg.Members, c.cfg.Self)
	return e
}

// addEntity gives a created entity its books, with this site's share.
func (c *Core) addEntity(name string, generation uint64, limit Tokens) *entity {
	e := c.newEntity(name, generation, limit)
	var err error
	e.books, err = books.Of(shareOf(limit, c.cfg.Members, c.cfg.Self), 0, 0)
	c.keepWhole(e, err)
	c.space.put(e)
	c.dirtyBooks(e)
	c.dirtyRecord(e)
	return e
}

// dropEntity forgets a deleted entity without children. rechain answers the acquires that
// wait for its tokens.
func (c *Core) dropEntity(e *entity) {
	for _, p := range e.limitChanges() {
		c.answerAll(p, Answer{Code: NotFound})
	}
	e.setLimitChanges(nil)
	c.endAcks(e)
	c.endWatches(e, e.deleted())
	c.timers.remove(e)
	c.deletedLeases(e)
	c.keepOut(e, 0)
	c.unsplit(e)
	c.unpark(e.name)
	delete(c.halt.generations, e.generation)
	e.demand = demand{}
	c.space.remove(e)
	c.out.Records.Deleted = append(c.out.Records.Deleted, e.name)
}

// deliver hands another site's messages to their sequences.
func (c *Core) deliver(d Deliver) {
	for i := range d.Messages {
		env := &d.Messages[i]
		if env.From() != d.From || env.To() != c.cfg.Self || (env.Star != nil || env.Transfer != nil || env.Audit != nil) && env.Entity == "" {
			c.out.Events = append(c.out.Events, Event{
				Kind: ProtocolFault, Entity: env.Entity,
				Err: fmt.Errorf("message from %q to %q came from %q", env.From(), env.To(), d.From),
			})
			continue
		}
		switch {
		case env.Vouch != nil:
			c.vouch(d.From, env)
			continue
		case !c.takes(d.From, env):
			continue
		case env.Gossip != nil:
			c.hear(env.Gossip)
			continue
		case env.Claims != nil:
			c.claims(env.Claims)
			continue
		}
		if env.Entity == "" {
			c.stepCatalogue(avantan.Input{Receive: &env.Message})
			continue
		}
		c.space.Execute([]string{env.Entity}, func(es []*entity) {
			if e := es[0]; e != nil && e.generation == env.Generation {
				switch {
				case e.halted():
				case env.Star != nil:
					c.stepStar(e, star.Input{Receive: env.Star})
				case env.Audit != nil:
					c.audited(e, env.Audit)
				case env.Transfer != nil:
					c.stepTransfer(e, transfer.Input{Receive: env.Transfer})
				default:
					c.stepMajority(e, avantan.Input{Receive: &env.Message})
				}
				return
			}
			// A later generation than any known here means that this site has missed a
			// creation. An earlier generation is of a deleted entity, and its sender will
			// learn of the deletion from the catalogue too.
			if env.Generation > c.cat.generation {
				c.askCatalogue(d.From)
			} else {
				c.tellCatalogue(d.From)
			}
		})
	}
}
