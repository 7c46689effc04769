package core

import (
	"github.com/samya-db/samya/avantan"
)

// noQuorumPatiences is the number of Patience periods for which a site that found no
// majority believes that there is none.
const noQuorumPatiences = 4

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
	from := len(c.out.Messages)
	c.send(e.name, e.generation, out.Messages)
	c.traceRound(e, from)
	c.protocolEvents(e.name, &out)
	for _, p := range e.limitChanges() {
		p.built = p.built || (p.proposed && e.majority.State().Built)
	}
	if out.Failed != avantan.FailedNot {
		notProposed(e.limitChanges())
		c.endRound(e, "failed")
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
