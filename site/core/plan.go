package core

import (
	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/policy"
)

// move is a redistribution to begin: its reason and its means. The zero move begins none.
type move struct {
	reason string
	by     policy.Variant
	// anew says that the sequence begins the instance that waits anew, without a change.
	anew bool
	// need is the number of tokens to ask for in direct transfers.
	need Tokens
}

// plan chooses the redistribution that a site begins.
func (c *rebalancing) plan(e *entity, o *outlook) move {
	switch {
	case o.late:
		return move{anew: true, by: policy.Majority}
	case !o.worthwhile:
		return move{}
	case o.Changing && !e.busy():
		return move{reason: o.reason, by: policy.Majority}
	case e.debt() != nil:
		return c.payDebt(e, o)
	case o.reason == policy.LimitReason:
		return move{}
	case o.empty && !o.payable:
		return c.probe(e, o)
	case o.reason == "" && o.Rate >= policy.IdleRate:
		return move{}
	case o.reason == "":
		// Otherwise the next acquire waits, and has others asked.
		return c.probe(e, o)
	case o.reason == policy.AheadReason:
		return c.instance(e, o, o.reason)
	}
	if o.Elsewhere, o.Told = o.elsewhere, o.told; c.mods.Trigger.Due(o.Situation) == "" {
		e.rebalance.triggered = c.now.Tick
		return move{}
	}
	return c.redistribute(e, o, o.reason, e.queue.len() > 0 || e.books.Left() < 0)
}

// payDebt plans an instance where the entity is in debt: for acquires that wait, or once
// in a while to take tokens that came back here off the debt.
func (c *rebalancing) payDebt(e *entity, o *outlook) move {
	waits := e.queue.len() > 0 && (!o.empty || e.noQuorum())
	switch {
	case e.owed() == 0 || e.busy():
		return move{}
	case waits:
		return move{reason: policy.ReactiveReason, by: policy.Majority}
	case o.debtWake != 0 && o.debtWake <= c.now.Tick:
		return move{reason: policy.DebtReason, by: policy.Majority}
	}
	return move{}
}

// probe asks for tokens that others report in an exhaustion, if it is time to.
func (c *rebalancing) probe(e *entity, o *outlook) move {
	d := e.itsExhaustion()
	waits := e.queue.len() > 0 && (e.noQuorum() || c.now.Tick < d.began+youngExhaustion+keepWaiting)
	switch {
	case waits && o.left >= max(1, e.limit/fewPart) && o.SinceTrigger >= c.cfg.Tell/2:
		e.rebalance.short = false
	case waits && !e.noQuorum():
		return move{}
	case d.refused == 0 && !waits || o.left == 0 || o.SinceTrigger < c.cfg.Tell:
		return move{}
	case o.spare < worth(e) && c.now.Tick < d.until:
		return move{}
	default:
		// The tokens that lie about are fewer than sites keep unless they are pressed.
		e.rebalance.press = avantan.PressAll
		c.assessing.pauseExhaustion(d)
		d.refused = 0
	}
	return c.redistribute(e, o, policy.ExhaustionReason, false)
}

// redistribute plans to get tokens from other sites; waiting acquires make it urgent.
func (c *rebalancing) redistribute(e *entity, o *outlook, reason string, urgent bool) move {
	if urgent && !e.redistributing() && c.dryAgain(e, o) {
		c.consequences = append(c.consequences, consequence{of: e, dry: true, shown: e.exhaustion.shown})
		return move{}
	}
	if o.crowd && (e.redistributing() || c.assessing.waitsForTurn(e)) {
		return move{}
	}
	direct := c.mods.Strategy.Direct() && !o.crowd
	hopeless := o.Told && o.Elsewhere < worth(e)
	if hopeless && urgent {
		e.rebalance.press = avantan.PressAll
	}
	if direct && !e.rebalance.short && (!hopeless || !urgent) {
		if e.transfer != nil && e.transfer.Open() {
			return move{}
		}
		if need := c.shortOf(o); need > 0 && len(o.donors) > 0 {
			return move{reason: reason, by: policy.Direct, need: need}
		}
	}
	if direct && !urgent {
		return move{}
	}
	return c.instance(e, o, reason)
}

// dryAgain reports whether a recent exhaustion has come back: the other sites together
// report fewer tokens than end an exhaustion, and fewer than this site lacks.
func (c *rebalancing) dryAgain(e *entity, o *outlook) bool {
	d := e.exhaustionNow()
	return d.shown != 0 && c.now.Tick <= d.shown+memory && o.Elsewhere < min(worth(e), e.lacks()) && o.hearsAll
}

// shortOf is the number of tokens that the site is short of, up to its target: so it need
// not ask again soon.
func (c *rebalancing) shortOf(o *outlook) Tokens {
	// Tokens left may be too few for each waiting acquire, and still count.
	target, _ := c.mods.Want.Target(o.Situation)
	need := max(c.mods.Want.Waiting(o.Situation)+target, o.Refused) - o.Left
	if o.Queued > 0 {
		need = max(need, 1)
	}
	return min(need, input.MaxTokens)
}

// instance plans an instance under the variant of the mode, unless one is under way.
func (c *rebalancing) instance(e *entity, o *outlook, reason string) move {
	if o.variant == policy.Star && e.starBusy() || o.variant != policy.Star && e.busy() {
		return move{}
	}
	return move{reason: reason, by: o.variant}
}
