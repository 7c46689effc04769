package core

import (
	"fmt"
	"slices"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/redistribute"
)

// hunt is where a site stands in getting the tokens an entity is short of.
type hunt struct {
	// press is how hard the next instance begun here presses for offers, ledPress
	// how hard the star instance led here does: press may have grown since it was
	// begun.
	press, ledPress avantan.Press
	// retried is set once it was tried again because a site was left out.
	retried bool
	// short is set once a round of direct transfers has left acquires waiting that
	// it counted: an instance comes next.
	short bool
	// pledged is the number of the last waiting acquire that the contribution to
	// the majority instance under way counted, led that of the star instance led
	// here.
	pledged, led uint64
	// noQuorum is until when no majority is believed to be there.
	noQuorum Tick
	// lastGrant is what the site had after the last instance that moved its
	// tokens, or when the entity was created.
	lastGrant Tokens
	// fetched is the number of the last waiting acquire that the round of direct
	// transfers under way counts.
	fetched uint64
	// looked is when it was last looked whether to begin one after a grant.
	looked Tick
	// triggered is when a redistribution was last begun here.
	triggered Tick
	// settled is the last instance applied in the current step, if any.
	settled *settled
}

// settled is what an applied instance meant for this site.
type settled struct {
	// counted is the number of the last waiting acquire that this site's
	// contribution counted; 0 if that is not known.
	counted uint64
	// member: this site's tokens were in it.
	member bool
	// kept is what the members kept back.
	kept Tokens
	// used: what waits at the members takes all that they offered.
	used bool
	// absent: a site that seems to be reachable was left out.
	absent bool
}

// noQuorumPatiences is how many times Patience a site that found no majority
// believes that there is none.
const noQuorumPatiences = 4

// look looks after a grant whether it is time to ask for tokens, once a
// millisecond.
func (c *Core) look(e *entity) {
	if e.left >= c.mods.trigger.Enough(e.demand.rate) && len(e.changes) == 0 {
		return
	}
	if e.hunt.looked != c.now.Tick || e.queue.len() > 0 {
		e.hunt.looked = c.now.Tick
		c.pursue(e)
	}
}

// pursue begins a redistribution if the trigger says so and none is under way:
// one that is under way is joined instead.
func (c *Core) pursue(e *entity) {
	if e.majority != nil && overdue(e.changes, e.majority) {
		notProposed(e.changes)
		c.begin(e)
		return
	}
	urgent := e.queue.len() > 0 || e.left < 0
	if e.queue.len() == 0 && !e.owes() {
		e.hunt.short = false
	}
	c.doubt(e)
	s := c.situation(e)
	reason := c.mods.trigger.Due(s)
	if reason == "" && e.droughtNow().since == 0 {
		return
	}
	switch {
	case s.Changing && !e.busy():
		c.started(e, reason, Majority)
		c.begin(e)
		return
	case reason == limitReason:
		return
	case c.emptyFor(e) > 0 && !c.debtDue(e):
		c.probe(e, &s)
		return
	case reason == "":
		return
	}
	if reason == aheadReason {
		c.instance(e, reason)
		return
	}
	if s.Elsewhere, s.Told = c.elsewhere(e); c.mods.trigger.Due(s) == "" {
		e.hunt.triggered = c.now.Tick
		return
	}
	c.redistribute(e, &s, reason, urgent)
}

// debtDue reports whether a debt is to be looked at again although there seems to be
// nothing to pay it with: nobody is refused who would have others asked.
func (c *Core) debtDue(e *entity) bool {
	return e.left < 0 && c.now.Tick >= e.droughtNow().until
}

// busy reports whether the site has to wait before it begins another instance
// of the majority variant.
func (e *entity) busy() bool {
	return e.majority != nil && (e.majority.Open() || e.majority.Waits())
}

// redistribute gets tokens from other sites: what waits is urgent.
func (c *Core) redistribute(e *entity, s *Situation, reason string, urgent bool) {
	if urgent && c.dryAgain(e, s) {
		return
	}
	direct := c.mods.strategy.Direct()
	hopeless := s.Told && s.Elsewhere < worth(e)
	if hopeless && urgent {
		e.hunt.press = avantan.PressAll
	}
	switch {
	case direct && !e.hunt.short && (!hopeless || !urgent) && c.fetch(e, s, reason):
	case direct && !urgent:
	default:
		c.instance(e, reason)
	}
}

// instance begins an instance under the variant of the mode, if it can.
func (c *Core) instance(e *entity, reason string) {
	switch {
	case c.variant(e) == Star:
		if !e.starBusy() {
			c.started(e, reason, Star)
			c.beginStar(e)
		}
	case !e.busy():
		c.started(e, reason, Majority)
		c.begin(e)
	}
}

func (c *Core) started(e *entity, reason string, v Variant) {
	e.hunt.triggered = c.now.Tick
	c.out.Events = append(c.out.Events, Event{Kind: RedistributionStarted, Entity: e.name, Trigger: reason, Variant: v})
}

// seemsUp reports whether a site may be reachable.
func (c *Core) seemsUp(site SiteID) bool {
	return c.reachable == nil || slices.Contains(c.reachable, site)
}

// majorityThere reports whether a majority seems to be reachable: as many sites
// are up, and none has just been waited for in vain.
func (c *Core) majorityThere(e *entity) bool {
	up := 0
	for _, m := range c.cfg.Members {
		if m == c.cfg.Self || c.seemsUp(m) {
			up++
		}
	}
	return up > len(c.cfg.Members)/2 && c.now.Tick >= e.hunt.noQuorum
}

// begin has the protocol begin an instance, with the first change that waits.
func (c *Core) begin(e *entity) {
	p := avantan.Proposal{Policy: c.cfg.Policy, Press: e.hunt.press}
	if ch := firstDue(e.changes); ch != nil {
		p.Change = ch.encoded
		ch.proposed = true
	}
	c.stepMajority(e, avantan.Input{Begin: &p})
}

// stepMajority hands an input to an entity's protocol and carries out what
// follows within the core.
func (c *Core) stepMajority(e *entity, in avantan.Input) {
	e.hunt.settled = nil
	if e.majority == nil {
		e.majority = avantan.New(&c.machine, &entityLedger{c: c, e: e}, avantan.State{})
	}
	out := e.majority.Step(c.now.Tick, in)
	if out.Persist {
		c.dirtyRecord(e)
	}
	c.send(e.name, e.generation, out.Messages)
	c.protocolEvents(e.name, &out)
	for _, p := range e.changes {
		p.built = p.built || (p.proposed && e.majority.State().Built)
	}
	if out.Failed != avantan.FailedNot {
		notProposed(e.changes)
	}
	if out.Failed == avantan.FailedNoQuorum {
		e.hunt.noQuorum = c.now.Tick + noQuorumPatiences*c.cfg.Patience
	}
	settled := e.hunt.settled
	if settled != nil {
		c.answerChanges(e)
		c.afterInstance(e, *settled)
	} else {
		// An offer may have been taken back.
		c.serveQueue(e)
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
	waited := e.queue.len() > 0
	c.serveQueue(e)
	c.came(e, e.left)
	if e.queue.len() == 0 && e.left >= 0 {
		e.hunt.press, e.hunt.retried = avantan.PressSpare, false
		if s.member && s.kept == 0 && s.used && !s.absent && waited {
			c.dry(e)
		}
		return
	}
	counted := e.queue.len() == 0 || e.queue.items[0].number <= s.counted
	if s.kept > 0 || !s.member || !counted && !s.used {
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
	c.giveUp(e)
}

// giveUp refuses what waits, as there are no tokens to be had anywhere, and
// believes so for a while.
func (c *Core) giveUp(e *entity) {
	e.hunt.press, e.hunt.retried, e.hunt.short = avantan.PressSpare, false, false
	c.dry(e)
	c.out.Events = append(c.out.Events, Event{Kind: GaveUp, Entity: e.name})
	c.endWaiting(e, func(*waiting) bool { return true })
}

// entityLedger shows an entity's books to its protocol.
type entityLedger struct {
	c *Core
	e *entity
}

// Pledge implements avantan.Ledger.
func (l *entityLedger) Pledge(_ avantan.Instance, press avantan.Press) (avantan.Contribution, bool) {
	l.e.hunt.pledged = l.c.counted(l.e)
	return l.pledge(press), true
}

// counted is the number of the last waiting acquire that a want covers.
func (c *Core) counted(e *entity) uint64 {
	if e.queue.len() > 0 && c.mods.want.Waiting(c.situation(e)) < e.queue.asked() {
		return e.queue.items[0].number
	}
	return e.queue.last()
}

// pledge moves an offer out of what is left.
func (l *entityLedger) pledge(press avantan.Press) avantan.Contribution {
	c, e := l.c, l.e
	s := c.situation(e)
	offer := c.mods.offer.Offer(s, press)
	kept := max(0, e.left-offer)
	target, median := c.mods.want.Target(s)
	queued := max(0, c.mods.want.Waiting(s)-kept)
	e.left -= offer
	c.dirtyBooks(e)
	return avantan.Contribution{
		Site: c.cfg.Self, Offered: offer, Kept: kept + c.inFlight(e), Queued: queued,
		Median: max(queued+max(0, median-kept), s.Refused-kept), Wanted: max(queued+max(0, target-kept), s.Refused-kept),
	}
}

// TakeBack implements avantan.Ledger.
func (l *entityLedger) TakeBack(_ avantan.Instance, pledge avantan.Contribution) { l.takeBack(pledge) }

func (l *entityLedger) takeBack(pledge avantan.Contribution) {
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
		result, delta = &r, r.delta(l.e)
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
		c.keepOut(e, e.surplus+result.setAside)
	}
	e.hunt.settled = c.settledBy(v)
	e.hunt.settled.counted = e.hunt.pledged
	e.hunt.noQuorum = 0
	c.dirtyBooks(e)
	c.dirtyRecord(e)
}

// settledBy says what applying a value means for this site's waiting acquires.
func (c *Core) settledBy(v *avantan.Value) *settled {
	s := new(settled)
	_, s.member = v.Of(c.cfg.Self)
	var offered, queued Tokens
	for _, contribution := range v.Contributions {
		s.kept += contribution.Kept
		offered += contribution.Offered
		queued += contribution.Queued
	}
	s.used = offered <= queued
	for _, site := range c.cfg.Members {
		if _, in := v.Of(site); !in && (site == c.cfg.Self || c.seemsUp(site)) {
			s.absent = true
		}
	}
	return s
}
