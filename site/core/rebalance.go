package core

import (
	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/star"
	"github.com/samya-db/samya/avantan/transfer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/policy"
)

// rebalancing drives the protocols that move tokens between sites.
type rebalancing struct {
	*common
	*peering
	*assessing
	*admitting
	*limiting
	// machine, starMachine and transferMachine configure the machines of all entities.
	machine         avantan.Config
	starMachine     star.Config
	transferMachine transfer.Config
	// applied is the last instance applied in the current step of a machine, if any.
	applied *settled
	// consequences are for settle to carry out.
	consequences []consequence
	adopting     adopting
	// astray is the sender of a message that this site could not take; empty for none.
	astray SiteID
}

// rebalance is a site's progress in getting the tokens that an entity is short of.
type rebalance struct {
	// press is how hard the next instance begun here presses for offers. ledPress is how
	// hard the star instance led here presses: press may have grown since its beginning.
	press, ledPress avantan.Press
	// retried is set once the site has tried again because an instance left a site out.
	retried bool
	// short is set once a round of direct transfers has left acquires waiting that it
	// counted: an instance comes next.
	short bool
	// pledged is the number of the last waiting acquire counted by the contribution to
	// the majority instance under way. led is the same for the star instance led here.
	pledged, led uint64
	// noQuorum is the tick until which the site believes that there is no majority.
	noQuorum Tick
	// lastGrant is the number of tokens left after the last instance that moved the
	// site's tokens, or at the creation of the entity.
	lastGrant Tokens
	// fetched is the number of the last waiting acquire that the round of direct
	// transfers under way counts.
	fetched uint64
	// looked is the tick of the last look after a grant.
	looked Tick
	// triggered is the tick at which this site last began a redistribution.
	triggered Tick
	// lacking is the others' lack of the entity after a round of gossip, until the site
	// has looked at the entity; see Situation.
	lacking Tokens
}

// rebalance begins a redistribution if there is a reason to, and none is under way. A
// site joins a redistribution under way instead.
func (c *rebalancing) rebalance(e *entity) {
	if e.halted() || c.roster.leaves {
		return
	}
	if e.queue.len() == 0 && !e.owes() {
		e.rebalance.short = false
	}
	o := c.assessing.look(e)
	m := c.plan(e, &o)
	if m == (move{}) {
		return
	}
	if !m.anew {
		e.rebalance.triggered = c.now.Tick
		c.out.Events = append(c.out.Events, event.Event{Kind: event.RedistributionStarted, Entity: e.name, Trigger: m.reason, Variant: m.by})
	}
	c.beginRound(e, &m)
	switch m.by {
	case policy.Direct:
		e.rebalance.fetched = c.assessing.counted(e, &o.Situation)
		c.assessing.keep(e)
		c.stepTransfer(e, transfer.Input{Begin: &transfer.Proposal{Need: m.need, Donors: o.donors}})
	case policy.Star:
		c.stepStar(e, star.Input{Begin: c.starProposal(e, &o.Situation)})
	default:
		c.stepMajority(e, avantan.Input{Begin: c.proposal(e, e.rebalance.press)})
	}
}
