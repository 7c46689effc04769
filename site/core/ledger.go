package core

import (
	"fmt"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/redistribute"
)

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
	c.applied = c.settledBy(v)
	c.applied.counted = e.hunt.pledged
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
