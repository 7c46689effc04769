package core

import (
	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/predict"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/policy"
)

// assessing works out an entity's situation, here and elsewhere, from which the modules
// decide; and when to look at the entity again.
type assessing struct {
	*common
	*peering
	*forecasting
	*reading
}

func (c *assessing) situation(e *entity) policy.Situation {
	c.keepOwn(e)
	s := e.situation(c.now.Tick, c.forecasting.forecast(e))
	if left, told := c.peering.elsewhere(e); told && left+max(0, e.usable()) < e.limit/policy.WorthwhilePart {
		s.Scarce = true
	}
	c.loans(e, &s)
	s.Direct = c.mods.Strategy.Direct()
	return s
}

// debtWake is the time at which this site begins an instance that takes tokens that came
// back here off the debt; 0 for never.
func (c *assessing) debtWake(e *entity) Tick {
	if e.owed() == 0 || e.books.Left() == 0 || e.busy() || c.roster.leaves {
		return 0
	}
	return max(1, e.rebalance.triggered+c.cfg.Tell, e.rebalance.noQuorum)
}

func (e *entity) situation(now Tick, forecast predict.Forecast) policy.Situation {
	return policy.Situation{
		Left:      e.usable(),
		Limit:     e.limit,
		Queued:    e.queue.asked(),
		First:     e.queue.first(),
		Rate:      e.demand.rateAt(now),
		Pace:      e.demand.paceAt(now),
		Forecast:  forecast,
		LastGrant: e.rebalance.lastGrant,
		Lacking:   e.rebalance.lacking,
		Changing:  firstDue(e.limitChanges()) != nil,

		Refused:      e.exhaustionNow().refused,
		SinceTrigger: now - e.rebalance.triggered,
	}
}

// tellGain tells the other sites ahead of time that the site has a good deal more left
// than they know, if all have little: they would otherwise go on refusing acquires.
func (c *assessing) tellGain(e *entity) {
	if !c.peering.gained(e, c.now.Tick) {
		return
	}
	own := &e.views[c.roster.home]
	if left, told := c.peering.elsewhere(e); !told || left+own.Left >= e.limit/scarcePart {
		return
	}
	summaries := []message.Summary{c.summary(e)}
	c.peering.hasTold(e, &summaries[0])
	c.tellAll(summaries)
}

func (c *assessing) summary(e *entity) message.Summary {
	s := c.situation(e)
	target, median := c.mods.Want.Target(s)
	return message.Summary{
		Entity: e.name, Generation: e.generation, Left: e.books.Left(), Net: e.books.Net(), Offered: e.offered(),
		Median: s.Queued + median, Target: s.Queued + target, Busy: e.demandUntil > c.now.Tick,
	}
}

// counted is the number of the last waiting acquire that a want covers.
func (c *assessing) counted(e *entity, s *policy.Situation) uint64 {
	if e.queue.len() > 0 && c.mods.Want.Waiting(*s) < e.queue.asked() {
		return e.queue.oldest().number
	}
	return e.queue.last()
}

// settledBy is the outcome of an applied value for this site's waiting acquires.
func (c *assessing) settledBy(v *avantan.Value) *settled {
	s := new(settled)
	_, s.member = v.Of(c.cfg.Self)
	var offered, queued Tokens
	for _, contribution := range v.Contributions {
		s.kept += contribution.Kept
		offered += contribution.Offered
		queued += contribution.Queued
	}
	s.used = offered <= queued
	for i, site := range c.roster.all() {
		if _, in := v.Of(site); !in && !c.roster.leavers.has(i) && (site == c.cfg.Self || c.seemsUp(site)) {
			s.absent = true
		}
	}
	return s
}

// enough is the number of tokens left with which the site need not look at anything.
func (c *assessing) enough(e *entity) Tokens {
	rate := e.demand.rate
	if c.mods.Strategy.Direct() {
		rate = 0
	}
	return c.mods.Trigger.Enough(float64(e.demand.pace), rate)
}

// checkTrigger marks an entity after a grant, once a millisecond, if it may be time to ask for
// tokens.
func (c *assessing) checkTrigger(e *entity) {
	if e.books.Left() >= c.enough(e) && len(e.limitChanges()) == 0 {
		return
	}
	if e.rebalance.looked != c.now.Tick || e.queue.len() > 0 {
		e.rebalance.looked = c.now.Tick
		c.check(e)
	}
}

// schedule sets the time at which the core must look at an entity again.
func (c *assessing) schedule(e *entity) {
	if e.halted() {
		return
	}
	if !e.redistributing() && e.unhold() {
		c.later(e)
	}
	c.reading.queueMoved(e)
	t := firstUntil(e.limitChanges())
	if e.majority != nil {
		t = earlier(t, wakeOf(e.majority))
	}
	if e.star != nil {
		t = earlier(t, wakeOf(e.star))
	}
	if e.transfer != nil {
		t = earlier(t, wakeOf(e.transfer))
	}
	if h := e.handoff(); h != nil {
		t = earlier(t, wakeOf(h))
	}
	t = earlier(t, c.wakeOfRate(e))
	if e.queue.len() > 0 {
		t = earlier(t, max(1, e.queue.next()))
		if e.seldom != nil && e.seldom.turns != 0 {
			if at := c.turn(e); at > c.now.Tick {
				t = earlier(t, at)
			}
		}
		if e.queue.hold.by != nil {
			t = earlier(t, max(1, e.queue.hold.until))
		}
	}
	switch d := e.exhaustionNow(); {
	case e.books.Left() < 0, e.noQuorum() && e.queue.len() > 0:
		// No message may come to have the core look again at a debt, also after a
		// restart, or at acquires that wait for a majority.
		t = earlier(t, max(d.until, c.now.Tick+c.cfg.Tell))
	case d.until > c.now.Tick && e.queue.len() > 0:
		t = earlier(t, d.until)
	}
	t = earlier(t, c.debtWake(e))
	t = earlier(t, e.acksWake())
	t = earlier(t, e.auditWake())
	c.sleepUntil(e, t)
}

// inFlight is the number of tokens sent by this site to receivers that seem to be up and
// have not acknowledged them. It is at least 1 while this site waits for tokens itself:
// an instance in which nobody kept anything is then no proof that there are none.
func (c *assessing) inFlight(e *entity) Tokens {
	if e.transfer == nil {
		return 0
	}
	var sum Tokens
	if e.transfer.Open() {
		sum = 1
	}
	for _, d := range e.transfer.State().Debits {
		if d.Amount > 0 && c.seemsUp(d.Receiver) {
			sum += d.Amount
		}
	}
	return sum
}
