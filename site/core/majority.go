package core

import (
	"github.com/samya-db/samya/avantan"
)

// noQuorumPatiences is the number of Patience periods for which a site that found no
// majority believes that there is none.
const noQuorumPatiences = 4

// begin has the protocol begin an instance, with the first change that waits. If the
// change lowers the limit, or there is a debt, it asks sites for all their tokens, and to
// stand still: a site could still grant the tokens it keeps, while more is out than the
// limit.
func (c *rebalancing) begin(e *entity) { c.beginPressed(e, e.rebalance.press) }

// beginPressed is begin with another press, unless the change or a debt needs all tokens.
func (c *rebalancing) beginPressed(e *entity, press avantan.Press) {
	p := avantan.Proposal{Policy: c.cfg.Policy, Press: press}
	settles := e.owed() > 0 || e.owes()
	notProposed(e.limitChanges())
	if ch := firstDue(e.limitChanges()); ch != nil {
		p.Change = ch.encoded
		ch.proposed = true
		if r, err := e.classify(ch.encoded); err == nil && r.delta(e) < 0 {
			settles = true
		}
	} else if e.voters < c.roster.Version {
		p.Change = adoption(c.roster.Version)
	}
	if settles {
		p.Policy, p.Press = settling+c.cfg.Policy, avantan.PressHold
	}
	c.stepMajority(e, avantan.Input{Begin: &p})
}

// stepMajority hands an input to an entity's protocol.
func (c *rebalancing) stepMajority(e *entity, in avantan.Input) {
	c.applied = nil
	limit, usable := e.limit, e.usable()
	if e.majority == nil {
		e.majority = avantan.New(&c.machine, &entityLedger{c: c, e: e}, avantan.State{})
	}
	out := e.majority.Step(c.now.Tick, in)
	c.limiting.stand(e, &in)
	if out.Err != nil && in.Receive != nil {
		// The sender may go by sites that this site does not know.
		c.astray = in.Receive.From
	}
	if out.Persist {
		c.dirtyRecord(e)
	}
	c.send(e.name, e.generation, out.Messages)
	c.protocolEvents(e.name, &out)
	for _, p := range e.limitChanges() {
		p.built = p.built || (p.proposed && e.majority.State().Built)
	}
	if out.Failed != avantan.FailedNot {
		notProposed(e.limitChanges())
	}
	if out.Failed == avantan.FailedNoQuorum {
		e.rebalance.noQuorum = c.now.Tick + noQuorumPatiences*c.cfg.Patience
	}
	// A site alone decides an instance as it begins it. The protocol may also have taken back
	// an offer.
	if in.Begin == nil || c.applied != nil || e.usable() > usable {
		c.consequences = append(c.consequences, consequence{of: e, applied: c.applied, sequence: true, limit: e.limit != limit})
	}
}
