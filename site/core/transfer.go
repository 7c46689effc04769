package core

import (
	"errors"
	"fmt"

	"github.com/samya-db/samya/avantan/transfer"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/message"
)

// direct returns the entity's part in direct transfers.
func (c *rebalancing) direct(e *entity) *transfer.Machine {
	if e.transfer == nil {
		e.transfer = transfer.New(&c.transferMachine, &transferLedger{c: c, e: e}, transfer.State{})
	}
	return e.transfer
}

// stepTransfer hands an input to an entity's direct transfers.
func (c *rebalancing) stepTransfer(e *entity, in transfer.Input) {
	left := e.books.Left()
	out := c.direct(e).Step(c.now.Tick, in)
	if out.Persist {
		c.dirtyRecord(e)
	}
	from := len(c.out.Messages)
	for i := range out.Messages {
		c.out.Messages = append(c.out.Messages, message.Envelope{
			Entity: e.name, Generation: e.generation, Transfer: &out.Messages[i], Window: windowOf(e),
		})
		if c.heard != nil {
			traceAnswer(c.common, &c.out.Messages[len(c.out.Messages)-1])
		}
	}
	c.traceRound(e, from)
	if out.Err != nil {
		c.out.Events = append(c.out.Events, event.Event{Kind: event.ProtocolFault, Entity: e.name, Err: out.Err})
	}
	if out.Ended != nil || e.books.Left() != left {
		c.consequences = append(c.consequences, consequence{of: e, ended: out.Ended})
	}
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
func (l *transferLedger) Debit(receiver SiteID, amount Tokens) {
	l.c.keepWhole(l.e, l.e.books.Debit(amount))
	l.c.dirtyBooks(l.e)
	l.c.tallies.of(l.e).moved(answer.Move{Wall: l.c.now.Wall, From: l.c.cfg.Self, To: receiver, Tokens: amount})
}

var errBooksFull = errors.New("the books would leave their range")

// Credit implements transfer.Ledger.
func (l *transferLedger) Credit(donor SiteID, amount Tokens) error {
	if !l.e.books.HasRoom(amount) {
		return fmt.Errorf("entity %q: %d tokens: %w", l.e.name, amount, errBooksFull)
	}
	l.c.keepWhole(l.e, l.e.books.Credit(amount))
	l.c.tallies.of(l.e).moved(answer.Move{Wall: l.c.now.Wall, From: donor, To: l.c.cfg.Self, Tokens: amount})
	l.c.lateFrom(l.e, amount, l.c.incoming)
	l.c.peering.spent(l.e, donor, amount)
	l.c.dirtyBooks(l.e)
	return nil
}
