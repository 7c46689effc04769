package core

import (
	"fmt"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/handoff"
	"github.com/samya-db/samya/avantan/star"
	"github.com/samya-db/samya/avantan/transfer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
)

// deliver hands another site's messages to their sequences.
func (c *Core) deliver(d input.Deliver) {
	for i := range d.Messages {
		env := &d.Messages[i]
		ofEntity := env.Star != nil || env.Transfer != nil || env.Handoff != nil || env.Audit != nil
		if env.From() != d.From || env.To() != c.cfg.Self || ofEntity && env.Entity == "" {
			c.out.Events = append(c.out.Events, event.Event{
				Kind: event.ProtocolFault, Entity: env.Entity,
				Err: fmt.Errorf("message from %q to %q came from %q", env.From(), env.To(), d.From),
			})
			continue
		}
		switch {
		case env.Leave != nil && env.Leave.Kind == message.LeaveOut:
			c.fencing.disown(&OutError{Site: c.cfg.Self, By: d.From})
			return
		case c.leaving.outside(d.From, env):
			continue
		case env.Vouch != nil:
			c.fencing.vouch(d.From, env)
			continue
		case !c.fencing.takes(d.From, env):
			continue
		case env.Gossip != nil:
			c.gossiping.hear(env.Gossip)
			continue
		case env.Leave != nil:
			c.leaving.left(env.Leave)
			c.reseat()
			continue
		case env.Claims != nil && !c.settledIn:
			// Other data under this site's name may have run what is asked about.
			continue
		case env.Claims != nil:
			c.repeating.claims(env.Claims)
			continue
		}
		if env.Entity == "" {
			c.cataloguing.heardCatalogue(&env.Message)
			c.cataloguing.stepCatalogue(avantan.Input{Receive: &env.Message})
			c.reseat()
			c.cataloguing.settleIn()
			continue
		}
		c.space.Execute([]string{env.Entity}, func(es []*entity) {
			if e := es[0]; e != nil && e.generation == env.Generation {
				c.replenish(e)
				c.incoming = env.Window
				hears(c.common, d.From, env)
				switch {
				case e.halted():
				case env.Star != nil:
					c.rebalancing.stepStar(e, star.Input{Receive: env.Star})
				case env.Audit != nil:
					c.auditing.audited(e, env.Audit)
				case env.Transfer != nil:
					c.peering.told(e, env.Transfer)
					c.rebalancing.stepTransfer(e, transfer.Input{Receive: env.Transfer})
				case env.Handoff != nil:
					c.leaving.stepHandoff(e, handoff.Input{Receive: env.Handoff})
				default:
					c.rebalancing.stepMajority(e, avantan.Input{Receive: &env.Message})
					c.limiting.heardApplied(e, &env.Message)
				}
				c.incoming = 0
				hasHeard(c.common)
				if len(c.rebalancing.consequences) == 0 {
					c.assessing.schedule(e)
				}
				if c.rebalancing.astray != "" {
					c.rebalancing.astray = ""
					c.cataloguing.askCatalogue(d.From)
				}
				// The next message may ask for the tokens that this message brought.
				c.rebalancing.settle()
				return
			}
			// A later generation than any known here means that this site has missed a
			// creation. An earlier generation is of a deleted entity, and its sender will
			// learn of the deletion from the catalogue too.
			if env.Generation > c.cat.generation {
				c.cataloguing.askCatalogue(d.From)
			} else {
				c.cataloguing.tellCatalogue(d.From)
			}
		})
	}
}
