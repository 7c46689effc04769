package core

import (
	"github.com/samya-db/samya/avantan/transfer"
	"github.com/samya-db/samya/site/core/policy"
)

// outlook is an entity's situation with all that other sites' reports let the site expect.
// A plan goes by the outlook alone.
type outlook struct {
	policy.Situation
	// reason is the trigger's reason to begin a redistribution; "" for none.
	reason string
	// worthwhile says that a plan is worth the work: there is a reason, a debt or an
	// exhaustion. All further fields but late are empty otherwise.
	worthwhile bool
	// late says that the sequence holds a limit change whose time is up.
	late bool
	// empty says that the site believes that others have no tokens, and payable that it is
	// time to look at a debt all the same.
	empty, payable bool
	// debtWake is as the function of that name.
	debtWake Tick
	// elsewhere is the number of tokens that the others in reach are believed to have. told
	// says that all of them have told lately, and hearsAll that none has left out a report.
	elsewhere      Tokens
	told, hearsAll bool
	// left and spare are the tokens reported since the exhaustion began; see toldSince.
	left, spare Tokens
	// crowd says that many sites are short, and take turns.
	crowd bool
	// variant is the variant of an instance begun now.
	variant policy.Variant
	// donors are the sites to ask directly; nil while they are asked.
	donors []transfer.Donor
}

// look works out the outlook.
func (c *assessing) look(e *entity) (o outlook) {
	if o.late = e.majority != nil && overdue(e.limitChanges(), e.majority); o.late {
		return o
	}
	c.doubt(e)
	o.Situation = c.situation(e)
	o.reason = c.mods.Trigger.Due(o.Situation)
	d := e.exhaustionNow()
	if o.worthwhile = o.reason != "" || d.since != 0 || e.debt() != nil; !o.worthwhile {
		return o
	}
	o.empty = c.emptyFor(e) > 0
	o.left, o.spare = c.peering.toldSince(e, d.since)
	o.elsewhere, o.told = c.peering.elsewhere(e)
	o.hearsAll = c.peering.hearsAll(e)
	if o.Direct && (e.transfer == nil || !e.transfer.Open()) {
		o.donors = c.peering.donors(e)
	}
	o.payable, o.debtWake = c.debtDue(e, o.left), c.debtWake(e)
	o.crowd = c.inCrowd(e)
	o.variant = c.variant(e)
	return o
}
