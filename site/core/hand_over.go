package core

import (
	"errors"
	"fmt"
	"math"

	"github.com/samya-db/samya/avantan/handoff"
	"github.com/samya-db/samya/avantan/star"
	"github.com/samya-db/samya/avantan/transfer"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
)

// handOver has a site that leaves hand the next part of an entity to its heir. It reports
// whether a bequest begins.
func (c *leaving) handOver(e *entity) bool {
	if !c.rests(e) {
		return false
	}
	r := &c.leave.round.rests
	r.Entities++
	r.Tokens += max(0, e.books.Left()) + max(0, e.books.Net())
	if e.handoff() != nil && e.handoff().Open() || !c.mayBequeath(e) {
		return false
	}
	c.stepHandoff(e, handoff.Input{Begin: c.roster.Seat(c.cfg.Self).Heir})
	return true
}

// rests reports whether a site that leaves still has a part in an entity.
func (c *leaving) rests(e *entity) bool {
	return e.books.Left() != 0 || e.books.Net() != 0 || e.books.Aside() != 0 || !e.learns ||
		e.handoff() != nil && e.handoff().Open() || e.transfer != nil && e.transfer.State().InFlight() > 0 ||
		e.star != nil && len(e.star.State().Slices) > 0
}

// mayBequeath reports whether a bequest may begin. The site votes on the entity no more,
// so no instance counts on its tokens. The heir knows of the drain, so that no cut takes
// tokens that both sites count for two (docs/protocol.md, section 21).
func (c *leaving) mayBequeath(e *entity) bool {
	seat := c.roster.Seat(c.cfg.Self)
	return e.learns && e.books.Aside() == 0 && c.roster.shares(seat.Heir) && c.seemsUp(seat.Heir) && c.heardOf(seat.Heir, seat)
}

// underWay reports whether something of an entity is under way between this site and the
// site that leaves.
func (c *leaving) underWay(e *entity) bool {
	if e.transfer != nil {
		for _, d := range e.transfer.State().Debits {
			if d.Receiver == c.leave.of && d.Amount > 0 {
				return true
			}
		}
	}
	if h := e.handoff(); h != nil && h.Open() && h.State().Open.Heir == c.leave.of {
		return true
	}
	if e.star == nil {
		return false
	}
	slices := e.star.State().Slices
	for i := range slices {
		s := &slices[i]
		if s.ID.Leader == c.leave.of {
			return true
		}
		if s.Value != nil {
			if _, in := s.Value.Of(c.leave.of); in {
				return true
			}
		}
	}
	return false
}

// handing returns the entity's part in handoffs.
func (c *leaving) handing(e *entity) *handoff.Machine {
	if e.handoff() == nil {
		e.rarely().handoff = c.handoffOf(e, handoff.State{})
	}
	return e.handoff()
}

func (c *leaving) handoffOf(e *entity, st handoff.State) *handoff.Machine {
	return handoff.New(&c.leave.machine, &handoffLedger{c: c, e: e}, st)
}

// restoreFrozen freezes the restored leases that were on their way to an heir.
func (c *leaving) restoreFrozen() {
	c.space.ascend("", func(e *entity) bool {
		if e.handoff() != nil && e.handoff().Open() {
			c.freezeLeases(e)
		}
		return true
	})
}

// forgetOut has an entity wait for no site that is out.
func (c *leaving) forgetOut(e *entity) {
	left := c.peers()
	if d := e.debt(); d != nil {
		d.unheard &= left
	}
	c.limiting.forgetOut(e, left)
	if c.roster.Losses > 0 && e.star != nil {
		c.stepStar(e, star.Input{})
	}
	if e.transfer != nil {
		// A site that is gone has credited all: its last word may not be durable here.
		c.stepTransfer(e, transfer.Input{})
	}
	if e.handoff() == nil {
		return
	}
	for _, m := range c.roster.names {
		if c.roster.out(m) {
			c.stepHandoff(e, handoff.Input{Lost: m})
		}
	}
}

// stepHandoff hands an input to an entity's handoffs. A site that leaves goes on until it
// has nothing left.
func (c *leaving) stepHandoff(e *entity, in handoff.Input) {
	out := c.handing(e).Step(c.now.Tick, in)
	if out.Persist {
		c.dirtyRecord(e)
	}
	for i := range out.Messages {
		c.out.Messages = append(c.out.Messages, message.Envelope{
			Entity: e.name, Generation: e.generation, Handoff: &out.Messages[i], Window: rateOf(e).handsOver(),
		})
	}
	if out.Err != nil {
		c.out.Events = append(c.out.Events, event.Event{Kind: event.ProtocolFault, Entity: e.name, Err: out.Err})
	}
	c.freezeLeases(e)
	c.check(e)
	if out.Closed && c.roster.leaves && c.mayBequeath(e) {
		c.stepHandoff(e, handoff.Input{Begin: c.roster.Seat(c.cfg.Self).Heir})
	}
}

// handoffLedger shows an entity's books and leases to its handoffs.
type handoffLedger struct {
	c *leaving
	e *entity
}

var _ handoff.Ledger = (*handoffLedger)(nil)

// Holds implements handoff.Ledger.
func (l *handoffLedger) Holds() (left, net Tokens) { return l.e.books.Left(), l.e.books.Net() }

// Items implements handoff.Ledger. A lease goes to the heir once the acquire that made it
// is forgotten: until then another site may ask this one to undo it.
func (l *handoffLedger) Items(limit int) (items []handoff.Item, held Tokens) {
	pivot := &lease{Lease: stored.Lease{Generation: l.e.generation}}
	l.c.leases.byEntity.Ascend(pivot, func(of *lease) bool {
		if of.Generation != l.e.generation {
			return false
		}
		held += inNet(of)
		if _, remembered := l.c.requests.find(of.key); !remembered && len(items) < limit {
			items = append(items, handoff.Item{Data: l.c.packLease(of), Tokens: inNet(of)})
		}
		return true
	})
	return items, held
}

// errFrozen says that this site is about to hand the same lease to an heir.
var errFrozen = errors.New("a lease of that id is on its way to an heir")

// Fits implements handoff.Ledger.
func (l *handoffLedger) Fits(_ SiteID, estate *handoff.Estate) error {
	net := estate.Net
	for i := range estate.Items {
		net += estate.Items[i].Tokens
		p, err := unpackLease(estate.Items[i].Data)
		if err != nil {
			return fmt.Errorf("entity %q: %w", l.e.name, err)
		}
		if of := l.c.leases.byKey[attempt.KeyOf(p.ID)]; of != nil && of.Tokens > math.MaxInt64-p.Tokens || p.Tokens > math.MaxInt64-estate.Items[i].Tokens {
			return fmt.Errorf("entity %q: lease %q of %d tokens: %w", l.e.name, p.ID, p.Tokens, errBooksFull)
		}
		if l.c.leases.frozen[attempt.KeyOf(p.ID)] {
			return fmt.Errorf("entity %q: lease %q: %w", l.e.name, p.ID, errFrozen)
		}
	}
	left := estate.Left - estate.Owed
	for a := range sumsOf(l.e) {
		if !a.books.FitsEstate(left, net) || !a.books.FitsEstate(left, estate.Net) {
			return fmt.Errorf("entity %q: an estate of %d tokens left and %d outstanding: %w", a.name, left, net, errBooksFull)
		}
		left = 0
	}
	return nil
}

// Debit implements handoff.Ledger.
func (l *handoffLedger) Debit(_ SiteID, tokens Tokens) {
	l.c.keepWhole(l.e, l.e.books.Overdraw(tokens))
	l.changed(l.e)
}

// Credit implements handoff.Ledger.
func (l *handoffLedger) Credit(_ SiteID, tokens Tokens) {
	l.c.keepWhole(l.e, l.e.books.Credit(tokens))
	l.c.lateFrom(l.e, tokens, l.c.incoming)
	l.changed(l.e)
}

// Count implements handoff.Ledger.
func (l *handoffLedger) Count(tokens Tokens) {
	for a := range sumsOf(l.e) {
		l.c.keepWhole(a, a.books.Recount(-tokens))
		if l.c.incoming > windowOf(a) {
			// The leaver has granted them in a window that has not begun here.
			l.c.outUntil(a, tokens, l.c.incoming+1)
		}
		if tokens < 0 {
			l.c.handedOver(a)
		}
		if a.noQuorum() {
			*a.seldom.own += tokens
		}
		if tokens < 0 {
			// Others may take a surplus for tokens that were out here.
			l.c.peering.tellReturn(a)
		}
		l.changed(a)
	}
}

// changed follows up on changed books.
func (l *handoffLedger) changed(e *entity) {
	l.c.dirtyBooks(e)
	if e.negative() {
		l.c.peering.active(e)
	}
	l.c.later(e)
}

// TakeItem implements handoff.Ledger.
func (l *handoffLedger) TakeItem(_ SiteID, item handoff.Item) {
	p, err := unpackLease(item.Data)
	if err != nil {
		panic(fmt.Sprintf("core: entity %q: taking what Fits found good: %v", l.e.name, err))
	}
	if item.Tokens > 0 {
		l.Count(item.Tokens)
	}
	l.c.inheritLease(l.e, p, item.Tokens+p.Tokens)
}

// DropItem implements handoff.Ledger.
func (l *handoffLedger) DropItem(_ SiteID, item handoff.Item) {
	l.drop(item, false)
}

// LoseItem implements handoff.Ledger.
func (l *handoffLedger) LoseItem(_ SiteID, item handoff.Item) { l.drop(item, true) }

// LoseNet implements handoff.Ledger. Tokens out of a rate quota may have come back at the lost
// heir by the clock.
func (l *handoffLedger) LoseNet(_ SiteID, tokens Tokens) {
	if rateOf(l.e) != nil {
		l.Count(-tokens)
	}
}

// drop forgets a lease that went to an heir. If the heir is lost, the tokens of a rate quota
// go with it: they may have come back there by the clock, and the holder of a share may go on.
func (l *handoffLedger) drop(item handoff.Item, lost bool) {
	p, err := unpackLease(item.Data)
	if err != nil {
		panic(fmt.Sprintf("core: entity %q: dropping a lease that this site packed: %v", l.e.name, err))
	}
	of, found := l.c.leases.byKey[attempt.KeyOf(p.ID)]
	if found && of.Share {
		l.c.unhold(l.e, item.Tokens)
	}
	if !lost || rateOf(l.e) != nil {
		l.Count(-item.Tokens)
	}
	if found {
		l.c.leasing.dropLease(of)
	}
}
