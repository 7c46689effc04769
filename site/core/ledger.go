package core

import (
	"fmt"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/redistribute"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/policy"
)

// entityLedger shows an entity's books to its protocol.
type entityLedger struct {
	c *rebalancing
	e *entity
}

// Pledge implements avantan.Ledger.
func (l *entityLedger) Pledge(_ avantan.Instance, press avantan.Press) (avantan.Contribution, bool) {
	s := l.c.assessing.situation(l.e)
	l.e.rebalance.pledged = l.c.assessing.counted(l.e, &s)
	l.c.assessing.keep(l.e)
	return l.pledge(&s, press, true), true
}

// pledge moves an offer out of the tokens left. An entity in debt offers all tokens to an
// instance that may take them off the debt, and its usable tokens to other instances.
func (l *entityLedger) pledge(s *policy.Situation, press avantan.Press, settles bool) avantan.Contribution {
	c, e := l.c, l.e
	offer := c.mods.Offer.Offer(*s, press)
	owes := e.debt() != nil
	if owes && settles {
		offer = e.books.Left() - e.lacking()
	}
	kept := max(0, s.Left-offer)
	// Tokens promised to other instances or under way may come free: the offer lacks
	// them.
	promised, _ := e.pledged()
	bound := promised + c.assessing.inFlight(e)
	target, median := c.mods.Want.Target(*s)
	queued := max(0, c.mods.Want.Waiting(*s)-kept)
	c.keepWhole(e, e.books.Pledge(offer))
	c.dirtyBooks(e)
	if c.roster.leaves {
		return avantan.Contribution{Site: c.cfg.Self, Offered: offer, Kept: kept + bound, Window: windowOf(e)}
	}
	if owes && !settles && s.Left <= 0 {
		// More tokens would be set aside here, and help nobody.
		return avantan.Contribution{Site: c.cfg.Self, Offered: offer, Window: windowOf(e)}
	}
	return avantan.Contribution{
		Site: c.cfg.Self, Offered: offer, Kept: kept + bound, Queued: queued, Window: windowOf(e),
		Median: max(queued+max(0, median-kept), s.Refused-kept), Wanted: max(queued+max(0, target-kept), s.Refused-kept),
	}
}

// TakeBack implements avantan.Ledger.
func (l *entityLedger) TakeBack(_ avantan.Instance, pledge avantan.Contribution) { l.takeBack(pledge) }

func (l *entityLedger) takeBack(pledge avantan.Contribution) {
	l.c.keepWhole(l.e, l.e.books.Withdraw(pledge.Offered))
	l.c.dirtyBooks(l.e)
}

// Forfeit implements avantan.Ledger.
func (l *entityLedger) Forfeit(_ avantan.Instance, pledge avantan.Contribution) {
	if pledge.Offered <= 0 {
		l.takeBack(pledge)
		return
	}
	l.c.keepWhole(l.e, l.e.books.Grant(pledge.Offered, 0))
	l.c.dirtyBooks(l.e)
}

// CanApply implements avantan.Ledger.
func (l *entityLedger) CanApply(v *avantan.Value) error {
	_, err := l.outcome(v)
	return err
}

// outcome is the effect of deciding a value.
type outcome struct {
	// result is the result of its limit change, nil for none.
	result *settledLimit
	// view is the version of the roster adopted; 0 for none.
	view uint16
	// grant is this site's grant.
	grant Tokens
	// moved is the number of tokens that sites get beyond their offers.
	moved Tokens
	// debt is the entity's debt afterwards.
	debt Tokens
}

// outcome computes the effect of deciding a value.
func (l *entityLedger) outcome(v *avantan.Value) (outcome, error) {
	o := outcome{debt: l.e.owed()}
	var delta Tokens
	if len(v.Change) > 0 {
		r, err := l.e.classify(v.Change)
		if err != nil {
			return outcome{}, err
		}
		o.result, delta = &r, r.delta(l.e)
		if o.view, err = l.newView(r.view); err != nil {
			return outcome{}, err
		}
	}
	if len(v.Contributions) == 0 {
		if delta != 0 || o.result != nil && o.result.charges() {
			return outcome{}, fmt.Errorf("a limit change of %d falls on no site", delta)
		}
		return o, nil
	}
	name, settles := policyOf(v)
	shares, err := redistribute.ByName(name)
	if err != nil {
		return outcome{}, fmt.Errorf("choosing the decided policy: %w", err)
	}
	grants, debt, err := shareOut(v, shares, delta, o.debt, settles)
	if err != nil {
		return outcome{}, fmt.Errorf("sharing out the pool: %w", err)
	}
	o.debt = debt
	for i, contribution := range v.Contributions {
		o.moved += max(0, grants[i]-contribution.Offered)
		if contribution.Site == l.c.cfg.Self {
			o.grant = grants[i]
		}
	}
	return o, nil
}

// windowIn is the last window in which tokens were set aside for a value.
func windowIn(v *avantan.Value) (last int64) {
	for _, c := range v.Contributions {
		if c.Offered > 0 {
			last = max(last, c.Window)
		}
	}
	return last
}

// Apply implements avantan.Ledger.
func (l *entityLedger) Apply(t avantan.Instance, v *avantan.Value) {
	c, e := l.c, l.e
	o, err := l.outcome(v)
	if err != nil {
		panic(fmt.Sprintf("core: entity %q, instance %d: applying what CanApply found good: %v", e.name, t, err))
	}
	if own, member := v.Of(c.cfg.Self); member {
		c.keepWhole(e, e.books.Grant(own.Offered, o.grant))
		c.tallies.of(e).moved(answer.Move{Wall: c.now.Wall, Tokens: o.grant - own.Offered})
		c.lateFrom(e, o.grant-max(0, own.Offered), max(windowIn(v), o.result.opens(e)))
		e.rebalance.lastGrant = e.books.Left()
	}
	if o.view > 0 {
		c.setVoters(e, o.view)
	}
	if o.result != nil && !o.result.void {
		e.settleLimit(*o.result)
		c.keepOut(e, e.surplus()+o.result.setAside)
		c.reconciled(e, v, o.result)
		c.limiting.limitChanged(e, t)
	}
	c.limiting.setDebt(e, o.debt, t, v)
	c.applied = c.assessing.settledBy(v)
	c.applied.counted, c.applied.moved = e.rebalance.pledged, o.moved
	e.rebalance.noQuorum = 0
	c.dirtyBooks(e)
	c.dirtyRecord(e)
}
