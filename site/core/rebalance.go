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
}

// payDebt begins an instance where the entity is in debt: for acquires that wait, or once
// in a while to take tokens that came back here off the debt.
func (c *rebalancing) payDebt(e *entity) {
	waits := e.queue.len() > 0 && (c.assessing.emptyFor(e) == 0 || e.noQuorum())
	switch {
	case e.owed() == 0 || e.busy():
		return
	case waits:
		c.started(e, policy.ReactiveReason, policy.Majority)
	case c.assessing.debtWake(e) != 0 && c.assessing.debtWake(e) <= c.now.Tick:
		c.started(e, policy.DebtReason, policy.Majority)
	default:
		return
	}
	c.begin(e)
}

// dryAgain reports whether a recent exhaustion has come back: the other sites together
// report fewer tokens than end an exhaustion, and fewer than this site lacks.
func (c *rebalancing) dryAgain(e *entity, s *policy.Situation) bool {
	d := e.itsExhaustion()
	enough := min(worth(e), e.lacks())
	if d.shown == 0 || c.now.Tick > d.shown+memory || s.Elsewhere >= enough || !c.peering.hearsAll(e) {
		return false
	}
	shown := d.shown
	c.giveUp(e)
	d.shown = shown
	return true
}

// probe asks for tokens that others report in an exhaustion, if it is time to.
func (c *rebalancing) probe(e *entity, s *policy.Situation) {
	d := e.itsExhaustion()
	left, spare := c.peering.toldSince(e, d.since)
	waits := e.queue.len() > 0 && (e.noQuorum() || c.now.Tick < d.began+youngExhaustion+keepWaiting)
	if waits && left >= max(1, e.limit/fewPart) && s.SinceTrigger >= c.cfg.Tell/2 {
		e.rebalance.short = false
		c.redistribute(e, s, policy.ExhaustionReason, false)
		return
	}
	switch {
	case waits && !e.noQuorum():
		return
	case d.refused == 0 && !waits || left == 0 || s.SinceTrigger < c.cfg.Tell:
		return
	case spare < worth(e) && c.now.Tick < d.until:
		return
	}
	// The tokens that lie about are fewer than sites keep unless they are pressed.
	e.rebalance.press = avantan.PressAll
	c.assessing.pauseExhaustion(d)
	c.redistribute(e, s, policy.ExhaustionReason, false)
	d.refused = 0
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

// noQuorumPatiences is the number of Patience periods for which a site that found no
// majority believes that there is none.
const noQuorumPatiences = 4

// rebalance begins a redistribution if the trigger says so and none is under way. A site
// joins a redistribution under way instead.
func (c *rebalancing) rebalance(e *entity) {
	if e.halted() {
		return
	}
	if e.majority != nil && overdue(e.limitChanges(), e.majority) {
		notProposed(e.limitChanges())
		c.begin(e)
		return
	}
	urgent := e.queue.len() > 0 || e.books.Left() < 0
	if e.queue.len() == 0 && !e.owes() {
		e.rebalance.short = false
	}
	c.assessing.doubt(e)
	s := c.assessing.situation(e)
	reason := c.mods.Trigger.Due(s)
	if reason == "" && e.exhaustionNow().since == 0 && e.debt() == nil {
		return
	}
	switch {
	case s.Changing && !e.busy():
		c.started(e, reason, policy.Majority)
		c.begin(e)
		return
	case e.debt() != nil:
		c.payDebt(e)
		return
	case reason == policy.LimitReason:
		return
	case c.assessing.emptyFor(e) > 0 && !c.assessing.debtDue(e):
		c.probe(e, &s)
		return
	case reason == "":
		if s.Rate < policy.IdleRate {
			// Otherwise the next acquire waits, and has others asked.
			c.probe(e, &s)
		}
		return
	}
	if reason == policy.AheadReason {
		c.instance(e, reason)
		return
	}
	if s.Elsewhere, s.Told = c.peering.elsewhere(e); c.mods.Trigger.Due(s) == "" {
		e.rebalance.triggered = c.now.Tick
		return
	}
	c.redistribute(e, &s, reason, urgent)
}

// redistribute gets tokens from other sites; waiting acquires make it urgent.
func (c *rebalancing) redistribute(e *entity, s *policy.Situation, reason string, urgent bool) {
	if urgent && !e.redistributing() && c.dryAgain(e, s) {
		return
	}
	crowd := c.assessing.inCrowd(e)
	if crowd && (e.redistributing() || c.assessing.waitsForTurn(e)) {
		return
	}
	direct := c.mods.Strategy.Direct() && !crowd
	hopeless := s.Told && s.Elsewhere < worth(e)
	if hopeless && urgent {
		e.rebalance.press = avantan.PressAll
	}
	switch {
	case direct && !e.rebalance.short && (!hopeless || !urgent) && c.fetch(e, s, reason):
	case direct && !urgent:
	default:
		c.instance(e, reason)
	}
}

// instance begins an instance under the variant of the mode, if it can.
func (c *rebalancing) instance(e *entity, reason string) {
	switch {
	case c.assessing.variant(e) == policy.Star:
		if !e.starBusy() {
			c.started(e, reason, policy.Star)
			c.beginStar(e)
		}
	case !e.busy():
		c.started(e, reason, policy.Majority)
		c.begin(e)
	}
}

func (c *rebalancing) started(e *entity, reason string, v policy.Variant) {
	e.rebalance.triggered = c.now.Tick
	c.out.Events = append(c.out.Events, event.Event{Kind: event.RedistributionStarted, Entity: e.name, Trigger: reason, Variant: v})
}

// begin has the protocol begin an instance, with the first change that waits. If the
// change lowers the limit, or there is a debt, it asks sites for all their tokens, and to
// stand still: a site could still grant the tokens it keeps, while more is out than the
// limit.
func (c *rebalancing) begin(e *entity) {
	p := avantan.Proposal{Policy: c.cfg.Policy, Press: e.rebalance.press}
	settles := e.owed() > 0 || e.owes()
	if ch := firstDue(e.limitChanges()); ch != nil {
		p.Change = ch.encoded
		ch.proposed = true
		if r, err := e.classify(ch.encoded); err == nil && r.delta(e) < 0 {
			settles = true
		}
	}
	if settles {
		p.Policy, p.Press = settling+c.cfg.Policy, avantan.PressHold
	}
	c.stepMajority(e, avantan.Input{Begin: &p})
}

// stepMajority hands an input to an entity's protocol and carries out the consequences
// within the core.
func (c *rebalancing) stepMajority(e *entity, in avantan.Input) {
	c.applied = nil
	limit := e.limit
	if e.majority == nil {
		e.majority = avantan.New(&c.machine, &entityLedger{c: c, e: e}, avantan.State{})
	}
	out := e.majority.Step(c.now.Tick, in)
	c.limiting.stand(e, &in)
	c.limiting.heardApplied(e, in.Receive)
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
	settled := c.applied
	if e.limit != limit {
		c.admitting.relimit(e)
	}
	if settled != nil {
		c.limiting.answerChanges(e, settled.gap)
		c.afterInstance(e, *settled)
	} else {
		// The protocol may have taken back an offer.
		c.admitting.serveQueue(e)
	}
	// A site alone decides an instance as it begins it.
	if in.Begin == nil || settled != nil {
		c.rebalance(e)
	}
	c.assessing.schedule(e)
}

// afterInstance serves all that can be served after instances were applied, and decides
// about the rest and about a debt: press harder, or give up.
func (c *rebalancing) afterInstance(e *entity, s settled) {
	c.out.Events = append(c.out.Events, event.Event{Kind: event.RedistributionApplied, Entity: e.name})
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
	if c.mods.Admission.Patient() {
		mostNeeded = small(e)
	}
	e.queue.hasten(c.now.Tick+keepWaiting, mostNeeded)
	c.admitting.endWaiting(e, e.queue.take(func(w *waiting) bool { return w.needs > mostNeeded || w.until <= c.now.Tick }))
}
