package core

import (
	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/transfer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/policy"
)

// consequence is what a step of a protocol has left to do for an entity. The protocols only
// move tokens; settle serves clients.
type consequence struct {
	of *entity
	// applied is the instance applied in the step, nil for none. sequence says that the
	// entity's sequence took the step, and limit that the step changed the limit.
	applied         *settled
	sequence, limit bool
	// dry says that no other site in reach has tokens, and shown when an instance last
	// showed that; 0 for now.
	dry   bool
	shown Tick
	// ended is the result of a round of direct transfers, nil if none has ended.
	ended *transfer.Result
}

// settled is the outcome of an applied instance for this site.
type settled struct {
	// counted is the number of the last waiting acquire that this site's contribution
	// counted; 0 if unknown.
	counted uint64
	// member: the instance moved this site's tokens.
	member bool
	// kept is the number of tokens that the members kept back.
	kept Tokens
	// moved is the number of tokens that members got beyond their offers.
	moved Tokens
	// used: the acquires waiting at the members take all offers.
	used bool
	// absent: the instance left out a site that seems to be reachable.
	absent bool
	// gap: this site may have missed results of limit changes that are forgotten by now.
	gap bool
}

// settle ends a step: it carries out what the protocols have left to do, and looks at the
// marked entities. It comes to an end: with no tokens coming in, acquires that stay in a
// served queue lack tokens, or wait for a hold, and each acquire has a single hold.
func (c *rebalancing) settle() {
	if len(c.consequences)+len(c.due) == 0 {
		return
	}
	done, looked := 0, 0
	for done < len(c.consequences) || looked < len(c.due) {
		if done < len(c.consequences) {
			c.conclude(c.consequences[done])
			done++
			continue
		}
		e := c.due[looked]
		looked++
		changed := e.changed
		e.due, e.changed = false, false
		if !c.serves(e) {
			continue
		}
		if c.replenish(e); changed {
			c.admitting.serveQueue(e)
			c.assessing.tellGain(e)
		}
		c.rebalance(e)
		e.rebalance.lacking = 0
		c.assessing.schedule(e)
	}
	clear(c.consequences)
	clear(c.due)
	c.consequences, c.due = c.consequences[:0], c.due[:0]
}

// conclude carries out what a step of a protocol has left to do.
func (c *rebalancing) conclude(o consequence) {
	e := o.of
	if o.limit {
		c.admitting.relimit(e)
	}
	if o.sequence && o.applied != nil {
		c.limiting.answerChanges(e, o.applied.gap)
	}
	switch {
	case o.applied != nil:
		c.afterInstance(e, *o.applied)
	case o.dry:
		c.giveUp(e)
		if o.shown != 0 {
			e.exhaustion.shown = o.shown
		}
	default:
		c.admitting.serveQueue(e)
	}
	if o.ended != nil {
		c.fetched(e, o.ended)
	}
	c.check(e)
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
	c.endRound(e, endOf(r))
	// If acquires that the round counted still wait, or a debt is not paid, only an
	// instance can tell whether there are tokens for them anywhere.
	c.assessing.came(e, r.Got)
	e.rebalance.short = e.owes() || e.queue.len() > 0 && e.queue.oldest().number <= e.rebalance.fetched
}

// afterInstance serves all that can be served after instances were applied, and decides
// about the rest and about a debt: press harder, or give up.
func (c *rebalancing) afterInstance(e *entity, s settled) {
	c.out.Events = append(c.out.Events, event.Event{Kind: event.RedistributionApplied, Entity: e.name})
	if e.queue != nil && e.queue.round != nil && e.queue.round.by != policy.Direct {
		c.endRound(e, "applied")
	}
	waited := e.queue.len() > 0
	c.assessing.turned(e, s.moved)
	c.admitting.serveQueue(e)
	c.assessing.came(e, e.usable())
	if e.queue.len() == 0 && e.books.Left() >= 0 {
		e.rebalance.press, e.rebalance.retried = avantan.PressSpare, false
		if s.member && s.kept == 0 && s.used && !s.absent && waited {
			c.assessing.dry(e)
		}
		return
	}
	counted := e.queue.len() == 0 || e.queue.oldest().number <= s.counted
	if s.kept > 0 || e.stillHas() > 0 || !s.member || !counted && !s.used {
		e.rebalance.press = avantan.PressAll
		return
	}
	if s.absent && !e.rebalance.retried {
		// The absent site may have been slow: it had to learn of the previous instance
		// first.
		e.rebalance.press, e.rebalance.retried = avantan.PressAll, true
		return
	}
	// Every reachable site offered all its tokens, this site's waiting acquires and debt
	// were counted, and still it was not enough.
	c.giveUp(e)
}

// giveUp refuses the waiting acquires, as no site has tokens, and begins an exhaustion.
// Acquires that a few releases can serve go on waiting a moment: many exhaustions are over
// soon. Without a majority all acquires go on waiting.
func (c *rebalancing) giveUp(e *entity) {
	e.rebalance.press, e.rebalance.retried, e.rebalance.short = avantan.PressSpare, false, false
	e.unhold()
	c.admitting.serveQueue(e)
	c.assessing.dry(e)
	c.out.Events = append(c.out.Events, event.Event{Kind: event.GaveUp, Entity: e.name})
	if e.noQuorum() {
		return
	}
	mostNeeded := Tokens(0)
	if c.assessing.patient(e) {
		mostNeeded = small(e)
	}
	lasts := func(w *waiting) bool { return c.endsBy(e, w.needs, w.until) }
	e.queue.hasten(c.now.Tick+keepWaiting, mostNeeded, lasts)
	c.admitting.endWaiting(e, e.queue.take(func(w *waiting) bool {
		return !lasts(w) && (w.needs > mostNeeded || w.until <= c.now.Tick)
	}))
}
