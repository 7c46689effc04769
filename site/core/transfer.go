package core

import (
	"errors"
	"fmt"

	"github.com/samya-db/samya/avantan/transfer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/policy"
)

// direct returns the entity's part in direct transfers.
func (c *rebalancing) direct(e *entity) *transfer.Machine {
	if e.transfer == nil {
		e.transfer = transfer.New(&c.transferMachine, &transferLedger{c: c, e: e}, transfer.State{})
	}
	return e.transfer
}

// fetch asks other sites, all at once, for the tokens this site is short of, and reports
// whether a round is under way then. It asks for enough to reach its target, so that it
// need not ask again soon.
func (c *rebalancing) fetch(e *entity, s *policy.Situation, reason string) bool {
	m := c.direct(e)
	if m.Open() {
		return true
	}
	// Tokens left may be too few for each waiting acquire, and still count.
	target, _ := c.mods.Want.Target(*s)
	need := max(c.mods.Want.Waiting(*s)+target, s.Refused) - s.Left
	if s.Queued > 0 {
		need = max(need, 1)
	}
	donors := c.peering.donors(e)
	if need < 1 || len(donors) == 0 {
		return false
	}
	e.rebalance.fetched = c.assessing.counted(e)
	c.assessing.keep(e)
	c.started(e, reason, policy.Direct)
	c.stepTransfer(e, transfer.Input{Begin: &transfer.Proposal{Need: min(need, input.MaxTokens), Donors: donors}})
	return m.Open()
}

// stepTransfer hands an input to an entity's direct transfers and carries out the
// consequences within the core.
func (c *rebalancing) stepTransfer(e *entity, in transfer.Input) {
	left := e.books.Left()
	if in.Receive != nil && in.Receive.Kind == transfer.Refuse {
		c.peering.refused(e, in.Receive.From, in.Receive.Left)
	}
	out := c.direct(e).Step(c.now.Tick, in)
	if out.Persist {
		c.dirtyRecord(e)
	}
	for i := range out.Messages {
		c.out.Messages = append(c.out.Messages, message.Envelope{
			Entity: e.name, Generation: e.generation, Transfer: &out.Messages[i],
		})
	}
	if out.Err != nil {
		c.out.Events = append(c.out.Events, event.Event{Kind: event.ProtocolFault, Entity: e.name, Err: out.Err})
	}
	if e.books.Left() > left {
		c.admitting.serveQueue(e)
	}
	if out.Ended != nil {
		c.fetched(e, out.Ended)
	}
	if in.Begin == nil && (out.Ended != nil || e.books.Left() != left) {
		c.rebalance(e)
	}
	c.assessing.schedule(e)
}

// fetched handles the result of a round.
func (c *rebalancing) fetched(e *entity, r *transfer.Result) {
	kind := event.RedistributionFailed
	if r.Got > 0 {
		kind = event.RedistributionApplied
		e.fetches++
		e.rebalance.lastGrant = e.books.Left()
		c.dirtyRecord(e)
	}
	c.out.Events = append(c.out.Events, event.Event{Kind: kind, Entity: e.name, Variant: policy.Direct})
	// If acquires that the round counted still wait, or a debt is not paid, only an
	// instance can tell whether there are tokens for them anywhere.
	c.assessing.came(e, r.Got)
	e.rebalance.short = e.owes() || e.queue.len() > 0 && e.queue.oldest().number <= e.rebalance.fetched
}

// transferLedger shows an entity's books to its direct transfers.
type transferLedger struct {
	c *rebalancing
	e *entity
}

var _ transfer.Ledger = (*transferLedger)(nil)

// Left implements transfer.Ledger. Acquires waiting here come before another site's
// request, as long as they hold. After the hold the tokens left do not serve them, and
// may serve others.
func (l *transferLedger) Left() (left, target Tokens) {
	s := l.c.assessing.situation(l.e)
	target, _ = l.c.mods.Want.Target(s)
	if l.e.queue.holds(0) {
		target += s.Queued
	}
	return s.Left, target
}

// Debit implements transfer.Ledger.
func (l *transferLedger) Debit(_ SiteID, amount Tokens) {
	l.c.keepWhole(l.e, l.e.books.Debit(amount))
	l.c.dirtyBooks(l.e)
}

var errBooksFull = errors.New("the books would leave their range")

// Credit implements transfer.Ledger.
func (l *transferLedger) Credit(donor SiteID, amount Tokens) error {
	if !l.e.books.HasRoom(amount) {
		return fmt.Errorf("entity %q: %d tokens: %w", l.e.name, amount, errBooksFull)
	}
	l.c.keepWhole(l.e, l.e.books.Credit(amount))
	l.c.peering.spent(l.e, donor, amount)
	l.c.dirtyBooks(l.e)
	return nil
}
