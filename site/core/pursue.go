package core

import (
	"fmt"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/redistribute"
)

// hunt is where a site stands in getting the tokens an entity is short of.
type hunt struct {
	// press is how hard the next instance begun here presses for offers.
	press avantan.Press
	// pledged is the number of the last waiting acquire that the contribution
	// of the instance under way counted.
	pledged uint64
	// lastGrant is what the site had after the last instance that moved its
	// tokens.
	lastGrant Tokens
	// retried is set once it was tried again because a site was left out.
	retried bool
	// settled is the last instance applied in the current step, if any.
	settled *settled
	// emptyUntil is until when the system is believed to be out of tokens, and
	// pause the length of the next such belief.
	emptyUntil, pause Tick
}

// settled is what an applied instance meant for this site.
type settled struct {
	instance avantan.Instance
	// member: this site's tokens were in it.
	member bool
	// kept is what the members kept back.
	kept Tokens
	// absent: a site that seems to be reachable was left out.
	absent bool
}

func (h *hunt) emptyFor(now Tick) Tick {
	if now >= h.emptyUntil {
		return 0
	}
	return h.emptyUntil - now
}

// tokensCame ends the belief that there are none.
func (h *hunt) tokensCame() { h.emptyUntil, h.pause = 0, 0 }

// pursue begins an instance if the trigger says so and none is under way: one
// that is under way is joined instead.
func (c *Core) pursue(e *entity) {
	if e.queue.len() == 0 && len(e.changes) == 0 && e.left >= 0 {
		return
	}
	if overdue(e.changes, e.protocol) {
		notProposed(e.changes)
		c.begin(e)
		return
	}
	if e.protocol.Open() || e.protocol.Waits() {
		return
	}
	s := c.situation(e)
	reason := c.mods.trigger.Due(s)
	if reason == "" || (!s.Changing && e.hunt.emptyFor(c.now.Tick) > 0) {
		return
	}
	c.out.Events = append(c.out.Events, Event{Kind: RedistributionStarted, Entity: e.name, Trigger: reason})
	c.begin(e)
}

// begin has the protocol begin an instance, with the first change that waits.
func (c *Core) begin(e *entity) {
	p := avantan.Proposal{Policy: c.cfg.Policy, Press: e.hunt.press}
	if ch := firstDue(e.changes); ch != nil {
		p.Change = ch.encoded
		ch.proposed = true
	}
	c.stepProtocol(e, avantan.Input{Begin: &p})
}

// stepProtocol hands an input to an entity's protocol and carries out what
// follows within the core.
func (c *Core) stepProtocol(e *entity, in avantan.Input) {
	e.hunt.settled = nil
	out := e.protocol.Step(c.now.Tick, in)
	if out.Persist {
		c.dirtyRecord(e)
	}
	c.send(e.name, e.generation, out.Messages)
	c.protocolEvents(e.name, &out)
	for _, p := range e.changes {
		p.built = p.built || (p.proposed && e.protocol.State().Built)
	}
	if out.Failed != avantan.FailedNot {
		notProposed(e.changes)
	}
	settled := e.hunt.settled
	if settled != nil {
		c.afterInstance(e, *settled)
	}
	// A site alone has decided at once what it has begun.
	if in.Begin == nil || settled != nil {
		c.pursue(e)
	}
	c.schedule(e)
}

func (c *Core) protocolEvents(name string, out *avantan.Output) {
	if out.Err != nil {
		c.out.Events = append(c.out.Events, Event{Kind: ProtocolFault, Entity: name, Err: out.Err})
	}
	if out.Failed != avantan.FailedNot {
		c.out.Events = append(c.out.Events, Event{Kind: RedistributionFailed, Entity: name})
	}
}

// afterInstance serves what can be served after instances were applied, and
// decides what becomes of the rest and of a debt: press harder, or give up.
func (c *Core) afterInstance(e *entity, s settled) {
	c.out.Events = append(c.out.Events, Event{Kind: RedistributionApplied, Entity: e.name})
	c.answerChanges(e)
	waited := e.queue.len() > 0
	c.serveQueue(e)
	if e.queue.len() == 0 && e.left >= 0 {
		e.hunt.press, e.hunt.retried = avantan.PressSpare, false
		if e.left > 0 || waited {
			e.hunt.tokensCame()
		}
		return
	}
	counted := e.queue.len() == 0 || e.queue.items[0].number <= e.hunt.pledged
	if s.kept > 0 || !s.member || !counted {
		e.hunt.press = avantan.PressAll
		return
	}
	if s.absent && !e.hunt.retried {
		// It may have been slow: it had the instance before to learn of first.
		e.hunt.press, e.hunt.retried = avantan.PressAll, true
		return
	}
	// Everybody reachable offered all it had, this site's waiting acquires and
	// debt were counted, and still it was not enough.
	e.hunt.press, e.hunt.retried = avantan.PressSpare, false
	e.hunt.pause = min(max(2*e.hunt.pause, c.cfg.GiveUp), c.cfg.MaxGiveUp)
	e.hunt.emptyUntil = c.now.Tick + e.hunt.pause
	c.out.Events = append(c.out.Events, Event{Kind: GaveUp, Entity: e.name})
	c.refuseWaiting(e, func(*waiting) bool { return true })
}

// entityLedger shows an entity's books to its protocol.
type entityLedger struct {
	c *Core
	e *entity
}

// Pledge implements avantan.Ledger.
func (l *entityLedger) Pledge(_ avantan.Instance, press avantan.Press) (avantan.Contribution, bool) {
	c, e := l.c, l.e
	s := c.situation(e)
	offer := c.mods.offer.Offer(s, press)
	kept := max(0, e.left-offer)
	queued := max(0, s.Queued-kept)
	target := Tokens(min(max(0, s.Forecast.High)*float64(c.cfg.Horizon), float64(MaxTokens)))
	e.left -= offer
	e.hunt.pledged = e.queue.number
	c.dirtyBooks(e)
	return avantan.Contribution{
		Site: c.cfg.Self, Offered: offer, Wanted: queued + max(0, target-kept), Queued: queued, Kept: kept,
	}, true
}

// TakeBack implements avantan.Ledger.
func (l *entityLedger) TakeBack(_ avantan.Instance, pledge avantan.Contribution) {
	l.e.left += pledge.Offered
	l.c.dirtyBooks(l.e)
}

// CanApply implements avantan.Ledger.
func (l *entityLedger) CanApply(v *avantan.Value) error {
	_, _, err := l.outcome(v)
	return err
}

// outcome computes what deciding a value would mean: the result of its limit
// change, if it has one, and this site's grant.
func (l *entityLedger) outcome(v *avantan.Value) (*LimitResult, Tokens, error) {
	var result *LimitResult
	var delta Tokens
	if len(v.Change) > 0 {
		r, err := l.e.judge(v.Change)
		if err != nil {
			return nil, 0, err
		}
		result, delta = &r, r.Limit-l.e.limit
	}
	if len(v.Contributions) == 0 {
		if delta != 0 {
			return nil, 0, fmt.Errorf("a limit change of %d falls on no site", delta)
		}
		return result, 0, nil
	}
	policy, err := redistribute.ByName(v.Policy)
	if err != nil {
		return nil, 0, fmt.Errorf("choosing the decided policy: %w", err)
	}
	grants, err := policy.Grants(v.Contributions, delta)
	if err != nil {
		return nil, 0, fmt.Errorf("sharing out the pool: %w", err)
	}
	var grant Tokens
	for i, contribution := range v.Contributions {
		if contribution.Site == l.c.cfg.Self {
			grant = grants[i]
		}
	}
	return result, grant, nil
}

// Apply implements avantan.Ledger.
func (l *entityLedger) Apply(t avantan.Instance, v *avantan.Value) {
	c, e := l.c, l.e
	result, grant, err := l.outcome(v)
	if err != nil {
		panic(fmt.Sprintf("core: entity %q, instance %d: applying what CanApply found good: %v", e.name, t, err))
	}
	_, member := v.Of(c.cfg.Self)
	e.left += grant
	if member {
		e.hunt.lastGrant = e.left
	}
	if result != nil {
		e.settleLimit(*result)
	}
	e.hunt.settled = &settled{instance: t, member: member}
	for _, contribution := range v.Contributions {
		e.hunt.settled.kept += contribution.Kept
	}
	for _, site := range c.cfg.Members {
		if _, in := v.Of(site); !in && (site == c.cfg.Self || c.machine.Reachable(site)) {
			e.hunt.settled.absent = true
		}
	}
	c.dirtyBooks(e)
	c.dirtyRecord(e)
}
