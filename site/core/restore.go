package core

import (
	"errors"
	"fmt"
	"slices"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/star"
	"github.com/samya-db/samya/avantan/transfer"
	"github.com/samya-db/samya/internal/versions"
	"github.com/samya-db/samya/site/core/books"
	"github.com/samya-db/samya/site/core/stored"
)

func (c *Core) restore(from *stored.Restored) error {
	c.cat = catalogue{c: c.cataloguing, changes: newChangeResults(), asks: make(asks), speak: make(map[SiteID]versions.Range)}
	var state avantan.State
	if r := from.Catalogue; r != nil {
		c.settledIn = c.settledIn || r.SettledIn
		c.roster.without = slices.Sorted(slices.Values(r.Destroyed))
		c.cat.generation, c.cat.numbered, c.mode, state = r.Generation, r.Numbered, r.Mode, r.Protocol
		if err := errors.Join(state.Validate(), validMode(r.Mode)); err != nil {
			return fmt.Errorf("catalogue: %w", err)
		}
	}
	if err := c.cataloguing.restoreVersion(from); err != nil {
		return err
	}
	for _, r := range from.Changes {
		c.cat.note(r)
	}
	c.out.Reset()
	c.cat.protocol = avantan.New(&c.machine, &c.cat, state)
	c.cataloguing.scheduleCatalogue()
	stored := make(map[string]stored.Books, len(from.Books))
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
		e := c.cataloguing.newEntity(r.Name, r.Generation, r.Initial, max(1, r.Born))
		e.voters = max(e.born, r.Voters)
		if !r.Protocol.IsZero() {
			e.majority = avantan.New(&c.machine, &entityLedger{c: c.rebalancing, e: e}, r.Protocol)
		}
		if r.Star.Reserved > 0 || len(r.Star.Slices) > 0 || len(r.Star.Floors) > 0 {
			e.star = star.New(&c.starMachine, &starLedger{entityLedger{c: c.rebalancing, e: e}}, r.Star)
		}
		if err := r.Transfer.Validate(); err != nil {
			return fmt.Errorf("entity %q: %w", r.Name, err)
		}
		if r.Transfer.Reserved > 0 || len(r.Transfer.Debits) > 0 || len(r.Transfer.Credits) > 0 {
			e.transfer = transfer.New(&c.transferMachine, &transferLedger{c: c.rebalancing, e: e}, r.Transfer.Clone())
		}
		if err := r.Handoff.Validate(); err != nil {
			return fmt.Errorf("entity %q: %w", r.Name, err)
		}
		if r.Handoff.Open != nil || len(r.Handoff.Given) > 0 || len(r.Handoff.Taken) > 0 {
			e.rarely().handoff = c.leaving.handoffOf(e, r.Handoff.Clone())
		}
		e.appraised = r.Appraised
		setSettled(e, r.Returned, r.Rescued)
		e.moved, e.fetches = r.Moved, r.Fetches
		e.limit, e.version = r.Limit, r.Version
		e.setLimitResults(r.Results)
		var err error
		if e.books, err = books.Of(b.Left, b.Net, e.offered()); err != nil {
			return fmt.Errorf("entity %q: %w", r.Name, err)
		}
		if err := restoreRate(e, &r.Rate); err != nil {
			return err
		}
		c.keepOut(e, r.Surplus)
		c.retire(e, r.WrittenOff)
		if r.Debt != 0 || r.Held != 0 {
			*e.itsDebt() = debt{amount: r.Debt, since: r.DebtSince, held: r.Held, unheard: c.peers() &^ c.membersOf(r.DebtHeard), of: c.peers(), lost: c.lossesSince(e)}
			e.restand()
		}
		c.space.put(e)
		c.space.enroll(e)
		c.roster.count(e, 1)
		c.stands(e)
		if r.Shape != 0 {
			c.space.shapes[e] = r.Shape
		}
		c.assessing.schedule(e)
	}
	if err := c.restoreTree(from.Entities); err != nil {
		return err
	}
	if len(stored) != len(from.Entities) {
		return fmt.Errorf("%d books for %d entities", len(stored), len(from.Entities))
	}
	c.rebalancing.adoptSoon()
	c.leasing.restoreLeases(from.Leases)
	c.leaving.restoreFrozen()
	c.clock.restored = from.Clock
	c.forecasting.parkRestored(from.Forecasts)
	c.asking.restoreClaims(from.Claims)
	return nil
}

// restoreTree puts the restored entities below their parents.
func (c *Core) restoreTree(records []stored.Entity) error {
	byGeneration := make(map[uint64]*entity)
	for i := range records {
		r := &records[i]
		if e := byGeneration[r.Generation]; e != nil {
			return fmt.Errorf("entities %q and %q have the same generation, %d", e.name, r.Name, r.Generation)
		}
		byGeneration[r.Generation] = c.space.find(r.Name)
	}
	for i := range records {
		r := &records[i]
		e, parent := byGeneration[r.Generation], byGeneration[r.Parent]
		switch {
		case r.Parent == 0:
			continue
		case parent == nil:
			return fmt.Errorf("entity %q: its parent, of generation %d, is missing", r.Name, r.Parent)
		case parent.stands(e):
			return fmt.Errorf("entity %q: its parent %q stands below it", r.Name, parent.name)
		}
		c.space.link(e, parent)
	}
	for _, e := range c.space.below.Items() {
		if e.depth() > MaxDepth {
			return fmt.Errorf("entity %q: %d stand above it, at most %d may", e.name, e.depth()-1, MaxDepth-1)
		}
	}
	return nil
}
